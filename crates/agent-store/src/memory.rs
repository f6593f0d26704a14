//! Sessions in the memory of this process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_core::{
    BlobHash, Checkpoint, Commit, Event, JournalRecord, Revision, SessionId, SessionMeta, SessionRecord,
    Usage,
};
use async_trait::async_trait;

use crate::rows::{self, SessionRows, SummaryRow};
use crate::write::{self, Ended, Events, Head, Json, NewSession, Records, Rows};
use crate::{Lease, Row, Store, StoreError, SummaryLine};

/// Keeps sessions for as long as this process lives: for tests and for runs nobody wants to resume.
///
/// It encodes and judges what it is given exactly as the stores on disk do. Clones share the sessions.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    /// The newest epoch of each session; it outlives the session, so that an old lease stays lost.
    epochs: BTreeMap<SessionId, u64>,
    held: BTreeSet<SessionId>,
    sessions: BTreeMap<SessionId, Session>,
    blobs: BTreeMap<BlobHash, Vec<u8>>,
}

#[derive(Debug)]
struct Session {
    first: NewSession,
    updated_ms: i64,
    revision: Revision,
    entries: Vec<Json>,
    journal: Vec<write::Record>,
    events: Vec<Json>,
    usage: Vec<(u64, Json)>,
    terminal: Option<Json>,
    blobs: BTreeSet<BlobHash>,
}

/// Gives the session back when its lease is dropped.
#[derive(Debug)]
struct Held {
    session: SessionId,
    shared: Arc<Mutex<Shared>>,
}

impl MemoryStore {
    /// A store without sessions.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        lock(&self.shared)
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn lease(&self, session: &SessionId) -> Result<Lease, StoreError> {
        let mut shared = self.lock();
        if !shared.held.insert(session.clone()) {
            return Err(StoreError::Busy { session: session.clone(), pid: Some(std::process::id()) });
        }
        let epoch = shared.epochs.entry(session.clone()).or_default();
        *epoch += 1;
        let held = Held { session: session.clone(), shared: Arc::clone(&self.shared) };
        Ok(Lease::new(session.clone(), *epoch, held))
    }

    async fn create(
        &self,
        lease: &Lease,
        meta: &SessionMeta,
        checkpoint: &Checkpoint,
    ) -> Result<Revision, StoreError> {
        let first = NewSession::encode(lease, meta, checkpoint)?;
        let mut shared = self.lock();
        shared.holds(lease)?;
        if shared.sessions.contains_key(lease.session()) {
            return Err(StoreError::Exists(lease.session().clone()));
        }
        shared.sessions.insert(lease.session().clone(), Session::new(first));
        Ok(Revision(0))
    }

    async fn load(&self, session: &SessionId) -> Result<Option<SessionRecord>, StoreError> {
        let rows = self.lock().sessions.get(session).map(Session::rows);
        rows.map(|rows| rows.read(session)).transpose()
    }

    async fn commit(&self, lease: &Lease, commit: Commit<'_>) -> Result<Revision, StoreError> {
        let rows = Rows::encode(lease.session(), commit)?;
        let mut shared = self.lock();
        let session = shared.writable(lease)?;
        rows.after(lease.session(), session.head())?;
        session.apply(rows);
        Ok(session.revision)
    }

    async fn journal(
        &self,
        lease: &Lease,
        records: &[JournalRecord],
        events: &[Event],
    ) -> Result<(), StoreError> {
        let records = Records::encode(lease.session(), records)?;
        let events = Events::encode(lease.session(), events)?;
        let mut shared = self.lock();
        let session = shared.writable(lease)?;
        events.after(lease.session(), session.head())?;
        session.journal.extend(records.0);
        session.events.extend(events.0.into_iter().map(|(_, body)| body));
        Ok(())
    }

    async fn events(&self, session: &SessionId, after_seq: u64) -> Result<Vec<Event>, StoreError> {
        let bodies = numbered(self.lock().existing(session)?.events.iter(), 1);
        let wanted = bodies.into_iter().filter(|(seq, _)| *seq > after_seq).collect();
        rows::decode_all(session, wanted, Row::Event)
    }

    async fn usage(&self, session: &SessionId) -> Result<Vec<(Revision, Usage)>, StoreError> {
        let shared = self.lock();
        let rows = shared.existing(session)?.usage.iter();
        rows.map(|(n, body)| Ok((Revision(*n), rows::decode(session, Row::Usage(*n), bytes(body))?)))
            .collect()
    }

