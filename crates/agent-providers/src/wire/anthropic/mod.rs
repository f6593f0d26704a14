//! Anthropic Messages: the wire format of Claude models.

pub(crate) mod block;
pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod import;
mod segment;
mod settings;
mod tools;
pub(crate) mod usage;
mod usual;
