//! Ollama's own interface, `/api/chat`: answers are JSON objects, one a line.

pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod import;
mod segment;
mod settings;
mod usage;
