//! The last tier: results are made as small as they can be without a model.

use agent_core::{EntryId, Rewrite};

use super::{Cause, Tier, TierCx, TierVerdict};
use crate::Level;

/// Clips every tool result, the newest included, so that one result larger than the window does not end the session
/// (requirement P10, case P04). Only where no request could be sent otherwise, and only where that helps: one message
/// of the user that is larger than the window is not made smaller by losing what tools found.
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
        let blocking = cx.tokens.thresholds.blocking;
        let good_enough = match cx.cause {
            // By how much the request was too long is not known.
            Cause::Overflow => blocking - 1,
            Cause::First | Cause::Continuation | Cause::Manual if cx.tokens.level() == Level::Blocked => {
                blocking - 1
            }
            Cause::First | Cause::Continuation | Cause::Manual => return TierVerdict::Pass,
        };
        let results_to = EntryId::at(cx.of.history.len());
        let strip_reasoning = cx.of.model.binds_thinking_to_prefix;
        let offers = KEEP.map(|keep_bytes| {
            let rewrite = Rewrite::Cleared { results_to, keep_bytes, strip_reasoning, offloaded: true };
            (cx.after(&rewrite), rewrite)
        });
        let [.., least] = &offers;
        let fits = offers.iter().find(|(after, _)| *after <= cx.target);
        let chosen = fits.or((least.0 <= good_enough).then_some(least));
        // Where no result is long, clipping them changes nothing.
        let chosen = chosen.filter(|(after, _)| *after < cx.tokens.used);
        chosen.map_or(TierVerdict::Pass, |(_, rewrite)| TierVerdict::Rewrite(rewrite.clone()))
    }
}
