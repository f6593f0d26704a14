//! Down to where a compaction must come (requirement P8).

use super::{Cause, CompactCx};
use crate::ContextState;

/// Steps for which there shall be room after a compaction.
const STEPS: u64 = 10;
/// Steps over which growth is averaged.
const RECENT: usize = 8;

/// The low-water mark: room for ten more steps as large as the recent ones, and never more than half of where
/// compaction begins; but not less than what stays in any case.
pub(super) fn low_water(cx: &CompactCx<'_>, tokens: &ContextState, cause: Cause) -> u64 {
    let begins = tokens.thresholds.autocompact;
    let growth = cx.accountant.growth(cx.history, RECENT);
    let wanted = begins.saturating_sub(growth.saturating_mul(STEPS)).min(begins / 2);
    let least = tokens.fixed.saturating_add(summary_reserve(tokens));
    let target = wanted.max(least);
    match cause {
        Cause::First | Cause::Continuation | Cause::Manual => target,
        // The window is smaller than the profile says: what is there now is too much, whatever was counted.
        Cause::Overflow => target.min(tokens.used / 2).max(least.min(tokens.used / 2)),
    }
}

/// Tokens kept free for a summary.
pub(super) fn summary_reserve(tokens: &ContextState) -> u64 {
    (tokens.thresholds.window / 8).clamp(64, 2_048)
}
