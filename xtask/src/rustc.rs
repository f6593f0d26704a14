//! The verbs that are a cargo call or two each: the workspace, and the fuzz targets, which are one of their own.

use crate::Shop;
use crate::command::Call;
use crate::error::Error;
use crate::fuzz;

pub(crate) fn fmt(shop: &mut Shop<'_>) -> Result<(), Error> {
    Call::cargo("fmt --all --check").run(&shop.root)?;
    Call::cargo(&format!("fmt --check --manifest-path {}", fuzz::MANIFEST)).run(&shop.root)
}

pub(crate) fn clippy(shop: &mut Shop<'_>) -> Result<(), Error> {
    Call::cargo("clippy --workspace --all-targets --all-features -- -D warnings").run(&shop.root)?;
    fuzz::cargo("clippy --all-targets", &shop.root).arg("--").arg("-D").arg("warnings").run(&shop.root)
}

pub(crate) fn doc(shop: &mut Shop<'_>) -> Result<(), Error> {
    Call::cargo("doc --workspace --no-deps --all-features").env("RUSTDOCFLAGS", "-D warnings").run(&shop.root)
}
