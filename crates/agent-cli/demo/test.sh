#!/usr/bin/env bash
# Runs every check; ends with 1 when one of them fails.
cd "$(dirname "$0")" || exit 2
. ./price.sh
failed=0

check() {
  local got
  got=$(total "$1" "$2")
  if [ "$got" = "$3" ]; then
    echo "ok    total $1 $2 = $3"
  else
    echo "FAIL  total $1 $2 = $got, expected $3"
    failed=1
  fi
}

check 250 1 250
check 250 9 2250
check 200 10 1800
check 200 20 3600
exit $failed
