//! Sessions in a directory of the local disk, on SQLite.

mod connect;
mod entries;
mod fault;
mod fork;
mod import;
mod locks;
mod migrate;
mod reads;
mod salvage;
mod stamps;
mod stand_in;
mod worker;
mod writes;

use std::path::Path;
use std::sync::Arc;

use agent_core::{
    BlobHash, Checkpoint, Commit, Committed, Event, Input, InputId, JournalRecord, Revision, RoundSummary,
    SessionId, SessionMeta, SessionRecord, SessionState, StoredInput, Usage,
};
use async_trait::async_trait;

use crate::write::{self, Events, NewSession, Rows, State};
use crate::{Fork, Lease, Salvaged, Store, StoreError, SummaryLine, WholeSession, rows};
use locks::Locks;
use stamps::{Held, Pending, Stamps};
use worker::Worker;
use writes::Holder;

/// Keeps sessions in `sessions.db` of a directory, for this and later processes (requirement D2).
///
/// Many processes may share the directory; each session has a lock of the operating system, so that the lock of
/// a process that died is free at once (requirement D3). An answered write has reached the disk. Works with any
/// async runtime: one thread of the store writes, another reads. Clones share both.
///
/// The directory must be on a local disk; a network file system cannot hold it.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    inner: Arc<Inner>,
}

/// Choices of a [`SqliteStore`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a config, written as a literal with ..Default")]
pub struct SqliteOptions {
    /// The largest size of the database file in bytes, rounded up to a page of 8 KiB; beyond it writes are
    /// [`StoreError::DiskFull`]. `None` leaves it to the disk.
    pub max_bytes: Option<u64>,
}

#[derive(Debug)]
struct Inner {
    reader: Worker,
    /// Closed after the reader: the last connection tidies the side files up, and this one may.
    writer: Worker,
    locks: Locks,
}

