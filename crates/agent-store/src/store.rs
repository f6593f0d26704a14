//! What every store promises.

use std::fmt::Debug;
use std::sync::Arc;

use agent_core::{
    BlobHash, Checkpoint, Commit, Committed, Event, Input, InputId, JournalRecord, Revision, RoundSummary,
    SessionId, SessionMeta, SessionRecord, SessionState, SessionSummary, StoredInput, Usage,
};
use async_trait::async_trait;

use crate::{Lease, Salvaged, StoreError, WholeSession};

/// A session that is to begin as a copy of another one's beginning.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "an argument record, written as a literal by the driver")]
pub struct Fork<'a> {
    /// The session that is copied from.
    pub from: &'a SessionId,
    /// How many of its entries, from the first.
    pub entries: u64,
    /// The state of the new session: between turns.
    pub checkpoint: &'a Checkpoint,
    /// The first durable events of the new session.
    pub events: &'a [Event],
    /// The time, milliseconds since 1970 UTC: when the new session began.
    pub now_ms: i64,
}

/// A line of a session list, or why it cannot be shown.
pub type SummaryLine = Result<SessionSummary, StoreError>;

/// Keeps sessions. Writing needs the session's [`Lease`]; reading needs nothing.
///
/// Every method is atomic: an error means that nothing of it was written. When no answer came, because the
/// future was dropped or the process died, the write has either happened as a whole or not at all;
/// [`Store::load`] tells which.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not keep sessions",
    label = "not a store",
    note = "use `MemoryStore`, `SqliteStore` (feature `sqlite`), or implement `Store` with `#[async_trait]`"
)]
pub trait Store: Debug + Send + Sync {
    /// Takes a session, existing or not, for this worker (requirement D3).
    ///
    /// Answers [`StoreError::Busy`] at once while another worker holds it. The lease lasts until it is dropped
    /// or its process dies; the next one has a higher epoch, and writes with this one are refused from then on.
    ///
    /// Where a turn is open the same write counts an attempt at it, before anything of the session is read
    /// (requirement D5): [`Lease::attempts`]. The count stays whatever is committed while the turn is open, begins anew
    /// when it is over, and a worker that stops in order takes its own attempt back ([`Store::withdraw_attempt`]).
    async fn lease(&self, session: &SessionId) -> Result<Lease, StoreError>;

    /// Creates the session of the lease, at revision 0, without entries and events.
    ///
    /// [`StoreError::Exists`] when there is one.
    async fn create(
        &self,
        lease: &Lease,
        meta: &SessionMeta,
        checkpoint: &Checkpoint,
    ) -> Result<Revision, StoreError>;

    /// The session with its history and its journal as of one moment; `None` when there is none.
    ///
    /// A row that cannot be read is [`StoreError::Corrupt`] and names the row (requirement D8).
    async fn load(&self, session: &SessionId) -> Result<Option<SessionRecord>, StoreError>;

