//! Ollama's own interface: what answers mean, and what is sent.

mod ask;
mod corpus;
mod decode;
mod encode;

use std::path::{Path, PathBuf};

/// The fixtures of this format.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/wire/ollama")
}
