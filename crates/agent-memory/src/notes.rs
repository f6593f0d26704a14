//! When session notes are written: decisions from counts, made without a clock, a model or a file.

use agent_core::EntryId;
use serde::{Deserialize, Serialize};

/// How much must have happened before the notes are written (requirement C2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::exhaustive_structs, reason = "a config struct: a literal with ..NotesPolicy::default()")]
pub struct NotesPolicy {
    /// Tokens in the context before the first run.
    pub first: u64,
    /// Tokens by which the context must have grown since the last run. Always required.
    pub then: u64,
    /// Tool calls since the last run that stand in for a natural break.
    pub calls: u64,
}

impl Default for NotesPolicy {
    fn default() -> Self {
        Self { first: 10_000, then: 5_000, calls: 10 }
    }
}

/// What a session looks like at a commit: counts of the whole session, so that one that is missed does no harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "facts that a driver fills in")]
pub struct NotesFacts {
    /// Tokens in the context now.
    pub tokens: u64,
    /// Tool calls of the session so far.
    pub calls: u64,
    /// Whether the model has just answered without a call.
    pub at_break: bool,
    /// The first entry that is not in the history yet: what a run that begins now covers ends before it.
    pub end: EntryId,
}

/// What is known of the last run. Kept beside the notes, so that it outlives the process; see
/// [`crate::NotesFile::save`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::exhaustive_structs, reason = "a record, extended only with serde defaults")]
pub struct NotesState {
    /// The first entry that the notes do not cover; `None` before the first run that succeeded.
    pub covers_to: Option<EntryId>,
    /// Tokens in the context when the last run began; after a compaction, what is left of them.
    pub tokens: u64,
    /// Tool calls of the session when it began.
    pub calls: u64,
    /// Runs that were begun.
    pub runs: u64,
}

/// What to do at a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must handle each")]
pub enum NotesDecision {
    /// Begin a run on the history as it is now, and report its end to [`NotesKeeper::finished`].
    Run(NotesRun),
    /// A run is at work; this commit is looked at when it ends (writers queue).
    Queued,
    /// Not yet.
    Wait(NotesWait),
}

/// A run of the one who writes the notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "told to a driver and to who watches")]
pub struct NotesRun {
    /// The first entry that the notes do not cover so far; `None` for the first run, which covers all.
    pub from: Option<EntryId>,
    /// What [`NotesState::covers_to`] is when it succeeds.
    pub to: EntryId,
    /// Tokens in the context when it begins.
    pub tokens: u64,
    /// By how many tokens the context has grown since the last run.
    pub grown: u64,
    /// Tool calls since the last run.
    pub calls: u64,
    /// What let it begin beside the tokens.
    pub because: NotesTrigger,
}

/// What let a run begin, the tokens given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the two conditions of requirement C2")]
pub enum NotesTrigger {
    /// Enough tool calls.
    Calls,
    /// The model answered without a call.
    Break,
}

/// What is lacking, the first thing of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the three conditions of requirement C2")]
pub enum NotesWait {
    /// So many tokens to the first run.
    First {
        /// Tokens that are lacking.
        tokens: u64,
    },
    /// So many tokens of growth since the last run.
    Growth {
        /// Tokens that are lacking.
        tokens: u64,
    },
    /// So many tool calls, or a natural break.
    Trigger {
        /// Calls that are lacking.
        calls: u64,
    },
}

impl NotesPolicy {
    /// The decision from the counts alone: the tokens are always required, and then either the calls or a break.
    pub fn decide(&self, state: &NotesState, facts: &NotesFacts) -> NotesDecision {
        if state.runs == 0 && facts.tokens < self.first {
            return NotesDecision::Wait(NotesWait::First { tokens: self.first - facts.tokens });
        }
        let grown = facts.tokens.saturating_sub(state.tokens);
        if grown < self.then {
            return NotesDecision::Wait(NotesWait::Growth { tokens: self.then - grown });
        }
        let calls = facts.calls.saturating_sub(state.calls);
        let because = if calls >= self.calls {
            NotesTrigger::Calls
        } else if facts.at_break {
            NotesTrigger::Break
        } else {
            return NotesDecision::Wait(NotesWait::Trigger { calls: self.calls - calls });
        };
        let NotesFacts { tokens, end: to, .. } = *facts;
        NotesDecision::Run(NotesRun { from: state.covers_to, to, tokens, grown, calls, because })
    }
}

