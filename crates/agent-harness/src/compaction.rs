//! What a compaction by hand did.

use agent_core::Usage;
use agent_prepare::ContextState;
use serde::Serialize;

/// What came of [`crate::Session::compact`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compaction {
    /// How full the context was.
    pub before: ContextState,
    /// How full it is.
    pub after: ContextState,
    /// The tiers that rewrote something, in their order; none when nothing could be made smaller.
    pub tiers: Vec<CompactedTier>,
    /// The tiers that tried and could not.
    pub failed: Vec<FailedTier>,
    /// Tokens of the model that was asked for words.
    pub usage: Usage,
}

/// A tier that rewrote the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CompactedTier {
    /// Its name.
    pub tier: String,
    /// Tokens before.
    pub before: u64,
    /// Tokens after, estimated.
    pub after: u64,
}

/// A tier that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FailedTier {
    /// Its name.
    pub tier: String,
    /// Why.
    pub message: String,
}

/// What was done since it was last looked at.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) tiers: Vec<CompactedTier>,
    pub(crate) failed: Vec<FailedTier>,
}
