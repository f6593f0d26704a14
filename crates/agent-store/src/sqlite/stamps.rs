//! What was read of which file: a row for each file, so that a commit writes those that changed and no other.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use agent_core::{Checkpoint, Committed, JournalRecord, ReadStamp, SessionId, Slots};
use rusqlite::Connection;

use super::fault::Fail;
use super::locks::Lock;
use crate::write::{self, Json, Record, Records};
use crate::{Lease, Row, StoreError, rows};

type Map = BTreeMap<String, ReadStamp>;

/// What a lease of this store holds.
#[derive(Debug)]
pub(super) struct Held {
    _lock: Lock,
    /// The stamps as the last commit under this lease left them; `None` when that is not known.
    stored: Mutex<Option<Map>>,
}

/// The rows of stamps that a commit writes.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    set: Vec<(String, Json)>,
    gone: Vec<String>,
    /// Whether `set` is all there is, so that rows of other paths go.
    is_whole: bool,
}

impl Held {
    pub(super) fn new(lock: Lock) -> Self {
        Self { _lock: lock, stored: Mutex::new(None) }
    }

    /// Nothing is known from here on, until [`Held::put`]: the write under way may succeed or fail.
    fn take(&self) -> Option<Map> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put(&self, reads: Option<Map>) {
        *self.stored.lock().unwrap_or_else(PoisonError::into_inner) = reads;
    }
}

/// A commit's stamps on their way: the rows to write, and what is stored once they are.
pub(super) struct Pending<'a> {
    held: Option<&'a Held>,
    now: &'a Map,
    before: Option<Map>,
}

impl<'a> Pending<'a> {
    /// The difference between what is stored and what the checkpoint holds.
    pub(super) fn of(lease: &'a Lease, checkpoint: &'a Checkpoint) -> Result<(Self, Stamps), StoreError> {
        let held = lease.guard::<Held>();
        let pending = Self { held, now: &checkpoint.slots.reads, before: held.and_then(Held::take) };
        let nothing = BTreeMap::new();
        let before = pending.before.as_ref().unwrap_or(&nothing);
        let set = changed(before, pending.now)
            .map(|(path, stamp)| Ok((path.clone(), write::json(lease.session(), stamp)?)));
        let stamps = Stamps {
            set: set.collect::<Result<_, StoreError>>()?,
            gone: before.keys().filter(|path| !pending.now.contains_key(*path)).cloned().collect(),
            is_whole: pending.before.is_none(),
        };
        Ok((pending, stamps))
    }

    /// Notes what is stored now; after a failure that is not known.
    pub(super) fn settle(self, done: Result<Committed, StoreError>) -> Result<Committed, StoreError> {
        if let (Ok(_), Some(held)) = (&done, self.held) {
            self.note(held);
        }
        done
    }

    fn note(self, held: &Held) {
        let mut reads = self.before.unwrap_or_default();
        let new: Vec<_> = changed(&reads, self.now).map(|(path, it)| (path.clone(), it.clone())).collect();
        reads.extend(new);
        if reads.len() > self.now.len() {
            reads.retain(|path, _| self.now.contains_key(path));
        }
        held.put(Some(reads));
    }
}

impl Stamps {
    /// All stamps of a session that begins with some.
    pub(super) fn of(session: &SessionId, checkpoint: &Checkpoint) -> Result<Self, StoreError> {
        let set = checkpoint
            .slots
            .reads
            .iter()
            .map(|(path, stamp)| Ok((path.clone(), write::json(session, stamp)?)));
        Ok(Self { set: set.collect::<Result<_, StoreError>>()?, ..Self::default() })
    }

    pub(super) fn write(&self, db: &Connection, n: i64) -> Result<(), Fail> {
        if self.is_whole {
            let mut query = db.prepare_cached("SELECT path FROM reads WHERE session = ?1")?;
            let paths: Vec<String> = query.query_map([n], |row| row.get(0))?.collect::<Result<_, _>>()?;
            let is_kept = |path: &String| self.set.binary_search_by(|(set, _)| set.cmp(path)).is_ok();
            forget(db, n, paths.iter().filter(|path| !is_kept(path)))?;
        }
        forget(db, n, self.gone.iter())?;
        if self.set.is_empty() {
            return Ok(());
        }
        let mut put = db.prepare_cached(
            "INSERT INTO reads (session, path, body) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET body = excluded.body WHERE body <> excluded.body",
        )?;
        for (path, body) in &self.set {
            put.execute((n, path, body.get()))?;
        }
        Ok(())
    }
}

