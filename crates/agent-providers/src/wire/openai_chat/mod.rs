//! OpenAI Chat Completions, and what calls itself compatible with it.

mod block;
mod calls;
pub(crate) mod decode;
pub(crate) mod encode;
mod extras;
mod files;
mod ids;
pub(crate) mod import;
mod quirks;
mod segment;
mod settings;
mod thought;
mod usage;

pub use quirks::{
    CacheMarker, CallIds, DocumentPart, EffortField, LimitField, NoContent, Quirks, ReasoningBack, SeedField,
    SystemRole, ThinkingField, TierWords, ToolChoiceWords,
};

/// The format's name.
const FORMAT: &str = "openai-chat";
