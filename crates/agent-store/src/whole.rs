//! A session as a whole, to be created with all it has.

use std::collections::BTreeMap;

use agent_core::{
    Checkpoint, Event, InputId, JournalRecord, Revision, RoundSummary, SessionMeta, StoredInput,
    TerminalReason, Usage,
};

use crate::{Lease, StoreError, write};

/// A session with all that a store keeps of it, as another store had it (requirement D7).
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "an argument record, written as a literal")]
pub struct WholeSession {
    /// What was fixed at its beginning.
    pub meta: SessionMeta,
    /// How many commits it has. It counts at least those that `usage` names.
    pub revision: Revision,
    /// Its entries, as the very text that is stored, in order.
    pub entries: Vec<String>,
    /// The state at the last commit.
    pub checkpoint: Checkpoint,
    /// What was journaled since, in order.
    pub journal: Vec<JournalRecord>,
    /// What was said to it and no commit has used.
    pub inputs: Vec<StoredInput>,
    /// The keys of inputs that commits have used, each with the input's number.
    pub used: Vec<(InputId, String)>,
    /// The number of the last input there was, or less: those of `inputs` and `used` count too.
    pub last_input: u64,
    /// Why the last turn ended.
    pub terminal: Option<TerminalReason>,
    /// The durable events, numbered from 1 without a gap.
    pub events: Vec<Event>,
    /// The usage that commits recorded, by the revision they led to.
    pub usage: BTreeMap<Revision, Usage>,
    /// What was said of its turns.
    pub rounds: Vec<RoundSummary>,
    /// What it keeps in the blob store.
    pub blobs: Vec<Vec<u8>>,
    /// The time, milliseconds since 1970 UTC: when it was last written to.
    pub now_ms: i64,
}

impl WholeSession {
    /// How many commits it has.
    pub(crate) fn newest(&self) -> Revision {
        let used = self.usage.last_key_value().map_or(Revision(0), |(revision, _)| *revision);
        self.revision.max(used)
    }

    /// The number of the last input there was.
    pub(crate) fn newest_input(&self) -> u64 {
        let used = self.used.iter().map(|(id, _)| id.0);
        self.inputs.iter().map(|input| input.id.0).chain(used).fold(self.last_input, u64::max)
    }

    /// Whether a store may create it under this lease: its own name, and no two inputs of one number or one key.
    pub(crate) fn check(&self, lease: &Lease) -> Result<(), StoreError> {
        write::own(lease.session(), &self.meta.id)?;
        let mut keys = std::collections::BTreeSet::new();
        let mut ids = std::collections::BTreeSet::new();
        let open = self.inputs.iter().map(|stored| (stored.id, stored.input.key()));
        for (id, key) in open.chain(self.used.iter().map(|(id, key)| (*id, Some(key.as_str())))) {
            let session = lease.session().clone();
            if !ids.insert(id) || id.0 == 0 {
                return Err(StoreError::NoInput { session, input: id.0 });
            }
            if let Some(key) = key
                && !keys.insert(key)
            {
                return Err(StoreError::Repeated { session, key: key.to_owned() });
            }
        }
        Ok(())
    }
}
