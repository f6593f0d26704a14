//! Breakpoints for the requests of one session, worked out from what is new.

use agent_core::{CacheProfile, HistoryView, Mark};

use crate::plan::{Lifetimes, Shape, last_mark, pieces, plan};

/// Plans the breakpoints of one session's requests, one after the other (requirement A5).
///
/// What it says follows from the history alone, so that a process that takes a session up plans what the one before
/// planned.
#[derive(Debug, Clone)]
pub struct Planner {
    lifetimes: Lifetimes,
}

/// What of a request lies before its conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "an argument record, written as a literal by drivers")]
pub struct Opening {
    /// Whether it has tools.
    pub tools: bool,
    /// The system block behind which a breakpoint goes: the last one that stays the same in other sessions too.
    pub system: Option<usize>,
}

impl Planner {
    /// A planner for a session that was not looked at yet.
    pub fn new(lifetimes: Lifetimes) -> Self {
        Self { lifetimes }
    }

    /// The breakpoints of the next request; see [`plan()`].
    pub fn plan(&mut self, profile: &CacheProfile, opening: Opening, view: HistoryView<'_>) -> Vec<Mark> {
        let CacheProfile::Marked { collapse_runs, .. } = profile else { return Vec::new() };
        let pieces = pieces(view, *collapse_runs);
        let written: Vec<_> = last_mark(view).into_iter().collect();
        let Opening { tools, system } = opening;
        plan(profile, &Shape { tools, system, pieces: &pieces, written: &written, lifetimes: self.lifetimes })
    }
}
