//! The verbs that are one cargo call each.

use crate::Shop;
use crate::command::Cargo;
use crate::error::Error;

pub(crate) fn fmt(shop: &mut Shop<'_>) -> Result<(), Error> {
    Cargo::new("fmt --all --check").run(&shop.root)
}

pub(crate) fn clippy(shop: &mut Shop<'_>) -> Result<(), Error> {
    Cargo::new("clippy --workspace --all-targets --all-features -- -D warnings").run(&shop.root)
}

pub(crate) fn doc(shop: &mut Shop<'_>) -> Result<(), Error> {
    Cargo::new("doc --workspace --no-deps --all-features").env("RUSTDOCFLAGS", "-D warnings").run(&shop.root)
}
