//! When memories are extracted behind a turn: one run at a time, the latest turn pending, nothing twice.

use agent_core::EntryId;
use serde::{Deserialize, Serialize};

/// Most steps of a run that extracts memories (requirement C3).
pub const EXTRACTION_STEPS: u32 = 5;

/// What a turn looked like when it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "facts that a driver fills in")]
pub struct TurnFacts {
    /// The first entry that is not in the history yet.
    pub end: EntryId,
    /// Whether the model ended the turn itself, with an answer without calls.
    pub came_to_rest: bool,
    /// The last entry in which the main agent wrote a memory itself, in this turn or before; see
    /// [`crate::is_memory_write`].
    pub wrote: Option<EntryId>,
}

/// What outlives the process: how far memories were extracted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a record, extended only with serde defaults")]
pub struct AutoState {
    /// The first entry that no run has looked at.
    pub cursor: EntryId,
}

impl Default for AutoState {
    fn default() -> Self {
        Self { cursor: EntryId::at(0) }
    }
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must handle each")]
pub enum AutoDecision {
    /// Begin a run, and report its end to [`AutoMemory::finished`].
    Run(Extraction),
    /// A run is at work; this turn is looked at when it ends, unless a later one takes its place.
    Pending,
    /// Nothing to do.
    Skip(AutoSkip),
}

/// A run that extracts memories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "told to a driver and to who watches")]
pub struct Extraction {
    /// The first entry to look at.
    pub from: EntryId,
    /// The first entry behind those to look at.
    pub to: EntryId,
    /// Whether it looks at turns that ended while another run was at work.
    pub is_trailing: bool,
}

/// Why nothing is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "told to who watches")]
pub enum AutoSkip {
    /// The turn was stopped, failed or waits: it is looked at with the next one.
    NotAtRest,
    /// The main agent wrote memories itself, so it has seen to these entries.
    WroteItself,
    /// There is nothing behind the cursor.
    NothingNew,
    /// No turn is pending.
    Idle,
}

/// The one who decides for a session (requirement C3). All its state is in the value.
///
/// ```
/// use agent_core::EntryId;
/// use agent_memory::{AutoDecision, AutoMemory, AutoState, Extraction, TurnFacts};
///
/// let mut auto = AutoMemory::new(AutoState::default());
/// let turn = |end| TurnFacts { end: EntryId::at(end), came_to_rest: true, wrote: None };
/// assert!(matches!(auto.turn_ended(turn(4)), AutoDecision::Run(_)));
/// // Two turns end while that run is at work; the second holds what the first would have shown.
/// assert_eq!(auto.turn_ended(turn(8)), AutoDecision::Pending);
/// assert_eq!(auto.turn_ended(turn(12)), AutoDecision::Pending);
/// let trailing = Extraction { from: EntryId::at(4), to: EntryId::at(12), is_trailing: true };
/// assert_eq!(auto.finished(true), AutoDecision::Run(trailing));
/// ```
#[derive(Debug, Clone, Default)]
pub struct AutoMemory {
    state: AutoState,
    running: Option<Extraction>,
    pending: Option<TurnFacts>,
}

impl AutoMemory {
    /// One that goes on from what was kept; [`AutoState::default`] for a new session. A run that a dead process had begun
    /// did not move the cursor, so its entries are looked at behind the next turn.
    pub fn new(state: AutoState) -> Self {
        Self { state, running: None, pending: None }
    }

    /// A turn ended.
    pub fn turn_ended(&mut self, turn: TurnFacts) -> AutoDecision {
        if !turn.came_to_rest {
            return AutoDecision::Skip(AutoSkip::NotAtRest);
        }
        if self.running.is_some() {
            // The later turn takes the place of the one before, and what was written in that stays written.
            let wrote = turn.wrote.max(self.pending.and_then(|pending| pending.wrote));
            self.pending = Some(TurnFacts { wrote, ..turn });
            return AutoDecision::Pending;
        }
        self.look(turn, false)
    }

    /// The run ended. One that failed leaves the cursor, so its entries are looked at again behind the next turn. The answer
    /// says what to do about the turn that ended meanwhile, if one did.
    pub fn finished(&mut self, succeeded: bool) -> AutoDecision {
        if let Some(run) = self.running.take().filter(|_| succeeded) {
            self.state.cursor = self.state.cursor.max(run.to);
        }
        match self.pending.take() {
            Some(turn) => self.look(turn, true),
            None => AutoDecision::Skip(AutoSkip::Idle),
        }
    }

