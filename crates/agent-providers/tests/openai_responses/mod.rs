//! OpenAI Responses: what answers mean, and what is sent.

mod ask;
mod corpus;
mod decode;
mod encode;
mod import;
mod settings;
mod stable;

use std::path::{Path, PathBuf};

use crate::support::read;

/// The fixtures of this format.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/wire/openai-responses")
}

fn fixture(name: &str) -> Vec<u8> {
    read(&folder().join(name))
}
