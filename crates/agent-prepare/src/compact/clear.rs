//! The cheapest tier: old tool results are shown clipped.

use agent_core::{Entry, EntryId, Rewrite};

use super::{Cause, Tier, TierCx, TierVerdict};

/// Shows old tool results with the first and last bytes of each only (requirement P5). No model is asked.
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
        if cx.cause == Cause::First {
            return TierVerdict::Pass;
        }
        let history = cx.of.history;
        let steps = history.entries().iter().enumerate().rev();
        let mut steps = steps.filter(|(_, entry)| matches!(entry, Entry::Step(_)));
        let Some((last, _)) = steps.nth(self.keep_steps) else { return TierVerdict::Pass };
        let rewrite = Rewrite::Cleared { results_to: EntryId::at(last + 1), keep_bytes: self.keep_bytes };
        let before = cx.of.accountant.estimated(history);
        let after = cx.of.accountant.would_be(history, &rewrite);
        let saves_enough = after.saturating_add(before / 100 * u64::from(self.clear_at_least)) <= before;
        // A clearing that does not reach the target leaves all to the next tier: sliding costs the cache each time.
        if saves_enough && after <= cx.target { TierVerdict::Rewrite(rewrite) } else { TierVerdict::Pass }
    }
}
