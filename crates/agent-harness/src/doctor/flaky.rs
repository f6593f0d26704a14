//! A store in memory whose writes begin to fail at a chosen one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use agent_core::{
    BlobHash, Checkpoint, Commit, Committed, Event, Input, InputId, JournalRecord, Revision, RoundSummary,
    SessionId, SessionMeta, SessionRecord, SessionState, StoredInput, Usage,
};
use agent_store::{Fork, Lease, MemoryStore, Store, StoreError, SummaryLine, WholeSession};
use async_trait::async_trait;

/// Writes so many times and fails from then on, as a full disk does.
#[derive(Debug)]
pub(super) struct Flaky {
    pub(super) store: Arc<MemoryStore>,
    left: AtomicUsize,
}

impl Flaky {
    pub(super) fn after(writes: usize) -> Self {
        Self { store: Arc::default(), left: AtomicUsize::new(writes) }
    }

    fn write(&self) -> Result<(), StoreError> {
        let taken = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        taken.map(drop).map_err(|_| StoreError::Closed)
    }
}

#[async_trait]
impl Store for Flaky {
    async fn lease(&self, session: &SessionId) -> Result<Lease, StoreError> {
        self.store.lease(session).await
    }

    async fn create(
        &self,
        lease: &Lease,
        meta: &SessionMeta,
        checkpoint: &Checkpoint,
    ) -> Result<Revision, StoreError> {
        self.write()?;
        self.store.create(lease, meta, checkpoint).await
    }

    async fn load(&self, session: &SessionId) -> Result<Option<SessionRecord>, StoreError> {
        self.store.load(session).await
    }

    async fn commit(&self, lease: &Lease, commit: Commit<'_>) -> Result<Committed, StoreError> {
        self.write()?;
        self.store.commit(lease, commit).await
    }

    async fn journal(
        &self,
        lease: &Lease,
        records: &[JournalRecord],
        events: &[Event],
    ) -> Result<(), StoreError> {
        self.write()?;
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
        self.write()?;
        self.store.delete(lease).await
    }

    async fn fork(&self, lease: &Lease, fork: Fork<'_>) -> Result<Revision, StoreError> {
        self.write()?;
        self.store.fork(lease, fork).await
    }

    async fn import(&self, lease: &Lease, whole: WholeSession) -> Result<Revision, StoreError> {
        self.write()?;
        self.store.import(lease, whole).await
    }

    async fn blobs(&self, session: &SessionId) -> Result<Vec<BlobHash>, StoreError> {
        self.store.blobs(session).await
    }

    async fn put_blob(&self, session: &SessionId, bytes: &[u8]) -> Result<BlobHash, StoreError> {
        self.write()?;
        self.store.put_blob(session, bytes).await
    }

    async fn get_blob(&self, hash: &BlobHash) -> Result<Option<Vec<u8>>, StoreError> {
        self.store.get_blob(hash).await
    }
}