/// The one who decides for a session: at most one run at a time, and what happens meanwhile is looked at when it ends.
///
/// ```
/// use agent_core::EntryId;
/// use agent_memory::{NotesDecision, NotesFacts, NotesKeeper, NotesPolicy, NotesState};
///
/// let mut keeper = NotesKeeper::new(NotesPolicy::default(), NotesState::default());
/// let facts = |tokens, end| NotesFacts { tokens, calls: 0, at_break: true, end: EntryId::at(end) };
/// assert!(matches!(keeper.committed(facts(9_999, 4)), NotesDecision::Wait(_)));
/// let NotesDecision::Run(run) = keeper.committed(facts(10_000, 6)) else { unreachable!("it is time") };
/// assert_eq!(keeper.committed(facts(15_000, 8)), NotesDecision::Queued);
///
/// // The run ended well. What was committed meanwhile is reason enough for the next one.
/// let next = keeper.finished(true);
/// assert_eq!(keeper.state().covers_to, Some(run.to));
/// assert!(matches!(next, NotesDecision::Run(next) if next.from == Some(run.to)));
/// ```
#[derive(Debug, Clone)]
pub struct NotesKeeper {
    policy: NotesPolicy,
    state: NotesState,
    running: Option<NotesRun>,
    latest: Option<NotesFacts>,
}

impl NotesKeeper {
    /// One that goes on from what was kept; [`NotesState::default`] for a new session. A run that a dead process had begun
    /// is begun again when its conditions are met once more.
    pub fn new(policy: NotesPolicy, state: NotesState) -> Self {
        Self { policy, state, running: None, latest: None }
    }

    /// A commit was made. On [`NotesDecision::Run`] the run counts as begun, and [`NotesKeeper::state`] should be kept when
    /// it ends.
    pub fn committed(&mut self, facts: NotesFacts) -> NotesDecision {
        // After a compaction the context is smaller than it was, and growth is measured from there.
        self.state.tokens = self.state.tokens.min(facts.tokens);
        if self.running.is_some() {
            // A break stays one until it is looked at: what came behind it does not take it back.
            let was_break = self.latest.is_some_and(|latest| latest.at_break);
            self.latest = Some(NotesFacts { at_break: facts.at_break || was_break, ..facts });
            return NotesDecision::Queued;
        }
        let decision = self.policy.decide(&self.state, &facts);
        if let NotesDecision::Run(run) = decision {
            self.state.tokens = facts.tokens;
            self.state.calls = facts.calls;
            self.state.runs = self.state.runs.saturating_add(1);
            self.running = Some(run);
        }
        decision
    }

    /// The run ended. One that failed covers nothing new, and the next one waits for the same growth again, so that a model
    /// that cannot write notes is not asked at every step. What was committed meanwhile is looked at now; without a run at
    /// work nothing changes, and the answer is what is lacking.
    pub fn finished(&mut self, succeeded: bool) -> NotesDecision {
        if let Some(run) = self.running.take().filter(|_| succeeded) {
            self.state.covers_to = Some(run.to);
        }
        match self.latest.take() {
            Some(facts) => self.committed(facts),
            None => NotesDecision::Wait(NotesWait::Growth { tokens: self.policy.then }),
        }
    }

    /// The run came to nothing, and nobody is there to begin another: what was committed meanwhile is not looked at. The next
    /// commit is.
    pub fn abandoned(&mut self) {
        (self.running, self.latest) = (None, None);
    }

    /// What to keep.
    pub fn state(&self) -> &NotesState {
        &self.state
    }

