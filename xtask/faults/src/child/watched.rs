//! The store on disk, with points before, in and after each of its writes.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use agent_core::{
    BlobHash, Checkpoint, Commit, Committed, Entry, Event, Input, InputId, JournalRecord, Revision,
    RoundSummary, SessionId, SessionMeta, SessionRecord, SessionState, StoredInput, ToolResult, Usage,
};
use agent_store::{Fork, Lease, SqliteStore, Store, StoreError, SummaryLine, WholeSession};
use async_trait::async_trait;

use super::Sabotage;
use super::notes::Notes;
use super::trip::{Trip, die};
use crate::check::is_unknown;
use crate::place::Place;

/// A store that notes which results it has taken, and may be broken on purpose.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    pub(super) inner: SqliteStore,
    pub(super) trip: Arc<Trip>,
    pub(super) notes: Notes,
    pub(super) sabotage: Option<Sabotage>,
}

impl Watched {
    async fn around<T>(
        &self,
        write: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        self.trip.pass(Place::BeforeWrite);
        let mut write = pin!(write);
        if self.trip.is_here(Place::InWrite) {
            // The store's own thread goes on by itself from here: it is met somewhere between the start of its
            // transaction and its answer.
            let _ = futures_util::poll!(&mut write);
            std::thread::sleep(self.moment());
            die();
        }
        let done = write.await?;
        self.trip.pass(Place::AfterWrite);
        Ok(done)
    }

    /// Another one at each point, the same in every run: a commit takes from 100 µs to some milliseconds.
    fn moment(&self) -> Duration {
        let passed: u64 = self.trip.counts().iter().sum();
        Duration::from_micros(passed * 137 % 1_000)
    }

    fn note_kept(&self, result: &ToolResult) -> Result<(), StoreError> {
        let what = if is_unknown(&result.output.plain()) { "unknown" } else { "kept" };
        let noted = self.notes.add(what, result.call.as_str());
        noted.map_err(|cause| StoreError::Io { path: self.notes.0.clone(), cause })
    }

    fn is_lost(&self, record: &JournalRecord) -> bool {
        match self.sabotage {
            Some(Sabotage::Results) => matches!(record, JournalRecord::Finished { .. }),
            Some(Sabotage::Intents) => matches!(record, JournalRecord::Started(_)),
            None => false,
        }
    }
}

#[async_trait]
impl Store for Watched {
    async fn lease(&self, session: &SessionId) -> Result<Lease, StoreError> {
        self.around(self.inner.lease(session)).await
    }

    async fn create(
        &self,
        lease: &Lease,
        meta: &SessionMeta,
        checkpoint: &Checkpoint,
    ) -> Result<Revision, StoreError> {
        self.around(self.inner.create(lease, meta, checkpoint)).await
    }

    async fn load(&self, session: &SessionId) -> Result<Option<SessionRecord>, StoreError> {
        self.inner.load(session).await
    }

    async fn commit(&self, lease: &Lease, commit: Commit<'_>) -> Result<Committed, StoreError> {
        let committed = self.around(self.inner.commit(lease, commit)).await?;
        for entry in commit.entries {
            let Entry::Step(step) = entry else { continue };
            step.results().iter().try_for_each(|result| self.note_kept(result))?;
        }
        Ok(committed)
    }

    async fn journal(
        &self,
        lease: &Lease,
        records: &[JournalRecord],
        events: &[Event],
    ) -> Result<(), StoreError> {
        let kept: Vec<_> = records.iter().filter(|record| !self.is_lost(record)).cloned().collect();
        self.around(self.inner.journal(lease, &kept, events)).await?;
        for record in records {
            let JournalRecord::Finished { result, .. } = record else { continue };
            self.note_kept(result)?;
        }
        Ok(())
    }

    async fn withdraw_attempt(&self, lease: &Lease) -> Result<(), StoreError> {
        self.around(self.inner.withdraw_attempt(lease)).await
    }

    async fn reset_attempts(&self, session: &SessionId) -> Result<(), StoreError> {
        self.around(self.inner.reset_attempts(session)).await
    }

    async fn meta(&self, session: &SessionId) -> Result<Option<SessionMeta>, StoreError> {
        self.inner.meta(session).await
    }

    async fn state(&self, session: &SessionId) -> Result<Option<SessionState>, StoreError> {
        self.inner.state(session).await
    }

    async fn put_input(&self, session: &SessionId, input: &Input) -> Result<InputId, StoreError> {
        self.around(self.inner.put_input(session, input)).await
    }

    async fn inputs(&self, session: &SessionId) -> Result<Vec<StoredInput>, StoreError> {
        self.inner.inputs(session).await
    }

    async fn fork(&self, lease: &Lease, fork: Fork<'_>) -> Result<Revision, StoreError> {
        self.around(self.inner.fork(lease, fork)).await
    }

    async fn import(&self, lease: &Lease, whole: WholeSession) -> Result<Revision, StoreError> {
        self.around(self.inner.import(lease, whole)).await
    }

    async fn blobs(&self, session: &SessionId) -> Result<Vec<BlobHash>, StoreError> {
        self.inner.blobs(session).await
    }

    async fn put_round(&self, session: &SessionId, round: &RoundSummary) -> Result<(), StoreError> {
        self.around(self.inner.put_round(session, round)).await
    }

    async fn rounds(&self, session: &SessionId) -> Result<Vec<RoundSummary>, StoreError> {
        self.inner.rounds(session).await
    }

    async fn events(&self, session: &SessionId, after_seq: u64) -> Result<Vec<Event>, StoreError> {
        self.inner.events(session, after_seq).await
    }

    async fn usage(&self, session: &SessionId) -> Result<Vec<(Revision, Usage)>, StoreError> {
        self.inner.usage(session).await
    }

    async fn sessions(&self) -> Result<Vec<SummaryLine>, StoreError> {
        self.inner.sessions().await
    }

    async fn delete(&self, lease: Lease) -> Result<(), StoreError> {
        self.around(self.inner.delete(lease)).await
    }

    async fn put_blob(&self, session: &SessionId, bytes: &[u8]) -> Result<BlobHash, StoreError> {
        self.around(self.inner.put_blob(session, bytes)).await
    }

    async fn get_blob(&self, hash: &BlobHash) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.get_blob(hash).await
    }
}