    /// Writes entries, checkpoint, usage, events and the terminal reason in one transaction, empties the journal, takes
    /// what it used from the inbox, and answers the new revision and whether something is left there (requirement D1).
    ///
    /// Refuses, in this order: a lost lease, a session that does not exist, a stale revision, events that do not
    /// continue the stored numbers, and a boundary while a response is journaled (its step would land behind a
    /// rewrite it was not made under).
    async fn commit(&self, lease: &Lease, commit: Commit<'_>) -> Result<Committed, StoreError>;

    /// Appends records to the journal, and durable events with them, in one transaction (requirement D4).
    ///
    /// The revision stays. The next commit empties the journal.
    async fn journal(
        &self,
        lease: &Lease,
        records: &[JournalRecord],
        events: &[Event],
    ) -> Result<(), StoreError>;

    /// Takes back the attempt that the lease counted, because its worker stops in order and did not die of the turn.
    async fn withdraw_attempt(&self, lease: &Lease) -> Result<(), StoreError>;

    /// Forgets the attempts at the open turn, because a person wants it to be taken up again; needs no lease.
    async fn reset_attempts(&self, session: &SessionId) -> Result<(), StoreError>;

    /// What was fixed when the session began; `None` when there is none. A store that has no finer way loads the session.
    async fn meta(&self, session: &SessionId) -> Result<Option<SessionMeta>, StoreError> {
        Ok(self.load(session).await?.map(|record| record.meta))
    }

    /// The session without its entries, as of one moment; `None` when there is none.
    async fn state(&self, session: &SessionId) -> Result<Option<SessionState>, StoreError>;

    /// Keeps something that is said to a session whose turn is open, for the worker that has it or takes it next; needs no
    /// lease (requirement L7). An input that is kept is seen by a later commit of that turn, which cannot end it before.
    ///
    /// Refuses a session that does not exist, one without an open turn ([`StoreError::NoTurn`]), and a second input of one
    /// key ([`StoreError::Repeated`]), whatever became of the first.
    async fn put_input(&self, session: &SessionId, input: &Input) -> Result<InputId, StoreError>;

    /// What was said to a session and no commit has used, in order.
    async fn inputs(&self, session: &SessionId) -> Result<Vec<StoredInput>, StoreError>;

    /// Keeps what was said of a turn, in place of what was said of it before; needs no lease, because it changes nothing that
    /// a worker holds.
    async fn put_round(&self, session: &SessionId, round: &RoundSummary) -> Result<(), StoreError>;

    /// What was said of the turns of a session, in their order.
    async fn rounds(&self, session: &SessionId) -> Result<Vec<RoundSummary>, StoreError>;

    /// The durable events numbered higher than `after_seq`, in order; 0 gives all of them.
    async fn events(&self, session: &SessionId, after_seq: u64) -> Result<Vec<Event>, StoreError>;

    /// The usage that commits recorded, each with the revision it led to, in order.
    async fn usage(&self, session: &SessionId) -> Result<Vec<(Revision, Usage)>, StoreError>;

    /// All sessions, the one written to last first; equal times stand in order of their names. A damaged one is an
    /// item of its own and hides no other (requirement D8).
    async fn sessions(&self) -> Result<Vec<SummaryLine>, StoreError>;

    /// Deletes the session of the lease, its events and the blobs that no other session refers to.
    async fn delete(&self, lease: Lease) -> Result<(), StoreError>;

    /// Creates the session of the lease, at revision 0, as a copy of the first entries of another one: their very bytes, the
    /// same description but for name and time, and the same blobs. What was said of turns goes along where all their entries
    /// do, up to the number that the checkpoint counts turns from; later ones would be those of the new session. Its journal
    /// and its inbox are empty, its usage is what the checkpoint says, and its events are those given (requirement D7).
    ///
    /// Refuses, in this order: a lost lease, a session that exists, a source that does not, more entries than the source has
    /// ([`StoreError::NoEntry`]: the step at work has none yet), and events that do not begin with number 1.
    async fn fork(&self, lease: &Lease, fork: Fork<'_>) -> Result<Revision, StoreError>;

    /// Creates the session of the lease with all it has, in one transaction: what another store had of it, as the bytes it
    /// had there (requirement D7). Answers the revision it has.
    ///
    /// Refuses, in this order: a lost lease, a session that exists, and events that do not begin with number 1 or leave one
    /// out; and before all of them, a session of another name than the lease's, and two inputs of one number or one key.
    async fn import(&self, lease: &Lease, whole: WholeSession) -> Result<Revision, StoreError>;

    /// What a session keeps in the blob store, in order of the hashes.
    async fn blobs(&self, session: &SessionId) -> Result<Vec<BlobHash>, StoreError>;

    /// All that can be read of a session, and what cannot (requirement D8); `None` when there is none. A store that has no
    /// finer way gives the session whole, or its error.
    async fn salvage(&self, session: &SessionId) -> Result<Option<Salvaged>, StoreError> {
        let (Some(record), Some(state)) = (self.load(session).await?, self.state(session).await?) else {
            return Ok(None);
        };
        let mut damage = Vec::new();
        let events = or_damage(self.events(session, 0).await, &mut damage);
        let usage = or_damage(self.usage(session).await, &mut damage);
        let rounds = or_damage(self.rounds(session).await, &mut damage);
        Ok(Some(Salvaged {
            meta: Some(record.meta),
            revision: record.revision,
            entries: (0..).zip(record.entries).collect(),
            checkpoint: Some(record.checkpoint),
            journal: record.journal,
            last_input: record.inputs.last().map_or(0, |input| input.id.0),
            inputs: record.inputs,
            used: Vec::new(),
            terminal: state.terminal,
            events,
            usage,
            rounds,
            damage,
        }))
    }

    /// Keeps bytes under their SHA-256 for as long as a session that put them exists (requirement D6).
    ///
    /// The same bytes are kept once. [`StoreError::Missing`] when the session does not exist.
    async fn put_blob(&self, session: &SessionId, bytes: &[u8]) -> Result<BlobHash, StoreError>;

    /// The bytes, checked against their hash; `None` when no session keeps them.
    async fn get_blob(&self, hash: &BlobHash) -> Result<Option<Vec<u8>>, StoreError>;

    /// Whether sessions outlive this process. True unless a store says otherwise.
    fn is_durable(&self) -> bool {
        true
    }
}

/// What was read, or nothing and why.
fn or_damage<T>(read: Result<Vec<T>, StoreError>, damage: &mut Vec<StoreError>) -> Vec<T> {
    read.unwrap_or_else(|error| {
        damage.push(error);
        Vec::new()
    })
}

#[async_trait]
impl<S: Store + ?Sized> Store for Arc<S> {
    async fn lease(&self, session: &SessionId) -> Result<Lease, StoreError> {
        (**self).lease(session).await
    }
    async fn create(
        &self,
        lease: &Lease,
        meta: &SessionMeta,
        checkpoint: &Checkpoint,
    ) -> Result<Revision, StoreError> {
        (**self).create(lease, meta, checkpoint).await
    }
    async fn load(&self, session: &SessionId) -> Result<Option<SessionRecord>, StoreError> {
        (**self).load(session).await
    }
    async fn commit(&self, lease: &Lease, commit: Commit<'_>) -> Result<Committed, StoreError> {
        (**self).commit(lease, commit).await
    }
    async fn journal(
        &self,
        lease: &Lease,
        records: &[JournalRecord],
        events: &[Event],
    ) -> Result<(), StoreError> {
        (**self).journal(lease, records, events).await
    }
    async fn withdraw_attempt(&self, lease: &Lease) -> Result<(), StoreError> {
        (**self).withdraw_attempt(lease).await
    }
    async fn reset_attempts(&self, session: &SessionId) -> Result<(), StoreError> {
        (**self).reset_attempts(session).await
    }
    async fn meta(&self, session: &SessionId) -> Result<Option<SessionMeta>, StoreError> {
        (**self).meta(session).await
    }
    async fn state(&self, session: &SessionId) -> Result<Option<SessionState>, StoreError> {
        (**self).state(session).await
    }
    async fn put_input(&self, session: &SessionId, input: &Input) -> Result<InputId, StoreError> {
        (**self).put_input(session, input).await
    }
    async fn inputs(&self, session: &SessionId) -> Result<Vec<StoredInput>, StoreError> {
        (**self).inputs(session).await
    }
    async fn put_round(&self, session: &SessionId, round: &RoundSummary) -> Result<(), StoreError> {
        (**self).put_round(session, round).await
    }
    async fn rounds(&self, session: &SessionId) -> Result<Vec<RoundSummary>, StoreError> {
        (**self).rounds(session).await
    }
    async fn events(&self, session: &SessionId, after_seq: u64) -> Result<Vec<Event>, StoreError> {
        (**self).events(session, after_seq).await
    }
    async fn usage(&self, session: &SessionId) -> Result<Vec<(Revision, Usage)>, StoreError> {
        (**self).usage(session).await
    }
    async fn sessions(&self) -> Result<Vec<SummaryLine>, StoreError> {
        (**self).sessions().await
    }
    async fn delete(&self, lease: Lease) -> Result<(), StoreError> {
        (**self).delete(lease).await
    }
    async fn fork(&self, lease: &Lease, fork: Fork<'_>) -> Result<Revision, StoreError> {
        (**self).fork(lease, fork).await
    }
    async fn import(&self, lease: &Lease, whole: WholeSession) -> Result<Revision, StoreError> {
        (**self).import(lease, whole).await
    }
    async fn blobs(&self, session: &SessionId) -> Result<Vec<BlobHash>, StoreError> {
        (**self).blobs(session).await
    }
    async fn salvage(&self, session: &SessionId) -> Result<Option<Salvaged>, StoreError> {
        (**self).salvage(session).await
    }
    async fn put_blob(&self, session: &SessionId, bytes: &[u8]) -> Result<BlobHash, StoreError> {
        (**self).put_blob(session, bytes).await
    }
    async fn get_blob(&self, hash: &BlobHash) -> Result<Option<Vec<u8>>, StoreError> {
        (**self).get_blob(hash).await
    }
    fn is_durable(&self) -> bool {
        (**self).is_durable()
    }
}
