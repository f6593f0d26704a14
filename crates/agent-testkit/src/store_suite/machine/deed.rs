//! What is done in a schedule, and how a store is asked for it.

use std::sync::Arc;

use agent_core::{
    Checkpoint, Commit, Entry, EntryId, Heard, Input, InputId, RawJson, Reply, RequestId, Revision,
    RoundSummary, SessionId, Text, UserMessage,
};
use agent_store::{Fork, Lease, MemoryStore, Salvaged, Store, StoreError, WholeSession, export, import};

use super::super::of;
use super::super::parts::{event, id, meta, none, pending, usage, user};

#[derive(Debug, Clone, Copy)]
pub(super) struct Deed {
    pub(super) act: Act,
    pub(super) worker: u8,
    pub(super) session: usize,
    /// How much of it: which reply, which turn, how many entries.
    pub(super) much: u64,
    /// The process dies before it hears the answer.
    pub(super) dies: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    /// Takes the session, and looks where it is.
    Take,
    /// Gives the session back.
    Give,
    /// Loses the session without knowing it: somebody removed the lock.
    Lose,
    /// Looks where the session is now.
    Look,
    Create,
    /// A commit that leaves a turn open.
    Commit,
    /// A commit that ends the turn.
    End,
    /// A commit whose event leaves a number out.
    Gap,
    /// A commit that builds on a revision which is not there yet.
    Stale,
    /// A commit that uses everything that was in the inbox when the worker looked.
    Hear,
    /// A commit that uses something which is not there.
    Mishear,
    Journal,
    /// Says something to the session, whoever has it.
    Say,
    /// Replies to one of three requests, whoever has it.
    Reply,
    /// Says something of one of three turns, whoever has it.
    Round,
    Blob(u8),
    /// Begins the session as a copy of the other one's beginning.
    Fork,
    /// Writes the other session out and reads it in under this name.
    Import,
    Delete,
}

const ACTS: [Act; 44] = [
    Act::Take,
    Act::Give,
    Act::Lose,
    Act::Look,
    Act::Create,
    Act::Create,
    Act::Create,
    Act::Create,
    Act::Commit,
    Act::Commit,
    Act::Commit,
    Act::Commit,
    Act::Commit,
    Act::End,
    Act::Gap,
    Act::Stale,
    Act::Hear,
    Act::Hear,
    Act::Hear,
    Act::Mishear,
    Act::Journal,
    Act::Journal,
    Act::Journal,
    Act::Say,
    Act::Say,
    Act::Say,
    Act::Reply,
    Act::Reply,
    Act::Reply,
    Act::Round,
    Act::Round,
    Act::Round,
    Act::Blob(7),
    Act::Blob(7),
    Act::Fork,
    Act::Fork,
    Act::Fork,
    Act::Fork,
    Act::Import,
    Act::Import,
    Act::Import,
    Act::Import,
    Act::Delete,
    Act::Delete,
];

/// A worker's hold on a session, as far as the worker knows.
pub(super) struct Held {
    pub(super) lease: Lease,
    pub(super) is_real: bool,
    pub(super) revision: u64,
    pub(super) last_seq: u64,
    pub(super) inputs: Vec<InputId>,
}

impl Deed {
    pub(super) fn of([act, who, how]: [u8; 3]) -> Self {
        let act = ACTS.get(usize::from(act) % ACTS.len()).copied().unwrap_or(Act::Look);
        let much = u64::from(how >> 4);
        Self { act, worker: who & 1, session: usize::from(who >> 1 & 1), much, dies: how % 16 == 15 }
    }

    pub(super) fn needs_lease(&self) -> bool {
        !matches!(self.act, Act::Blob(_) | Act::Say | Act::Reply | Act::Round)
    }

    pub(super) fn commits(&self) -> bool {
        matches!(self.act, Act::Commit | Act::End | Act::Gap | Act::Stale | Act::Hear | Act::Mishear)
    }

    /// The session that a copy is of.
    pub(super) fn source(&self) -> usize {
        1 - self.session
    }

    /// How many entries of the source a fork has.
    pub(super) fn entries(&self) -> u64 {
        self.much % 8
    }

    /// What the reply is to.
    pub(super) fn key(&self) -> Option<String> {
        (self.act == Act::Reply).then(|| format!("req_{}", self.much % 3))
    }

    /// Which turn something is said of, and where that ended.
    pub(super) fn round(&self) -> (u64, u64) {
        (self.much % 3 + 1, self.much % 4)
    }

    fn input(&self) -> Input {
        match self.key() {
            Some(key) => Input::Reply { request: RequestId::given(&key), reply: Reply::Allow },
            None => Input::Message { message: UserMessage::text("and this").unwrap(), heard: Heard::After },
        }
    }
}

impl Held {
    /// The revision that a commit of the worker names.
    pub(super) fn builds_on(&self, act: Act) -> u64 {
        self.revision + u64::from(act == Act::Stale)
    }

    /// The number of the event that goes with the deed.
    pub(super) fn next(&self, act: Act) -> u64 {
        self.last_seq + 1 + u64::from(act == Act::Gap)
    }