    /// The run that is at work.
    pub fn running(&self) -> Option<&NotesRun> {
        self.running.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn facts(tokens: u64, calls: u64, at_break: bool) -> NotesFacts {
        NotesFacts { tokens, calls, at_break, end: EntryId::at(tokens as usize) }
    }

    /// Every threshold, one below it and at it.
    #[test]
    fn the_tokens_are_always_required_and_then_calls_or_a_break() {
        use NotesWait::{First, Growth, Trigger};
        let fresh = NotesState::default();
        let ran = NotesState { covers_to: None, tokens: 10_000, calls: 20, runs: 1 };
        let wait = |state: NotesState, tokens, calls, at_break, expect| {
            let decided = NotesPolicy::default().decide(&state, &facts(tokens, calls, at_break));
            assert_eq!(decided, NotesDecision::Wait(expect), "{tokens} {calls} {at_break}");
        };
        let run = |state: NotesState, tokens, calls, at_break, expect| {
            let decided = NotesPolicy::default().decide(&state, &facts(tokens, calls, at_break));
            assert!(
                matches!(decided, NotesDecision::Run(run) if run.because == expect),
                "{tokens}: {decided:?}"
            );
        };
        wait(fresh, 0, 0, true, First { tokens: 10_000 });
        wait(fresh, 9_999, 100, true, First { tokens: 1 });
        wait(fresh, 10_000, 9, false, Trigger { calls: 1 });
        run(fresh, 10_000, 0, true, NotesTrigger::Break);
        run(fresh, 10_000, 10, false, NotesTrigger::Calls);
        wait(ran, 14_999, 120, true, Growth { tokens: 1 });
        wait(ran, 14_999, 30, false, Growth { tokens: 1 });
        wait(ran, 15_000, 29, false, Trigger { calls: 1 });
        run(ran, 15_000, 30, false, NotesTrigger::Calls);
        run(ran, 15_000, 20, true, NotesTrigger::Break);
        wait(ran, 4_000, 500, true, Growth { tokens: 5_000 });
        let own = NotesPolicy { first: 10, then: 4, calls: 1 };
        let decided = own.decide(&fresh, &facts(10, 1, false));
        assert!(matches!(decided, NotesDecision::Run(run) if run.grown == 10 && run.calls == 1));
    }

    #[test]
    fn growth_is_measured_from_what_a_compaction_left() {
        let kept = NotesState { covers_to: None, tokens: 90_000, calls: 0, runs: 3 };
        let mut keeper = NotesKeeper::new(NotesPolicy::default(), kept);
        let decision = keeper.committed(facts(20_000, 50, true));
        assert_eq!(decision, NotesDecision::Wait(NotesWait::Growth { tokens: 5_000 }));
        assert!(matches!(keeper.committed(facts(25_000, 50, true)), NotesDecision::Run(_)));
    }

    #[test]
    fn a_failed_run_covers_nothing_and_is_not_tried_at_every_step() {
        let mut keeper = NotesKeeper::new(NotesPolicy::default(), NotesState::default());
        assert!(matches!(keeper.committed(facts(10_000, 0, true)), NotesDecision::Run(_)));
        assert!(matches!(keeper.finished(false), NotesDecision::Wait(_)));
        assert_eq!(keeper.state().covers_to, None);
        assert!(matches!(keeper.committed(facts(14_999, 0, true)), NotesDecision::Wait(_)));
        let NotesDecision::Run(run) = keeper.committed(facts(15_000, 0, true)) else { panic!("again") };
        assert_eq!((run.from, run.to), (None, EntryId::at(15_000)));
    }

    #[test]
    fn what_is_kept_is_read_in_the_next_process() {
        let state = NotesState { covers_to: Some(EntryId::at(7)), tokens: 1, calls: 2, runs: 3 };
        let text = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<NotesState>(&text).unwrap(), state);
        assert_eq!(serde_json::from_str::<NotesState>("{}").unwrap(), NotesState::default());
    }

    proptest! {
        /// One run at a time; what is covered only grows; and no run begins without its tokens.
        #[test]
        fn any_sequence_of_commits(steps in proptest::collection::vec((0u64..9_000, 0u64..8, any::<bool>(), 0u8..4), 1..60)) {
            let policy = NotesPolicy::default();
            let mut keeper = NotesKeeper::new(policy, NotesState::default());
            let (mut tokens, mut calls, mut end, mut covered) = (0, 0, 0, None);
            for (more, called, at_break, event) in steps {
                let was_running = keeper.running().is_some();
                let decision = if event == 0 && was_running {
                    keeper.finished(more % 2 == 0)
                } else {
                    (tokens, calls, end) = (if event == 1 { tokens / 3 } else { tokens + more }, calls + called, end + 1);
                    keeper.committed(NotesFacts { tokens, calls, at_break, end: EntryId::at(end) })
                };
                if let NotesDecision::Run(run) = decision {
                    prop_assert!(run.grown >= policy.then && (run.calls >= policy.calls || run.because == NotesTrigger::Break));
                    prop_assert!(event == 0 || !was_running);
                }
                prop_assert!(keeper.state().covers_to >= covered);
                covered = keeper.state().covers_to;
            }
        }
    }
}
