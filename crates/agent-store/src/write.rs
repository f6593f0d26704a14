//! What is about to be written, encoded and judged before any store is touched.

use std::cell::RefCell;

use agent_core::{
    Checkpoint, Commit, Entry, Event, InputId, JournalRecord, Revision, SessionId, SessionMeta,
    TerminalReason,
};
use serde::Serialize;

use crate::{Lease, StoreError};

/// A value as the JSON that is stored.
#[derive(Debug, Clone)]
pub(crate) struct Json(Box<str>);

impl Json {
    pub(crate) fn get(&self) -> &str {
        &self.0
    }
}

/// A session's first rows.
#[derive(Debug, Clone)]
pub(crate) struct NewSession {
    pub(crate) meta: Json,
    pub(crate) model: String,
    pub(crate) created_ms: i64,
    pub(crate) state: State,
}

/// The rows of a commit.
#[derive(Debug, Clone)]
pub(crate) struct Rows {
    pub(crate) expect: Revision,
    /// The exact bytes that every later load gives.
    pub(crate) entries: Vec<Json>,
    has_boundary: bool,
    pub(crate) state: State,
    pub(crate) usage: Option<Json>,
    pub(crate) events: Events,
    pub(crate) consumed: Vec<InputId>,
    pub(crate) ended: Ended,
    pub(crate) now_ms: i64,
}

/// A checkpoint, and the parts of it that the session list shows.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) checkpoint: Json,
    pub(crate) last_turn: u64,
    /// Whether a turn is open.
    pub(crate) is_open: bool,
    pub(crate) usage: Json,
}

/// What a commit says about how the last turn ended.
#[derive(Debug, Clone)]
pub(crate) enum Ended {
    /// It ended (or was parked) for this reason.
    For(Json),
    /// A turn is open.
    Open,
    /// Nothing: it was written between turns.
    AsBefore,
}

/// Durable events of one session, each with its number.
#[derive(Debug, Clone)]
pub(crate) struct Events(pub(crate) Vec<(u64, Json)>);

/// Journal records in order.
#[derive(Debug, Clone)]
pub(crate) struct Records(pub(crate) Vec<Record>);

/// A journal record.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) is_response: bool,
    /// Whether its slots hold what is new since the last commit, and not all of it. Only stores that keep stamps apart
    /// write such records.
    pub(crate) adds: bool,
    pub(crate) body: Json,
}

/// Where a stored session ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    pub(crate) revision: Revision,
    pub(crate) last_seq: u64,
    /// Whether a response is in the journal.
    pub(crate) pending: bool,
}

impl NewSession {
    pub(crate) fn encode(
        lease: &Lease,
        meta: &SessionMeta,
        checkpoint: &Checkpoint,
    ) -> Result<Self, StoreError> {
        let session = lease.session();
        own(session, &meta.id)?;
        Ok(Self {
            meta: json(session, meta)?,
            model: meta.model.clone(),
            created_ms: meta.created_ms,
            state: State::encode(session, checkpoint)?,
        })
    }
}

impl Rows {
    pub(crate) fn encode(session: &SessionId, commit: Commit<'_>) -> Result<Self, StoreError> {
        let entries = commit.entries.iter().map(|entry| json(session, entry));
        Ok(Self {
            expect: commit.expect,
            entries: entries.collect::<Result<_, _>>()?,
            has_boundary: has_boundary(commit.entries),
            state: State::encode(session, commit.checkpoint)?,
            usage: commit.usage.map(|usage| json(session, usage)).transpose()?,
            events: Events::encode(session, commit.events)?,
            consumed: commit.consumed.to_vec(),
            ended: Ended::encode(session, commit.terminal, commit.checkpoint)?,
            now_ms: commit.now_ms,
        })
    }

    /// The same rows with these entries, as the bytes that another store had.
    pub(crate) fn with(self, entries: Vec<String>) -> Self {
        Self { entries: entries.into_iter().map(|text| Json(text.into())).collect(), ..self }
    }

    /// Whether the rows may follow `head`; the number of the last event after them.
    pub(crate) fn after(&self, session: &SessionId, head: Head) -> Result<u64, StoreError> {
        head.takes_commit(session, self.expect, self.has_boundary)?;
        self.events.after(session, head)
    }
}

