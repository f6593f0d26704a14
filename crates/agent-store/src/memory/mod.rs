//! Sessions in the memory of this process: who holds them, and the store's contract over them.

mod session;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_core::{
    BlobHash, Checkpoint, Commit, Committed, Event, Input, InputId, JournalRecord, Revision, RoundSummary,
    SessionId, SessionMeta, SessionRecord, SessionState, StoredInput, Usage,
};
use async_trait::async_trait;

use self::session::{Session, follow};
use crate::rows;
use crate::write::{self, Head};
use crate::{Fork, Lease, Salvaged, Store, StoreError, SummaryLine, WholeSession};

/// Keeps sessions for as long as this process lives: for tests and for runs nobody wants to resume.
///
/// It judges what it is given exactly as the stores on disk do, and shares with the history what is large instead of
/// copying it. Clones share the sessions.
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
        let epoch = *epoch;
        let held = Held { session: session.clone(), shared: Arc::clone(&self.shared) };
        let attempts = shared.sessions.get_mut(session).map_or(0, Session::begin_attempt);
        Ok(Lease::new(session.clone(), epoch, held).of_attempt(attempts))
    }

    async fn create(
        &self,
        lease: &Lease,
        meta: &SessionMeta,
        checkpoint: &Checkpoint,
    ) -> Result<Revision, StoreError> {
        write::own(lease.session(), &meta.id)?;
        let mut shared = self.lock();
        shared.holds(lease)?;
        if shared.sessions.contains_key(lease.session()) {
            return Err(StoreError::Exists(lease.session().clone()));
        }
        shared.sessions.insert(lease.session().clone(), Session::new(meta, checkpoint));
        Ok(Revision(0))
    }

    async fn load(&self, session: &SessionId) -> Result<Option<SessionRecord>, StoreError> {
        let record = self.lock().sessions.get(session).map(Session::record).transpose();
        record.map_err(|cause| StoreError::Encode { session: session.clone(), cause })
    }

    async fn commit(&self, lease: &Lease, commit: Commit<'_>) -> Result<Committed, StoreError> {
        let mut shared = self.lock();
        let session = shared.writable(lease)?;
        let head = session.head();
        head.takes_commit(lease.session(), commit.expect, write::has_boundary(commit.entries))?;
        follow(lease.session(), head, commit.events)?;
        session.inbox.holds(lease.session(), commit.consumed)?;
        session.apply(commit);
        Ok(Committed { revision: session.revision, has_inputs: !session.inbox.open.is_empty() })
    }

    async fn journal(
        &self,
        lease: &Lease,
        records: &[JournalRecord],
        events: &[Event],
    ) -> Result<(), StoreError> {
        let mut shared = self.lock();
        let session = shared.writable(lease)?;
        follow(lease.session(), session.head(), events)?;
        session.journal.extend_from_slice(records);
        session.keep(events);
        Ok(())
    }

    async fn withdraw_attempt(&self, lease: &Lease) -> Result<(), StoreError> {
        if let Some(session) = self.lock().sessions.get_mut(lease.session()).filter(|_| lease.attempts() > 0)
        {
            session.attempts = session.attempts.saturating_sub(1);
        }
        Ok(())
    }

    async fn reset_attempts(&self, session: &SessionId) -> Result<(), StoreError> {
        self.lock().existing_mut(session)?.attempts = 0;
        Ok(())
    }

    async fn meta(&self, session: &SessionId) -> Result<Option<SessionMeta>, StoreError> {
        Ok(self.lock().sessions.get(session).map(|session| session.meta.clone()))
    }

    async fn state(&self, session: &SessionId) -> Result<Option<SessionState>, StoreError> {
        Ok(self.lock().sessions.get(session).map(Session::state))
    }

    async fn put_input(&self, session: &SessionId, input: &Input) -> Result<InputId, StoreError> {
        let mut shared = self.lock();
        let found = shared.existing_mut(session)?;
        if found.checkpoint.turn.is_none() {
            return Err(StoreError::NoTurn(session.clone()));
        }
        found.inbox.put(session, input)
    }

    async fn inputs(&self, session: &SessionId) -> Result<Vec<StoredInput>, StoreError> {
        Ok(self.lock().existing(session)?.inbox.open.clone())
    }

    async fn put_round(&self, session: &SessionId, round: &RoundSummary) -> Result<(), StoreError> {
        self.lock().existing_mut(session)?.rounds.insert(round.turn, round.clone());
        Ok(())
    }

    async fn rounds(&self, session: &SessionId) -> Result<Vec<RoundSummary>, StoreError> {
        Ok(self.lock().existing(session)?.rounds.values().cloned().collect())
    }

    async fn events(&self, session: &SessionId, after_seq: u64) -> Result<Vec<Event>, StoreError> {
        let shared = self.lock();
        let numbered = (1..).zip(&shared.existing(session)?.events);
        let unseen = numbered.skip(usize::try_from(after_seq).unwrap_or(usize::MAX));
        Ok(unseen.map(|(seq, kept)| kept.event(session, seq)).collect())
    }

    async fn usage(&self, session: &SessionId) -> Result<Vec<(Revision, Usage)>, StoreError> {
        Ok(self.lock().existing(session)?.usage.clone())
    }

    async fn sessions(&self) -> Result<Vec<SummaryLine>, StoreError> {
        let shared = self.lock();
        let mut lines: Vec<_> = shared.sessions.values().map(Session::summary).collect();
        // The map gives them by name, and the sort is stable.
        lines.sort_by_key(|line| std::cmp::Reverse(line.updated_ms));
        Ok(lines.into_iter().map(Ok).collect())
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

    async fn fork(&self, lease: &Lease, fork: Fork<'_>) -> Result<Revision, StoreError> {
        let mut shared = self.lock();
        shared.holds(lease)?;
        if shared.sessions.contains_key(lease.session()) {
            return Err(StoreError::Exists(lease.session().clone()));
        }
        let forked = shared.existing(fork.from)?.forked(lease.session(), fork)?;
        shared.sessions.insert(lease.session().clone(), forked);
        Ok(Revision(0))
    }

    async fn import(&self, lease: &Lease, whole: WholeSession) -> Result<Revision, StoreError> {
        whole.check(lease)?;
        let mut shared = self.lock();
        shared.holds(lease)?;
        if shared.sessions.contains_key(lease.session()) {
            return Err(StoreError::Exists(lease.session().clone()));
        }
        let nothing = Head { revision: Revision(0), last_seq: 0, pending: false };
        follow(lease.session(), nothing, &whole.events)?;
        let revision = whole.newest();
        let blobs: Vec<_> = whole.blobs.iter().map(|bytes| (rows::hash(bytes), bytes.clone())).collect();
        let mut session = Session::imported(whole);
        for (hash, bytes) in blobs {
            session.blobs.insert(hash.clone());
            shared.blobs.entry(hash).or_insert(bytes);
        }
        shared.sessions.insert(lease.session().clone(), session);
        Ok(revision)
    }

    async fn salvage(&self, session: &SessionId) -> Result<Option<Salvaged>, StoreError> {
        let found = self.lock().sessions.get(session).map(Session::salvaged).transpose();
        found.map_err(|cause| StoreError::Encode { session: session.clone(), cause })
    }

    async fn blobs(&self, session: &SessionId) -> Result<Vec<BlobHash>, StoreError> {
        Ok(self.lock().existing(session)?.blobs.iter().cloned().collect())
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

impl Drop for Held {
    fn drop(&mut self) {
        lock(&self.shared).held.remove(&self.session);
    }
}

/// A panic elsewhere cannot have left the sessions half changed: see [`Session::apply`].
fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
