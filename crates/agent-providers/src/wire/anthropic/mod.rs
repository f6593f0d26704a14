//! Anthropic Messages: the wire format of Claude models.

pub(crate) mod block;
pub(crate) mod decode;
pub mod encode;
pub mod import;
mod joined;
mod marks;
pub mod profiles;
mod segment;
mod settings;
pub(crate) mod usage;

pub use encode::MessagesEncoder;
pub use import::{ImportError, Imported, import_request};

/// The name that tags parts only this provider understands.
pub const PROVIDER: &str = "anthropic";