/// The checkpoint as its row holds it.
pub(super) fn without(checkpoint: &Checkpoint) -> Cow<'_, Checkpoint> {
    if checkpoint.slots.reads.is_empty() {
        return Cow::Borrowed(checkpoint);
    }
    // Field by field, so that the stamps are not copied first.
    let Checkpoint {
        turn,
        last_turn,
        slots,
        usage,
        asked_ms,
        asked_otherwise,
        compaction,
        turn_from,
        active,
        requests,
        retried,
        nano_usd,
        elapsed_ms,
        children,
    } = checkpoint;
    Cow::Owned(Checkpoint {
        turn: turn.clone(),
        last_turn: *last_turn,
        slots: slots.without_reads(),
        usage: usage.clone(),
        asked_ms: *asked_ms,
        asked_otherwise: *asked_otherwise,
        compaction: *compaction,
        turn_from: *turn_from,
        active: active.clone(),
        requests: requests.clone(),
        retried: *retried,
        nano_usd: *nano_usd,
        elapsed_ms: *elapsed_ms,
        children: children.clone(),
    })
}

/// The same state with these stamps.
fn with_reads(slots: &Slots, reads: Map) -> Slots {
    Slots { reads: reads.into(), ..slots.without_reads() }
}

/// Journal records as their rows hold them: of the stamps, those that are new since the last commit.
pub(super) fn records(lease: &Lease, records: &[JournalRecord]) -> Result<Records, StoreError> {
    let stored = lease.guard::<Held>().map(|held| held.stored.lock().unwrap_or_else(PoisonError::into_inner));
    let stored = stored.as_deref().and_then(Option::as_ref);
    let encoded = records.iter().map(|record| {
        let short = stored.and_then(|stored| shortened(stored, record));
        let body = Record::encode(lease.session(), short.as_ref().unwrap_or(record))?;
        Ok(Record { adds: short.is_some(), ..body })
    });
    encoded.collect::<Result<_, _>>().map(Records)
}

/// Gives a loaded session its stamps back; `adds` says which records of the journal hold new ones only.
pub(super) fn put_back(
    db: &Connection,
    n: i64,
    session: &SessionId,
    (checkpoint, journal): (&mut Checkpoint, &mut [JournalRecord]),
    adds: &[bool],
) -> Result<(), Fail> {
    let reads = &mut checkpoint.slots.reads;
    let mut query = db.prepare_cached("SELECT path, body FROM reads WHERE session = ?1")?;
    let mut found = query.query([n])?;
    while let Some(row) = found.next()? {
        let body = row.get_ref(1)?.as_bytes().map_err(rusqlite::Error::from)?;
        reads.insert(row.get(0)?, rows::decode(session, Row::Checkpoint, body)?);
    }
    for (journaled, adds) in journal.iter_mut().zip(adds) {
        if let JournalRecord::Finished { slots: Some(slots), .. } = journaled
            && *adds
        {
            let new = std::mem::replace(&mut slots.reads, reads.clone());
            slots.reads.extend(new);
        }
    }
    Ok(())
}

/// `None` when the record has to be stored as it is.
fn shortened(stored: &Map, record: &JournalRecord) -> Option<JournalRecord> {
    let JournalRecord::Finished { result, slots: Some(slots) } = record else { return None };
    if stored.keys().any(|path| !slots.reads.contains_key(path)) {
        // A stamp that went cannot be told by what is added.
        return None;
    }
    let new = changed(stored, &slots.reads).map(|(path, stamp)| (path.clone(), stamp.clone())).collect();
    Some(JournalRecord::Finished { result: result.clone(), slots: Some(with_reads(slots, new)) })
}

fn changed<'a>(before: &'a Map, now: &'a Map) -> impl Iterator<Item = (&'a String, &'a ReadStamp)> {
    now.iter().filter(|(path, stamp)| before.get(*path) != Some(*stamp))
}

fn forget<'a>(db: &Connection, n: i64, mut paths: impl Iterator<Item = &'a String>) -> Result<(), Fail> {
    paths.try_for_each(|path| {
        db.prepare_cached("DELETE FROM reads WHERE session = ?1 AND path = ?2")?.execute((n, path))?;
        Ok(())
    })
}
