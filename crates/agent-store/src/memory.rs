//! Sessions in the memory of this process.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_core::{
    BlobHash, Checkpoint, Commit, Committed, Entry, Event, EventBody, Input, InputId, JournalRecord,
    Revision, RoundSummary, SessionId, SessionMeta, SessionRecord, SessionState, SessionSummary, StepNo,
    StoredInput, TerminalReason, TurnId, Usage,
};
use async_trait::async_trait;

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

#[derive(Debug)]
struct Session {
    meta: SessionMeta,
    checkpoint: Checkpoint,
    updated_ms: i64,
    revision: Revision,
    entries: Vec<KeptEntry>,
    journal: Vec<JournalRecord>,
    /// The first one has number 1, and there is no gap.
    events: Vec<Kept>,
    usage: Vec<(Revision, Usage)>,
    terminal: Option<TerminalReason>,
    blobs: BTreeSet<BlobHash>,
    inbox: Inbox,
    rounds: BTreeMap<u64, RoundSummary>,
    /// Workers that took the open turn up.
    attempts: u32,
}

/// What was said to a session.
#[derive(Debug, Default)]
struct Inbox {
    last: u64,
    open: Vec<StoredInput>,
    /// Keys of all inputs there were, each with the number of its input.
    keys: BTreeMap<String, InputId>,
}

/// An entry: shared with the history it came from, or the bytes that another store had.
#[derive(Debug, Clone)]
enum KeptEntry {
    Shared(Entry),
    Text(Box<str>),
}

/// A durable event without its session, and its number, which is its place.
#[derive(Debug)]
struct Kept {
    turn: Option<TurnId>,
    step: Option<StepNo>,
    body: EventBody,
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

impl Session {
    fn new(meta: &SessionMeta, checkpoint: &Checkpoint) -> Self {
        Self {
            updated_ms: meta.created_ms,
            meta: meta.clone(),
            checkpoint: checkpoint.clone(),
            revision: Revision(0),
            entries: Vec::new(),
            journal: Vec::new(),
            events: Vec::new(),
            usage: Vec::new(),
            terminal: None,
            blobs: BTreeSet::new(),
            inbox: Inbox::default(),
            rounds: BTreeMap::new(),
            attempts: 0,
        }
    }

    fn forked(&self, id: &SessionId, fork: Fork<'_>) -> Result<Self, StoreError> {
        let head = self.entries.len() as u64;
        let beginning = usize::try_from(fork.entries).ok().and_then(|count| self.entries.get(..count));
        let Some(entries) = beginning else {
            return Err(StoreError::NoEntry { session: fork.from.clone(), head, entries: fork.entries });
        };
        let meta = SessionMeta { id: id.clone(), created_ms: fork.now_ms, ..self.meta.clone() };
        let mut forked = Self::new(&meta, fork.checkpoint);
        follow(id, forked.head(), fork.events)?;
        forked.entries = entries.to_vec();
        let goes_along = |round: &RoundSummary| {
            round.to.position() as u64 <= fork.entries && round.turn <= fork.checkpoint.last_turn
        };
        let rounds = self.rounds.iter().filter(|(_, round)| goes_along(round));
        forked.rounds = rounds.map(|(turn, round)| (*turn, round.clone())).collect();
        forked.blobs.clone_from(&self.blobs);
        forked.keep(fork.events);
        Ok(forked)
    }

    fn imported(whole: WholeSession) -> Self {
        let (revision, inbox) = (whole.newest(), Inbox::of(&whole));
        let mut session = Self::new(&whole.meta, &whole.checkpoint);
        session.keep(&whole.events);
        Self {
            updated_ms: whole.now_ms,
            revision,
            entries: whole.entries.into_iter().map(|text| KeptEntry::Text(text.into())).collect(),
            journal: whole.journal,
            usage: whole.usage.into_iter().collect(),
            terminal: whole.terminal,
            inbox,
            rounds: whole.rounds.into_iter().map(|round| (round.turn, round)).collect(),
            ..session
        }
    }

    fn salvaged(&self) -> Result<Salvaged, serde_json::Error> {
        let SessionRecord { meta, revision, entries, checkpoint, journal, inputs, .. } = self.record()?;
        let is_open = |id: &InputId| inputs.iter().any(|open| open.id == *id);
        let used = self.inbox.keys.iter().filter(|(_, id)| !is_open(id));
        let mut used: Vec<_> = used.map(|(key, id)| (*id, key.clone())).collect();
        used.sort();
        Ok(Salvaged {
            meta: Some(meta.clone()),
            revision,
            entries: (0..).zip(entries).collect(),
            checkpoint: Some(checkpoint),
            journal,
            inputs,
            used,
            last_input: self.inbox.last,
            terminal: self.terminal.clone(),
            events: (1..).zip(&self.events).map(|(seq, kept)| kept.event(&meta.id, seq)).collect(),
            usage: self.usage.clone(),
            rounds: self.rounds.values().cloned().collect(),
            damage: Vec::new(),
        })
    }

    fn head(&self) -> Head {
        Head {
            revision: self.revision,
            last_seq: self.events.len() as u64,
            pending: self.journal.iter().any(|record| matches!(record, JournalRecord::Response(_))),
        }
    }