    /// What a commit of the worker uses.
    pub(super) fn uses(&self, act: Act) -> Vec<InputId> {
        match act {
            Act::Hear => self.inputs.clone(),
            Act::Mishear => vec![InputId(1_000)],
            Act::Take
            | Act::Give
            | Act::Lose
            | Act::Look
            | Act::Create
            | Act::Commit
            | Act::End
            | Act::Gap
            | Act::Stale
            | Act::Journal
            | Act::Say
            | Act::Reply
            | Act::Round
            | Act::Blob(_)
            | Act::Fork
            | Act::Import
            | Act::Delete => Vec::new(),
        }
    }
}

/// Asks for the deed; what the answer says in a number: of an input its own, of a commit whether something is left.
pub(super) async fn ask(
    store: &Arc<dyn Store>,
    held: Option<&Held>,
    deed: Deed,
    whole: Option<WholeSession>,
) -> Result<u64, StoreError> {
    let session = name(deed.session);
    match (deed.act, held) {
        (Act::Blob(byte), _) => store.put_blob(&session, &[byte]).await.map(|_| 0),
        (Act::Say | Act::Reply, _) => store.put_input(&session, &deed.input()).await.map(|InputId(n)| n),
        (Act::Round, _) => {
            let (turn, to) = deed.round();
            let text = Text::new("They talked.").unwrap();
            let to = EntryId::at(usize::try_from(to).unwrap());
            let (from, usage) = (EntryId::at(0), usage(turn));
            let round = RoundSummary { turn, since: None, from, to, text, usage, model: None };
            store.put_round(&session, &round).await.map(|()| 0)
        }
        (_, Some(held)) => ask_with(store, held, deed, whole).await,
        (_, None) => Ok(0),
    }
}

async fn ask_with(
    store: &Arc<dyn Store>,
    held: &Held,
    deed: Deed,
    whole: Option<WholeSession>,
) -> Result<u64, StoreError> {
    let (session, lease) = (name(deed.session), &held.lease);
    let events = [event(session.as_str(), held.next(deed.act))];
    match (deed.act, whole) {
        (Act::Create, _) => store.create(lease, &meta(session.as_str()), &none()).await.map(|_| 0),
        (Act::Journal, _) => store.journal(lease, &[pending("c1")], &events).await.map(|()| 0),
        // A lease cannot be shared, and the worker keeps its own.
        (Act::Delete, _) => store.delete(Lease::new(session, lease.epoch(), ())).await.map(|()| 0),
        (Act::Fork, _) => {
            let (from, checkpoint) =
                (name(deed.source()), Checkpoint { last_turn: TURNS_OF_A_FORK, ..none() });
            let entries = deed.entries();
            let fork = Fork { from: &from, entries, checkpoint: &checkpoint, events: &[], now_ms: 50 };
            store.fork(lease, fork).await.map(|_| 0)
        }
        (Act::Import, Some(whole)) => store.import(lease, whole).await.map(|_| 0),
        (_, _) if deed.commits() => {
            let turn = (deed.act != Act::End).then(RawJson::empty_object);
            let checkpoint = Checkpoint { turn, last_turn: held.revision + 1, ..none() };
            let (entries, spent) = ([said(held.revision)], usage(held.revision));
            let commit = Commit {
                expect: Revision(held.builds_on(deed.act)),
                entries: &entries,
                usage: Some(&spent),
                events: &events,
                consumed: &held.uses(deed.act),
                ..of(&checkpoint)
            };
            store.commit(lease, commit).await.map(|committed| u64::from(committed.has_inputs))
        }
        (_, _) => Ok(0),
    }
}

/// The session as JSON Lines bring it elsewhere, under another name.
pub(super) async fn carried(store: &dyn Store, from: usize, to: usize) -> Result<WholeSession, String> {
    let mut lines = Vec::new();
    let left_out = export(store, &name(from), &mut lines).await.map_err(|error| error.to_string())?;
    let elsewhere = MemoryStore::new();
    let imported = import(&elsewhere, &mut &*lines, Some(name(to)), 60).await;
    let imported = imported.map_err(|error| error.to_string())?;
    if !(left_out.is_empty() && imported.left_out.is_empty()) {
        return Err(format!("left out: {left_out:?} {imported:?}"));
    }
    let mut blobs = Vec::new();
    for hash in elsewhere.blobs(&name(to)).await.map_err(|error| error.to_string())? {
        blobs.extend(elsewhere.get_blob(&hash).await.map_err(|error| error.to_string())?);
    }
    let found = elsewhere.salvage(&name(to)).await.map_err(|error| error.to_string())?;
    whole(found.unwrap_or_default(), blobs).ok_or_else(|| "the session is not whole".to_owned())
}

fn whole(found: Salvaged, blobs: Vec<Vec<u8>>) -> Option<WholeSession> {
    Some(WholeSession {
        meta: found.meta?,
        revision: found.revision,
        entries: found.entries.into_iter().map(|(_, text)| text).collect(),
        checkpoint: found.checkpoint?,
        journal: found.journal,
        inputs: found.inputs,
        used: found.used,
        last_input: found.last_input,
        terminal: found.terminal,
        events: found.events,
        usage: found.usage.into_iter().collect(),
        rounds: found.rounds,
        blobs,
        now_ms: 60,
    })
}

pub(super) fn said(revision: u64) -> Entry {
    user(&format!("said at revision {revision}"))
}

pub(super) fn name(session: usize) -> SessionId {
    id(["one", "two"][session])
}

/// How many turns a fork counts from.
pub(super) const TURNS_OF_A_FORK: u64 = 2;
