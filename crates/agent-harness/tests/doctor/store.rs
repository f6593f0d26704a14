//! A store in memory that says it is durable, and can be made to lie.

use agent_core::{
    BlobHash, Checkpoint, Commit, Committed, Event, Input, InputId, JournalRecord, Revision, RoundSummary,
    SessionId, SessionMeta, SessionRecord, SessionState, StoredInput, Usage,
};
use agent_store::{Fork, Lease, MemoryStore, Store, StoreError, SummaryLine, WholeSession};
use async_trait::async_trait;

#[derive(Debug, Default)]
pub(super) struct Durable {
    pub(super) store: MemoryStore,
    /// Whether no entry is given back.
    pub(super) forgets: bool,
    /// Whether nothing can be written.
    pub(super) is_full: bool,
}

#[async_trait]
impl Store for Durable {
    async fn lease(&self, session: &SessionId) -> Result<Lease, StoreError> {
        self.store.lease(session).await
    }
    async fn create(
        &self,
        lease: &Lease,
        meta: &SessionMeta,
        state: &Checkpoint,
    ) -> Result<Revision, StoreError> {
        if self.is_full { Err(StoreError::Closed) } else { self.store.create(lease, meta, state).await }
    }
    async fn load(&self, session: &SessionId) -> Result<Option<SessionRecord>, StoreError> {
        let mut record = self.store.load(session).await?;
        if let (true, Some(record)) = (self.forgets, &mut record) {
            record.entries.clear();
        }
        Ok(record)
    }
    async fn commit(&self, lease: &Lease, commit: Commit<'_>) -> Result<Committed, StoreError> {
        self.store.commit(lease, commit).await
    }
    async fn journal(
        &self,
        lease: &Lease,
        records: &[JournalRecord],
        events: &[Event],
    ) -> Result<(), StoreError> {
        self.store.journal(lease, records, events).await
    }
    async fn withdraw_attempt(&self, lease: &Lease) -> Result<(), StoreError> {
        self.store.withdraw_attempt(lease).await
    }

    async fn reset_attempts(&self, session: &SessionId) -> Result<(), StoreError> {
        self.store.reset_attempts(session).await
    }

    async fn meta(&self, session: &SessionId) -> Result<Option<SessionMeta>, StoreError> {
        self.store.meta(session).await
    }

    async fn state(&self, session: &SessionId) -> Result<Option<SessionState>, StoreError> {
        self.store.state(session).await
    }

    async fn put_input(&self, session: &SessionId, input: &Input) -> Result<InputId, StoreError> {
        self.store.put_input(session, input).await
    }

    async fn inputs(&self, session: &SessionId) -> Result<Vec<StoredInput>, StoreError> {
        self.store.inputs(session).await
    }

    async fn put_round(&self, session: &SessionId, round: &RoundSummary) -> Result<(), StoreError> {
        self.store.put_round(session, round).await
    }

    async fn rounds(&self, session: &SessionId) -> Result<Vec<RoundSummary>, StoreError> {
        self.store.rounds(session).await
    }

    async fn events(&self, session: &SessionId, after_seq: u64) -> Result<Vec<Event>, StoreError> {
        self.store.events(session, after_seq).await
    }
    async fn usage(&self, session: &SessionId) -> Result<Vec<(Revision, Usage)>, StoreError> {
        self.store.usage(session).await
    }
    async fn sessions(&self) -> Result<Vec<SummaryLine>, StoreError> {
        self.store.sessions().await
    }
    async fn delete(&self, lease: Lease) -> Result<(), StoreError> {
        self.store.delete(lease).await
    }
    async fn fork(&self, lease: &Lease, fork: Fork<'_>) -> Result<Revision, StoreError> {
        if self.is_full { Err(StoreError::Closed) } else { self.store.fork(lease, fork).await }
    }
    async fn import(&self, lease: &Lease, whole: WholeSession) -> Result<Revision, StoreError> {
        if self.is_full { Err(StoreError::Closed) } else { self.store.import(lease, whole).await }
    }
    async fn blobs(&self, session: &SessionId) -> Result<Vec<BlobHash>, StoreError> {
        self.store.blobs(session).await
    }
    async fn put_blob(&self, session: &SessionId, bytes: &[u8]) -> Result<BlobHash, StoreError> {
        self.store.put_blob(session, bytes).await
    }
    async fn get_blob(&self, hash: &BlobHash) -> Result<Option<Vec<u8>>, StoreError> {
        self.store.get_blob(hash).await
    }
}
