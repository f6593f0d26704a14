//! The cheapest tier: old tool results are shown clipped.

use agent_core::{Entry, EntryId, History, Rewrite};

use super::target::reach;
use super::{Cause, Tier, TierCx, TierVerdict};

/// Shows old tool results with the first and last bytes of each only (requirement P5). No model is asked.
///
/// Where thinking is bound to the bytes before it, the steps before the boundary lose theirs, since those bytes change.
/// At the beginning of a turn, and when the user asks for a compaction, it leaves the turn to the tiers that free more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "numbers, written as a literal with ..Default")]
pub struct Clear {
    /// Bytes kept of each result, half from its beginning and half from its end.
    pub keep_bytes: usize,
    /// Newest steps whose results stay whole.
    pub keep_steps: usize,
    /// Least share of the context, in percent, that a clearing must save: the provider reads all behind the first
    /// cleared result anew, so that a small one does not pay for itself.
    pub clear_at_least: u8,
}

impl Default for Clear {
    fn default() -> Self {
        Self { keep_bytes: 1_000, keep_steps: 3, clear_at_least: 20 }
    }
}

impl Tier for Clear {
    fn name(&self) -> &'static str {
        "clear_results"
    }

    fn run(&self, cx: &TierCx<'_>) -> TierVerdict {
        // At the start of a turn nothing is in flight, and a summary frees more for longer.
        if matches!(cx.cause, Cause::First | Cause::Manual) {
            return TierVerdict::Pass;
        }
        let history = cx.of.history;
        let steps = history.entries().iter().enumerate().rev();
        let mut steps = steps.filter(|(_, entry)| matches!(entry, Entry::Step(_)));
        let Some((last, _)) = steps.nth(self.keep_steps) else { return TierVerdict::Pass };
        let results_to = EntryId::at(last + 1);
        if results_to < cleared_to(history) {
            return TierVerdict::Pass;
        }
        let strip_reasoning = cx.of.model.binds_thinking_to_prefix;
        let keep_bytes = self.keep_bytes;
        let rewrite = Rewrite::Cleared { results_to, keep_bytes, strip_reasoning, offloaded: true };
        let after = cx.after(&rewrite);
        let least_saved = cx.tokens.used / 100 * u64::from(self.clear_at_least);
        let saves_enough = after.saturating_add(least_saved) <= cx.tokens.used;
        // A clearing that does not reach the target leaves all to the next tier: sliding costs the cache each time.
        if saves_enough && after <= cx.target { TierVerdict::Rewrite(rewrite) } else { TierVerdict::Pass }
    }
}

/// Up to where results are cleared already.
pub(super) fn cleared_to(history: &History) -> EntryId {
    reach(history, |rewrite| matches!(rewrite, Rewrite::Cleared { .. }))
}
