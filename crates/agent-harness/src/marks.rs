//! Where cache breakpoints go until a planner decides.

use agent_core::{CacheProfile, Entry, EntryId, History, Mark, MarkPoint, ModelProfile, Ttl};

/// One breakpoint behind the stable start, one at the end of the history, and one where the last request ended, so
/// that its cache entry is found even when a step added many blocks. All live five minutes.
///
/// They follow from the history alone: a process that takes a session up sends the very bytes the one before it sent.
pub(crate) fn marks(profile: &ModelProfile, has_system: bool, history: &History) -> Vec<Mark> {
    if !matches!(profile.cache, CacheProfile::Marked { .. }) {
        return Vec::new();
    }
    let entries = history.entries();
    let last = entries.len().checked_sub(1);
    // The last step answered a request that ended with the entry before it.
    let answered = entries.iter().rposition(|entry| matches!(entry, Entry::Step(_)));
    let bridge = answered.and_then(|step| step.checked_sub(1));
    let stable = if has_system { MarkPoint::System(0) } else { MarkPoint::Tools };
    let points = [bridge, last].into_iter().flatten().map(|at| MarkPoint::Entry(EntryId::at(at)));
    std::iter::once(stable).chain(points).map(|at| Mark { at, ttl: Ttl::FiveMinutes }).collect()
}

#[cfg(test)]
mod tests {
    use agent_core::{AssistantPart, Response, StepRecord, UserMessage};

    use super::*;

    #[test]
    fn marks_follow_from_the_history() {
        let mut profile = ModelProfile::conservative("p", "m");
        profile.cache =
            CacheProfile::Marked { max_marks: 4, min_tokens: 1024, lookback: 20, collapse_runs: true };
        let mut history = History::new();
        let mut check = |entry: Entry, expect: &[usize]| {
            history.push(entry).unwrap();
            let at: Vec<_> = marks(&profile, true, &history).iter().map(|mark| mark.at).collect();
            let entries = expect.iter().map(|at| MarkPoint::Entry(EntryId::at(*at)));
            assert_eq!(at, std::iter::once(MarkPoint::System(0)).chain(entries).collect::<Vec<_>>());
        };
        let user = || Entry::User(UserMessage::text("u").unwrap());
        let said = || StepRecord::new(Response::of(vec![AssistantPart::text("a").unwrap()]), vec![]).unwrap();
        check(user(), &[0]);
        check(Entry::Step(said()), &[0, 1]);
        check(user(), &[0, 2]);
        check(Entry::Step(said()), &[2, 3]);
        assert!(marks(&ModelProfile::conservative("p", "m"), true, &history).is_empty());
    }
}
