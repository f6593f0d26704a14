//! Where cache breakpoints go until a planner decides.

use agent_core::{CacheProfile, EntryId, Mark, MarkPoint, ModelProfile, Ttl};

/// One breakpoint behind the stable start, one at the end of the history, and one where the last request ended, so
/// that its cache entry is found even when a step added many blocks. All live five minutes.
pub(crate) fn marks(
    profile: &ModelProfile,
    has_system: bool,
    sent_to: Option<EntryId>,
    end: usize,
) -> Vec<Mark> {
    if !matches!(profile.cache, CacheProfile::Marked { .. }) {
        return Vec::new();
    }
    let last = end.checked_sub(1).map(EntryId::at);
    let stable = if has_system { MarkPoint::System } else { MarkPoint::Tools };
    let bridge = sent_to.filter(|id| Some(*id) != last);
    let points = std::iter::once(stable).chain(bridge.into_iter().chain(last).map(MarkPoint::Entry));
    points.map(|at| Mark { at, ttl: Ttl::FiveMinutes }).collect()
}
