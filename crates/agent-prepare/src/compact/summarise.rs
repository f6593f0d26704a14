//! The dear tier: a model says what was done, and its words stand for what they cover.

use agent_core::{EntryId, Rewrite, Text};

use super::{Tier, TierCx, TierVerdict};

/// Asks a model for a summary (requirement P13).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "numbers, written as a literal with ..Default")]
pub struct Summarise {
    /// Most entries kept whole behind the summary.
    pub keep_entries: usize,
}

impl Default for Summarise {
    fn default() -> Self {
        Self { keep_entries: 10 }
    }
}

impl Tier for Summarise {
    fn name(&self) -> &'static str {
        "summary"
    }

    fn run(&self, cx: &TierCx<'_>) -> TierVerdict {
        let _ = cx;
        TierVerdict::Pass
    }
}

/// The boundary with what stands in it beside the summary.
pub(super) fn composed(cx: &TierCx<'_>, words: &Text, kept_from: EntryId) -> Option<Rewrite> {
    Some(super::notes::boundary(cx, words.clone(), kept_from))
}
