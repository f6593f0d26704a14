//! The last tier: everything is made as small as it can be without a model.

use agent_core::{EntryId, Rewrite};

use super::{Cause, Tier, TierCx, TierVerdict};
use crate::Level;

/// Clips every tool result, the newest included, so that one result larger than the window does not end the session
/// (requirement P10, case P04). Only where no request could be sent otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it has nothing to choose")]
pub struct Shrink;

/// What is tried, in bytes kept of each result.
const KEEP: [usize; 3] = [4_000, 1_000, 200];

impl Tier for Shrink {
    fn name(&self) -> &'static str {
        "shrink_results"
    }

    fn run(&self, cx: &TierCx<'_>) -> TierVerdict {
        let is_needed = cx.cause == Cause::Overflow || cx.tokens.level() == Level::Blocked;
        if !is_needed {
            return TierVerdict::Pass;
        }
        let history = cx.of.history;
        let results_to = EntryId::at(history.len());
        let offers = KEEP.map(|keep_bytes| Rewrite::Cleared { results_to, keep_bytes });
        let fits = |rewrite: &Rewrite| cx.of.accountant.would_be(history, rewrite) <= cx.target;
        let [.., least] = &offers;
        TierVerdict::Rewrite(offers.iter().find(|rewrite| fits(rewrite)).unwrap_or(least).clone())
    }
}
