//! A store that a run may write to without anything being written.

use std::sync::Arc;

use agent_core::{
    BlobHash, Checkpoint, Commit, Committed, Event, Input, InputId, JournalRecord, Revision, RoundSummary,
    SessionId, SessionMeta, SessionRecord, SessionState, StoredInput, Usage,
};
use agent_store::{Fork, Lease, MemoryStore, Store, StoreError, SummaryLine, WholeSession};
use async_trait::async_trait;

/// One session as it was loaded, in front of the store it came from: reads go through, writes go nowhere.
#[derive(Debug)]
pub(crate) struct Shadow {
    record: Option<SessionRecord>,
    store: Arc<dyn Store>,
    /// Gives leases of its own and keeps large outputs until the run is over.
    scratch: MemoryStore,
}

impl Shadow {
    pub(crate) fn new(record: Option<SessionRecord>, store: Arc<dyn Store>) -> Self {
        Self { record, store, scratch: MemoryStore::new() }
    }
}

#[async_trait]
impl Store for Shadow {
    async fn lease(&self, session: &SessionId) -> Result<Lease, StoreError> {
        let lease = self.scratch.lease(session).await?;
        if let Some(record) = &self.record {
            self.scratch.create(&lease, &record.meta, &record.checkpoint).await?;
        }
        Ok(lease)
    }

    async fn create(
        &self,
        lease: &Lease,
        meta: &SessionMeta,
        checkpoint: &Checkpoint,
    ) -> Result<Revision, StoreError> {
        self.scratch.create(lease, meta, checkpoint).await
    }

    async fn load(&self, _session: &SessionId) -> Result<Option<SessionRecord>, StoreError> {
        Ok(self.record.clone())
    }

    async fn commit(&self, _lease: &Lease, commit: Commit<'_>) -> Result<Committed, StoreError> {
        Ok(Committed { revision: Revision(commit.expect.0 + 1), has_inputs: false })
    }

    async fn journal(
        &self,
        _lease: &Lease,
        _records: &[JournalRecord],
        _events: &[Event],
    ) -> Result<(), StoreError> {
        Ok(())
    }

    async fn withdraw_attempt(&self, lease: &Lease) -> Result<(), StoreError> {
        self.scratch.withdraw_attempt(lease).await
    }

    async fn reset_attempts(&self, session: &SessionId) -> Result<(), StoreError> {
        self.scratch.reset_attempts(session).await
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
        self.scratch.delete(lease).await
    }

    async fn fork(&self, lease: &Lease, fork: Fork<'_>) -> Result<Revision, StoreError> {
        self.scratch.fork(lease, fork).await
    }

    async fn import(&self, lease: &Lease, whole: WholeSession) -> Result<Revision, StoreError> {
        self.scratch.import(lease, whole).await
    }

    async fn blobs(&self, session: &SessionId) -> Result<Vec<BlobHash>, StoreError> {
        self.store.blobs(session).await
    }

    async fn put_blob(&self, session: &SessionId, bytes: &[u8]) -> Result<BlobHash, StoreError> {
        self.scratch.put_blob(session, bytes).await
    }

    async fn get_blob(&self, hash: &BlobHash) -> Result<Option<Vec<u8>>, StoreError> {
        match self.scratch.get_blob(hash).await? {
            Some(bytes) => Ok(Some(bytes)),
            None => self.store.get_blob(hash).await,
        }
    }
}