    async fn sessions(&self) -> Result<Vec<SummaryLine>, StoreError> {
        let shared = self.lock();
        let mut rows: Vec<_> = shared.sessions.iter().map(|(id, session)| session.summary(id)).collect();
        // The map gives them by name, and the sort is stable.
        rows.sort_by_key(|row| std::cmp::Reverse(row.updated_ms));
        Ok(rows.into_iter().map(SummaryRow::read).collect())
    }

    async fn delete(&self, lease: Lease) -> Result<(), StoreError> {
        let mut shared = self.lock();
        shared.writable(&lease)?;
        shared.sessions.remove(lease.session());
        let Shared { sessions, blobs, .. } = &mut *shared;
        blobs.retain(|hash, _| sessions.values().any(|session| session.blobs.contains(hash)));
        drop(shared);
        drop(lease);
        Ok(())
    }

    async fn put_blob(&self, session: &SessionId, bytes: &[u8]) -> Result<BlobHash, StoreError> {
        let hash = rows::hash(bytes);
        let mut shared = self.lock();
        shared.existing_mut(session)?.blobs.insert(hash.clone());
        shared.blobs.entry(hash.clone()).or_insert_with(|| bytes.to_vec());
        Ok(hash)
    }

    async fn get_blob(&self, hash: &BlobHash) -> Result<Option<Vec<u8>>, StoreError> {
        let found = self.lock().blobs.get(hash).cloned();
        found.map(|bytes| rows::checked(hash, bytes)).transpose()
    }

    fn is_durable(&self) -> bool {
        false
    }
}

impl Shared {
    fn holds(&self, lease: &Lease) -> Result<(), StoreError> {
        let newest = self.epochs.get(lease.session()).copied().unwrap_or_default();
        write::holds(lease.session(), lease.epoch(), newest)
    }

    fn writable(&mut self, lease: &Lease) -> Result<&mut Session, StoreError> {
        self.holds(lease)?;
        self.existing_mut(lease.session())
    }

    fn existing(&self, session: &SessionId) -> Result<&Session, StoreError> {
        self.sessions.get(session).ok_or_else(|| StoreError::Missing(session.clone()))
    }

    fn existing_mut(&mut self, session: &SessionId) -> Result<&mut Session, StoreError> {
        self.sessions.get_mut(session).ok_or_else(|| StoreError::Missing(session.clone()))
    }
}

impl Session {
    fn new(first: NewSession) -> Self {
        Self {
            updated_ms: first.created_ms,
            first,
            revision: Revision(0),
            entries: Vec::new(),
            journal: Vec::new(),
            events: Vec::new(),
            usage: Vec::new(),
            terminal: None,
            blobs: BTreeSet::new(),
        }
    }

    fn head(&self) -> Head {
        Head {
            revision: self.revision,
            last_seq: self.events.len() as u64,
            pending: self.journal.iter().any(|record| record.is_response),
        }
    }

    /// Nothing in here can fail, so a commit is never half done.
    fn apply(&mut self, rows: Rows) {
        self.revision = Revision(self.revision.0 + 1);
        self.entries.extend(rows.entries);
        self.first.state = rows.state;
        self.usage.extend(rows.usage.map(|usage| (self.revision.0, usage)));
        self.events.extend(rows.events.0.into_iter().map(|(_, body)| body));
        match rows.ended {
            Ended::For(reason) => self.terminal = Some(reason),
            Ended::Open => self.terminal = None,
            Ended::AsBefore => {}
        }
        self.updated_ms = rows.now_ms;
        self.journal.clear();
    }

    fn rows(&self) -> SessionRows {
        SessionRows {
            meta: Some(bytes(&self.first.meta)),
            revision: self.revision.0,
            head: self.entries.len() as u64,
            entries: numbered(self.entries.iter(), 0),
            checkpoint: Some(bytes(&self.first.state.checkpoint)),
            journal: numbered(self.journal.iter().map(|record| &record.body), 0),
            last_seq: self.events.len() as u64,
        }
    }

    fn summary(&self, id: &SessionId) -> SummaryRow {
        SummaryRow {
            id: id.to_string(),
            created_ms: self.first.created_ms,
            updated_ms: self.updated_ms,
            model: self.first.model.clone(),
            entries: self.entries.len() as u64,
            turns: self.first.state.last_turn,
            terminal: self.terminal.as_ref().map(bytes),
            usage: bytes(&self.first.state.usage),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        lock(&self.shared).held.remove(&self.session);
    }
}

/// A panic elsewhere cannot have left the sessions half changed: see [`Session::apply`].
fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn numbered<'a>(bodies: impl Iterator<Item = &'a Json>, from: u64) -> Vec<rows::Numbered> {
    (from..).zip(bodies.map(bytes)).collect()
}

fn bytes(body: &Json) -> Vec<u8> {
    body.get().as_bytes().to_vec()
}
