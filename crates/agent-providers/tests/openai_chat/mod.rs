//! OpenAI Chat Completions and its relatives: what answers mean, and what is sent.

mod ask;
mod corpus;
mod decode;
mod encode;
mod files;
mod replay;
mod round_trip;
mod settings;
mod stable;

use std::path::{Path, PathBuf};

/// The fixtures of this format.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/wire/openai-chat")
}
