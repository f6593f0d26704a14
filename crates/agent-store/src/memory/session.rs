//! One session in memory: what is kept of it, and what a commit does to it.

use std::collections::{BTreeMap, BTreeSet};

use agent_core::{
    BlobHash, Checkpoint, Commit, Entry, Event, EventBody, Input, InputId, JournalRecord, Revision,
    RoundSummary, SessionId, SessionMeta, SessionRecord, SessionState, SessionSummary, StepNo, StoredInput,
    TerminalReason, TurnId, Usage,
};

use crate::write::{self, Head};
use crate::{Fork, Salvaged, StoreError, WholeSession};

#[derive(Debug)]
pub(super) struct Session {
    pub(super) meta: SessionMeta,
    pub(super) checkpoint: Checkpoint,
    pub(super) updated_ms: i64,
    pub(super) revision: Revision,
    pub(super) entries: Vec<KeptEntry>,
    pub(super) journal: Vec<JournalRecord>,
    /// The first one has number 1, and there is no gap.
    pub(super) events: Vec<Kept>,
    pub(super) usage: Vec<(Revision, Usage)>,
    pub(super) terminal: Option<TerminalReason>,
    pub(super) blobs: BTreeSet<BlobHash>,
    pub(super) inbox: Inbox,
    pub(super) rounds: BTreeMap<u64, RoundSummary>,
    /// Workers that took the open turn up.
    pub(super) attempts: u32,
}

/// What was said to a session.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    pub(super) last: u64,
    pub(super) open: Vec<StoredInput>,
    /// Keys of all inputs there were, each with the number of its input.
    pub(super) keys: BTreeMap<String, InputId>,
}

/// An entry: shared with the history it came from, or the bytes that another store had.
#[derive(Debug, Clone)]
pub(super) enum KeptEntry {
    Shared(Entry),
    Text(Box<str>),
}

/// A durable event without its session, and its number, which is its place.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) turn: Option<TurnId>,
    pub(super) step: Option<StepNo>,
    pub(super) body: EventBody,
}

impl Session {
    pub(super) fn new(meta: &SessionMeta, checkpoint: &Checkpoint) -> Self {
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

    pub(super) fn forked(&self, id: &SessionId, fork: Fork<'_>) -> Result<Self, StoreError> {
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

    pub(super) fn imported(whole: WholeSession) -> Self {
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

    pub(super) fn salvaged(&self) -> Result<Salvaged, serde_json::Error> {
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

    pub(super) fn head(&self) -> Head {
        Head {
            revision: self.revision,
            last_seq: self.events.len() as u64,
            pending: self.journal.iter().any(|record| matches!(record, JournalRecord::Response(_))),
        }
    }

    /// Counts a worker where a turn is open; how many there were.
    pub(super) fn begin_attempt(&mut self) -> u32 {
        self.attempts = if self.checkpoint.turn.is_some() { self.attempts.saturating_add(1) } else { 0 };
        self.attempts
    }

    /// Nothing in here can fail, so a commit is never half done.
    pub(super) fn apply(&mut self, commit: Commit<'_>) {
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
    pub(super) fn keep(&mut self, events: &[Event]) {
        if self.events.len() + events.len() > self.events.capacity() {
            self.events.reserve_exact(events.len().max(self.events.len() / 4));
        }
        let kept = |event: &Event| Kept { turn: event.turn, step: event.step, body: event.body.clone() };
        self.events.extend(events.iter().map(kept));
    }

    /// What a store on disk gives: entries as the bytes that are written of them.
    pub(super) fn record(&self) -> Result<SessionRecord, serde_json::Error> {
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

    pub(super) fn state(&self) -> SessionState {
        SessionState {
            revision: self.revision,
            checkpoint: self.checkpoint.clone(),
            journal: self.journal.clone(),
            inputs: self.inbox.open.clone(),
            terminal: self.terminal.clone(),
        }
    }

    pub(super) fn summary(&self) -> SessionSummary {
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
    pub(super) fn text(&self) -> Result<String, serde_json::Error> {
        match self {
            Self::Shared(entry) => serde_json::to_string(entry),
            Self::Text(text) => Ok(text.to_string()),
        }
    }
}

impl Inbox {
    pub(super) fn of(whole: &WholeSession) -> Self {
        let keys = whole.inputs.iter().filter_map(|open| Some((open.input.key()?.to_owned(), open.id)));
        let used = whole.used.iter().map(|(id, key)| (key.clone(), *id));
        let mut open = whole.inputs.clone();
        open.sort_by_key(|input| input.id);
        Self { last: whole.newest_input(), open, keys: keys.chain(used).collect() }
    }

    pub(super) fn put(&mut self, session: &SessionId, input: &Input) -> Result<InputId, StoreError> {
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

    pub(super) fn holds(&self, session: &SessionId, used: &[InputId]) -> Result<(), StoreError> {
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
    pub(super) fn event(&self, session: &SessionId, seq: u64) -> Event {
        let Self { turn, step, body } = self;
        Event { seq: Some(seq), session: session.clone(), turn: *turn, step: *step, body: body.clone() }
    }
}

/// Whether the events are durable ones of this session and continue its numbers.
pub(super) fn follow(session: &SessionId, head: Head, events: &[Event]) -> Result<(), StoreError> {
    let follows = |last, event| write::following(session, last, write::number(session, event)?);
    events.iter().try_fold(head.last_seq, follows).map(|_| ())
}
