//! OpenAI Chat Completions, and what calls itself compatible with it.

mod quirks;

pub use quirks::Quirks;
