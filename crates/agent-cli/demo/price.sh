# Prices in cents, so that no rounding happens before the end.

# total PRICE COUNT: the price of COUNT items; from ten items on every item is a tenth cheaper.
total() {
  local price=$1 count=$2
  if [ "$count" -gt 10 ]; then
    price=$((price * 9 / 10))
  fi
  echo $((price * count))
}