impl State {
    pub(crate) fn encode(session: &SessionId, checkpoint: &Checkpoint) -> Result<Self, StoreError> {
        Ok(Self {
            checkpoint: json(session, checkpoint)?,
            last_turn: checkpoint.last_turn,
            is_open: checkpoint.turn.is_some(),
            usage: json(session, &checkpoint.usage)?,
        })
    }
}

impl Ended {
    fn encode(
        session: &SessionId,
        terminal: Option<&TerminalReason>,
        checkpoint: &Checkpoint,
    ) -> Result<Self, StoreError> {
        match terminal {
            Some(reason) => Ok(Self::For(json(session, reason)?)),
            None if checkpoint.turn.is_some() => Ok(Self::Open),
            None => Ok(Self::AsBefore),
        }
    }
}

impl Events {
    pub(crate) fn encode(session: &SessionId, events: &[Event]) -> Result<Self, StoreError> {
        let numbered = events.iter().map(|event| Ok((number(session, event)?, json(session, event)?)));
        numbered.collect::<Result<_, _>>().map(Self)
    }

    /// Whether the events may follow `head`; the number of the last one after them.
    pub(crate) fn after(&self, session: &SessionId, head: Head) -> Result<u64, StoreError> {
        self.0.iter().try_fold(head.last_seq, |last, (found, _)| following(session, last, *found))
    }
}

impl Record {
    pub(crate) fn encode(session: &SessionId, record: &JournalRecord) -> Result<Self, StoreError> {
        let is_response = matches!(record, JournalRecord::Response(_));
        Ok(Self { is_response, adds: false, body: json(session, record)? })
    }
}

impl Head {
    /// Whether a commit that builds on `expect` may follow.
    pub(crate) fn takes_commit(
        self,
        session: &SessionId,
        expect: Revision,
        has_boundary: bool,
    ) -> Result<(), StoreError> {
        if expect != self.revision {
            let session = session.clone();
            return Err(StoreError::Stale { session, expected: expect, found: self.revision });
        }
        if has_boundary && self.pending {
            return Err(StoreError::Pending(session.clone()));
        }
        Ok(())
    }
}

pub(crate) fn has_boundary(entries: &[Entry]) -> bool {
    entries.iter().any(|entry| matches!(entry, Entry::Boundary(_)))
}

/// The number of a durable event of this session.
pub(crate) fn number(session: &SessionId, event: &Event) -> Result<u64, StoreError> {
    own(session, &event.session)?;
    let seq = event.seq.filter(|_| event.body.is_durable());
    seq.ok_or_else(|| StoreError::LiveEvent(session.clone()))
}

/// The number of an event that comes after the one numbered `last`; it leaves no gap.
pub(crate) fn following(session: &SessionId, last: u64, found: u64) -> Result<u64, StoreError> {
    let expected = last.saturating_add(1);
    if found == expected {
        return Ok(expected);
    }
    Err(StoreError::EventGap { session: session.clone(), expected, found })
}

/// Whether a lease of epoch `held` is the newest one.
pub(crate) fn holds(session: &SessionId, held: u64, newest: u64) -> Result<(), StoreError> {
    if held == newest {
        return Ok(());
    }
    Err(StoreError::LeaseLost { session: session.clone(), held, newest })
}

pub(crate) fn own(lease: &SessionId, given: &SessionId) -> Result<(), StoreError> {
    if lease == given {
        return Ok(());
    }
    Err(StoreError::OtherSession { lease: lease.clone(), given: given.clone() })
}

#[expect(clippy::expect_used, reason = "serde_json writes UTF-8")]
pub(crate) fn json<T: Serialize>(session: &SessionId, value: &T) -> Result<Json, StoreError> {
    // Taken, not borrowed: what is written may itself write.
    let mut scratch = SCRATCH.take();
    scratch.clear();
    let written = serde_json::to_writer(&mut scratch, value);
    let json = Json(std::str::from_utf8(&scratch).expect("serde_json writes UTF-8").into());
    // What one large value took is not kept for ever.
    scratch.shrink_to(LARGEST_SCRATCH);
    SCRATCH.set(scratch);
    written.map(|()| json).map_err(|cause| StoreError::Encode { session: session.clone(), cause })
}

thread_local! {
    /// Where values are written before their length is known, so that they are not moved while they grow.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}
const LARGEST_SCRATCH: usize = 64 * 1024;
