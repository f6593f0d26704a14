//! Anthropic Messages: the wire format of Claude models.

pub(crate) mod block;
pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod import;
mod segment;
mod settings;
mod tools;
pub(crate) mod usage;

/// The name that tags parts only this provider understands.
pub const PROVIDER: &str = "anthropic";
