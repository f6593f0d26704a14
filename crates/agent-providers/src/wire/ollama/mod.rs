//! Ollama's own interface, `/api/chat`: answers are JSON objects, one a line.

pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod import;
mod segment;
mod settings;
mod usage;

/// The name that tags parts only this provider understands.
pub const PROVIDER: &str = "ollama";