impl SqliteStore {
    /// Opens the store of a directory, creating both when they do not exist.
    ///
    /// A new directory is readable by its owner only, and so is the database. Blocks for as long as the files
    /// take to open.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        Self::open_with(dir, &SqliteOptions::default())
    }

    /// Opens the store of a directory with choices of your own.
    pub fn open_with(dir: &Path, options: &SqliteOptions) -> Result<Self, StoreError> {
        let locks = Locks::open(dir)?;
        // Two processes that open a new directory at once would both set it up.
        let opening = locks.opening()?;
        let writer = connect::writer(dir, options)?;
        let reader = connect::reader(dir)?;
        drop(opening);
        let writer = Worker::writer(writer)?;
        let reader = Worker::reader(reader)?;
        Ok(Self { inner: Arc::new(Inner { reader, writer, locks }) })
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn lease(&self, session: &SessionId) -> Result<Lease, StoreError> {
        let lock = self.inner.locks.take(session)?;
        let id = session.clone();
        let (epoch, attempts) = self.inner.writer.ask(move |db| writes::next_epoch(db, &id)).await?;
        Ok(Lease::new(session.clone(), epoch, Held::new(lock)).of_attempt(attempts))
    }

    async fn create(
        &self,
        lease: &Lease,
        meta: &SessionMeta,
        checkpoint: &Checkpoint,
    ) -> Result<Revision, StoreError> {
        let first = NewSession::encode(lease, meta, checkpoint)?;
        let holder = Holder::of(lease);
        self.inner.writer.ask(move |db| writes::create(db, &holder, &first)).await
    }

    async fn load(&self, session: &SessionId) -> Result<Option<SessionRecord>, StoreError> {
        let id = session.clone();
        self.inner.reader.ask(move |db| reads::session(db, &id)).await
    }

    async fn commit(&self, lease: &Lease, commit: Commit<'_>) -> Result<Committed, StoreError> {
        let checkpoint = stamps::without(commit.checkpoint);
        let rows = Rows::encode(lease.session(), Commit { checkpoint: &checkpoint, ..commit })?;
        let (pending, stamps) = Pending::of(lease, commit.checkpoint)?;
        let holder = Holder::of(lease);
        let done = self.inner.writer.ask(move |db| writes::commit(db, &holder, &rows, &stamps)).await;
        pending.settle(done)
    }

    async fn journal(
        &self,
        lease: &Lease,
        records: &[JournalRecord],
        events: &[Event],
    ) -> Result<(), StoreError> {
        let records = stamps::records(lease, records)?;
        let events = Events::encode(lease.session(), events)?;
        let holder = Holder::of(lease);
        self.inner.writer.ask(move |db| writes::journal(db, &holder, &records, &events)).await
    }

    async fn withdraw_attempt(&self, lease: &Lease) -> Result<(), StoreError> {
        if lease.attempts() == 0 {
            return Ok(());
        }
        let id = lease.session().clone();
        self.inner.writer.ask(move |db| writes::withdraw_attempt(db, &id)).await
    }

    async fn reset_attempts(&self, session: &SessionId) -> Result<(), StoreError> {
        let id = session.clone();
        self.inner.writer.ask(move |db| writes::reset_attempts(db, &id)).await
    }

    async fn meta(&self, session: &SessionId) -> Result<Option<SessionMeta>, StoreError> {
        let id = session.clone();
        self.inner.reader.ask(move |db| reads::meta(db, &id)).await
    }

    async fn state(&self, session: &SessionId) -> Result<Option<SessionState>, StoreError> {
        let id = session.clone();
        self.inner.reader.ask(move |db| reads::state(db, &id)).await
    }

    async fn put_input(&self, session: &SessionId, input: &Input) -> Result<InputId, StoreError> {
        let (id, key) = (session.clone(), input.key().map(str::to_owned));
        let body = write::json(session, input)?;
        self.inner.writer.ask(move |db| writes::put_input(db, &id, key.as_deref(), &body)).await
    }

    async fn inputs(&self, session: &SessionId) -> Result<Vec<StoredInput>, StoreError> {
        let id = session.clone();
        self.inner.reader.ask(move |db| reads::inputs(db, &id)).await
    }

    async fn put_round(&self, session: &SessionId, round: &RoundSummary) -> Result<(), StoreError> {
        let (id, turn, body) = (session.clone(), round.turn, write::json(session, round)?);
        self.inner.writer.ask(move |db| writes::put_round(db, &id, turn, &body)).await
    }

    async fn rounds(&self, session: &SessionId) -> Result<Vec<RoundSummary>, StoreError> {
        let id = session.clone();
        self.inner.reader.ask(move |db| reads::rounds(db, &id)).await
    }

    async fn events(&self, session: &SessionId, after_seq: u64) -> Result<Vec<Event>, StoreError> {
        let id = session.clone();
        self.inner.reader.ask(move |db| reads::events(db, &id, after_seq)).await
    }

    async fn usage(&self, session: &SessionId) -> Result<Vec<(Revision, Usage)>, StoreError> {
        let id = session.clone();
        self.inner.reader.ask(move |db| reads::usage(db, &id)).await
    }

    async fn sessions(&self) -> Result<Vec<SummaryLine>, StoreError> {
        self.inner.reader.ask(reads::sessions).await
    }

    async fn delete(&self, lease: Lease) -> Result<(), StoreError> {
        let holder = Holder::of(&lease);
        self.inner.writer.ask(move |db| writes::delete(db, &holder)).await
    }

    async fn fork(&self, lease: &Lease, fork: Fork<'_>) -> Result<Revision, StoreError> {
        let id = lease.session();
        let checkpoint = stamps::without(fork.checkpoint);
        let branch = fork::Branch {
            from: fork.from.clone(),
            entries: fork.entries,
            state: State::encode(id, &checkpoint)?,
            stamps: Stamps::of(id, fork.checkpoint)?,
            events: Events::encode(id, fork.events)?,
            now_ms: fork.now_ms,
        };
        let holder = Holder::of(lease);
        self.inner.writer.ask(move |db| fork::fork(db, &holder, &branch)).await
    }

    async fn import(&self, lease: &Lease, whole: WholeSession) -> Result<Revision, StoreError> {
        let whole = import::Whole::encode(lease, whole)?;
        let holder = Holder::of(lease);
        self.inner.writer.ask(move |db| import::import(db, &holder, &whole)).await
    }

    async fn blobs(&self, session: &SessionId) -> Result<Vec<BlobHash>, StoreError> {
        let id = session.clone();
        self.inner.reader.ask(move |db| reads::blobs(db, &id)).await
    }

    async fn salvage(&self, session: &SessionId) -> Result<Option<Salvaged>, StoreError> {
        let id = session.clone();
        self.inner.reader.ask(move |db| salvage::session(db, &id)).await
    }

    async fn put_blob(&self, session: &SessionId, bytes: &[u8]) -> Result<BlobHash, StoreError> {
        let hash = rows::hash(bytes);
        let (id, address, bytes) = (session.clone(), hash.clone(), bytes.to_vec());
        self.inner.writer.ask(move |db| writes::blob(db, &id, &address, &bytes)).await?;
        Ok(hash)
    }

    async fn get_blob(&self, hash: &BlobHash) -> Result<Option<Vec<u8>>, StoreError> {
        let hash = hash.clone();
        self.inner.reader.ask(move |db| reads::blob(db, &hash)).await
    }
}
