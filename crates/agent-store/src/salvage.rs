//! What can be read of a session whose rows are damaged.

use agent_core::{
    Checkpoint, Event, InputId, JournalRecord, Revision, RoundSummary, SessionMeta, StoredInput,
    TerminalReason, Usage,
};

use crate::StoreError;

/// All that can be read of a session, and why the rest cannot.
#[derive(Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "returned by every store")]
pub struct Salvaged {
    /// What was fixed at its beginning; `None` when it cannot be read.
    pub meta: Option<SessionMeta>,
    /// How many commits it has.
    pub revision: Revision,
    /// The entries that can be read as text, each with its position.
    pub entries: Vec<(u64, String)>,
    /// The state at the last commit; `None` when it cannot be read.
    pub checkpoint: Option<Checkpoint>,
    /// What was journaled since, in order; empty when not all of it can be read.
    pub journal: Vec<JournalRecord>,
    /// What was said to it and no commit has used.
    pub inputs: Vec<StoredInput>,
    /// The keys of inputs that commits have used, each with the input's number, in order.
    pub used: Vec<(InputId, String)>,
    /// The number of the last input there was; 0 when there was none.
    pub last_input: u64,
    /// Why the last turn ended.
    pub terminal: Option<TerminalReason>,
    /// The durable events that can be read, in order.
    pub events: Vec<Event>,
    /// The usage that commits recorded, each with the revision it led to, in order.
    pub usage: Vec<(Revision, Usage)>,
    /// What was said of its turns, in their order.
    pub rounds: Vec<RoundSummary>,
    /// What cannot be read, each a row.
    pub damage: Vec<StoreError>,
}