    /// Counts a worker where a turn is open; how many there were.
    fn begin_attempt(&mut self) -> u32 {
        self.attempts = if self.checkpoint.turn.is_some() { self.attempts.saturating_add(1) } else { 0 };
        self.attempts
    }

    /// Nothing in here can fail, so a commit is never half done.
    fn apply(&mut self, commit: Commit<'_>) {
        self.revision = Revision(self.revision.0 + 1);
        self.entries.extend(commit.entries.iter().cloned().map(KeptEntry::Shared));
        self.checkpoint.clone_from(commit.checkpoint);
        self.usage.extend(commit.usage.map(|usage| (self.revision, usage.clone())));
        self.keep(commit.events);
        // Between turns nothing is said about how the last one ended.
        if commit.terminal.is_some() || commit.checkpoint.turn.is_some() {
            self.terminal = commit.terminal.cloned();
        }
        if commit.checkpoint.turn.is_none() {
            self.attempts = 0;
        }
        self.updated_ms = commit.now_ms;
        self.inbox.open.retain(|input| !commit.consumed.contains(&input.id));
        self.journal.clear();
    }

    /// Events are most of what a session holds beside its words, so that they get little room to spare.
    fn keep(&mut self, events: &[Event]) {
        if self.events.len() + events.len() > self.events.capacity() {
            self.events.reserve_exact(events.len().max(self.events.len() / 4));
        }
        let kept = |event: &Event| Kept { turn: event.turn, step: event.step, body: event.body.clone() };
        self.events.extend(events.iter().map(kept));
    }

    /// What a store on disk gives: entries as the bytes that are written of them.
    fn record(&self) -> Result<SessionRecord, serde_json::Error> {
        Ok(SessionRecord {
            meta: self.meta.clone(),
            revision: self.revision,
            entries: self.entries.iter().map(KeptEntry::text).collect::<Result<_, _>>()?,
            checkpoint: self.checkpoint.clone(),
            journal: self.journal.clone(),
            inputs: self.inbox.open.clone(),
            last_seq: self.events.len() as u64,
            stand_in: None,
        })
    }

    fn state(&self) -> SessionState {
        SessionState {
            revision: self.revision,
            checkpoint: self.checkpoint.clone(),
            journal: self.journal.clone(),
            inputs: self.inbox.open.clone(),
            terminal: self.terminal.clone(),
        }
    }

    fn summary(&self) -> SessionSummary {
        SessionSummary {
            id: self.meta.id.clone(),
            created_ms: self.meta.created_ms,
            updated_ms: self.updated_ms,
            model: self.meta.model.clone(),
            entries: self.entries.len() as u64,
            turns: self.checkpoint.last_turn,
            terminal: self.terminal.clone(),
            usage: self.checkpoint.usage.clone(),
        }
    }
}

impl KeptEntry {
    fn text(&self) -> Result<String, serde_json::Error> {
        match self {
            Self::Shared(entry) => serde_json::to_string(entry),
            Self::Text(text) => Ok(text.to_string()),
        }
    }
}

impl Inbox {
    fn of(whole: &WholeSession) -> Self {
        let keys = whole.inputs.iter().filter_map(|open| Some((open.input.key()?.to_owned(), open.id)));
        let used = whole.used.iter().map(|(id, key)| (key.clone(), *id));
        let mut open = whole.inputs.clone();
        open.sort_by_key(|input| input.id);
        Self { last: whole.newest_input(), open, keys: keys.chain(used).collect() }
    }

    fn put(&mut self, session: &SessionId, input: &Input) -> Result<InputId, StoreError> {
        let id = InputId(self.last + 1);
        if let Some(key) = input.key() {
            if self.keys.contains_key(key) {
                return Err(StoreError::Repeated { session: session.clone(), key: key.to_owned() });
            }
            self.keys.insert(key.to_owned(), id);
        }
        self.last = id.0;
        self.open.push(StoredInput { id, input: input.clone() });
        Ok(id)
    }

    fn holds(&self, session: &SessionId, used: &[InputId]) -> Result<(), StoreError> {
        let is_open = |input: &InputId| self.open.iter().any(|open| open.id == *input);
        let wrong =
            used.iter().enumerate().find(|(at, input)| !is_open(input) || used[..*at].contains(input));
        match wrong.map(|(_, input)| input) {
            None => Ok(()),
            Some(InputId(input)) => Err(StoreError::NoInput { session: session.clone(), input: *input }),
        }
    }
}

impl Kept {
    fn event(&self, session: &SessionId, seq: u64) -> Event {
        let Self { turn, step, body } = self;
        Event { seq: Some(seq), session: session.clone(), turn: *turn, step: *step, body: body.clone() }
    }
}

/// Whether the events are durable ones of this session and continue its numbers.
fn follow(session: &SessionId, head: Head, events: &[Event]) -> Result<(), StoreError> {
    let follows = |last, event| write::following(session, last, write::number(session, event)?);
    events.iter().try_fold(head.last_seq, follows).map(|_| ())
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