    fn look(&mut self, turn: TurnFacts, is_trailing: bool) -> AutoDecision {
        let from = self.state.cursor;
        if turn.end <= from {
            return AutoDecision::Skip(AutoSkip::NothingNew);
        }
        if turn.wrote.is_some_and(|wrote| wrote >= from) {
            self.state.cursor = turn.end;
            return AutoDecision::Skip(AutoSkip::WroteItself);
        }
        let run = Extraction { from, to: turn.end, is_trailing };
        self.running = Some(run);
        AutoDecision::Run(run)
    }

    /// What to keep.
    pub fn state(&self) -> &AutoState {
        &self.state
    }

    /// The run that is at work.
    pub fn running(&self) -> Option<&Extraction> {
        self.running.as_ref()
    }

    /// Whether nothing is at work or pending: what a program that ends waits for.
    pub fn is_idle(&self) -> bool {
        self.running.is_none() && self.pending.is_none()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn turn(end: usize, wrote: Option<usize>) -> TurnFacts {
        TurnFacts { end: EntryId::at(end), came_to_rest: true, wrote: wrote.map(EntryId::at) }
    }

    fn run(from: usize, to: usize, is_trailing: bool) -> AutoDecision {
        AutoDecision::Run(Extraction { from: EntryId::at(from), to: EntryId::at(to), is_trailing })
    }

    #[test]
    fn a_turn_is_looked_at_once() {
        let mut auto = AutoMemory::default();
        assert_eq!(auto.turn_ended(turn(4, None)), run(0, 4, false));
        assert_eq!(auto.finished(true), AutoDecision::Skip(AutoSkip::Idle));
        assert_eq!(auto.turn_ended(turn(4, None)), AutoDecision::Skip(AutoSkip::NothingNew));
        assert_eq!(auto.turn_ended(turn(9, None)), run(4, 9, false));
        assert_eq!(auto.finished(false), AutoDecision::Skip(AutoSkip::Idle));
        assert_eq!(auto.state().cursor, EntryId::at(4), "what failed is looked at again");
        assert_eq!(auto.turn_ended(turn(12, None)), run(4, 12, false));
        assert!(!auto.is_idle());
    }

    #[test]
    fn what_did_not_come_to_rest_is_looked_at_with_the_next_one() {
        let mut auto = AutoMemory::default();
        let stopped = TurnFacts { came_to_rest: false, ..turn(4, None) };
        assert_eq!(auto.turn_ended(stopped), AutoDecision::Skip(AutoSkip::NotAtRest));
        assert_eq!(auto.turn_ended(turn(9, None)), run(0, 9, false));
    }

    #[test]
    fn who_wrote_memories_itself_is_not_followed() {
        let skip = AutoDecision::Skip(AutoSkip::WroteItself);
        let mut auto = AutoMemory::default();
        assert_eq!(auto.turn_ended(turn(4, Some(2))), skip);
        assert_eq!(auto.turn_ended(turn(9, Some(2))), run(4, 9, false), "that was before the cursor");
        // Written in a turn whose place a later one took.
        assert_eq!(auto.turn_ended(turn(12, Some(10))), AutoDecision::Pending);
        assert_eq!(auto.turn_ended(turn(15, None)), AutoDecision::Pending);
        assert_eq!(auto.finished(true), skip);
        assert_eq!(auto.state().cursor, EntryId::at(15));
        assert!(auto.is_idle());
    }

    proptest! {
        /// One run at a time, the cursor never goes back, and with all runs ended well nothing is left behind it.
        #[test]
        fn any_sequence_of_turns(events in proptest::collection::vec((0usize..4, any::<bool>(), any::<bool>()), 1..40)) {
            let (mut auto, mut end, mut rested, mut cursor) = (AutoMemory::default(), 0, 0, EntryId::at(0));
            for (grown, yes, ends) in events {
                if ends && !auto.is_idle() {
                    auto.finished(yes);
                } else {
                    end += grown;
                    let facts = TurnFacts { came_to_rest: yes, ..turn(end, (grown == 3).then(|| end - 1)) };
                    rested = if yes { end } else { rested };
                    let was_running = auto.running().is_some();
                    let decision = auto.turn_ended(facts);
                    prop_assert!(!was_running || !matches!(decision, AutoDecision::Run(_)));
                }
                prop_assert!(auto.state().cursor >= cursor);
                prop_assert!(auto.state().cursor <= EntryId::at(rested), "past a turn that did not come to rest");
                cursor = auto.state().cursor;
            }
            end += 1;
            auto.turn_ended(turn(end, None));
            while auto.running().is_some() {
                auto.finished(true);
            }
            prop_assert!(auto.is_idle());
            prop_assert_eq!(auto.state().cursor, EntryId::at(end));
        }
    }
}
