//! The writes, each run inside a transaction that its worker commits.

use agent_core::{BlobHash, Committed, InputId, Revision, SessionId};
use rusqlite::{Connection, OptionalExtension};

use super::entries;
use super::fault::Fail;
use super::stamps::Stamps;
use crate::write::{self, Ended, Events, Head, NewSession, Records, Rows, State};
use crate::{Lease, StoreError};

/// Who writes.
#[derive(Debug)]
pub(super) struct Holder {
    session: SessionId,
    epoch: u64,
}

/// The stored session that is written to.
struct Target {
    /// Its key in the database.
    n: i64,
    head: Head,
    /// How many entries it has.
    entries: u64,
}

impl Holder {
    pub(super) fn of(lease: &Lease) -> Self {
        Self { session: lease.session().clone(), epoch: lease.epoch() }
    }

    pub(super) fn session(&self) -> &SessionId {
        &self.session
    }
}

/// Begins a new lease, so that whoever had the one before can write no more, and counts an attempt at an open turn: the
/// epoch, and how many attempts there were.
pub(super) fn next_epoch(db: &Connection, session: &SessionId) -> Result<(u64, u32), Fail> {
    let mut bump = db.prepare_cached(
        "INSERT INTO leases (session, epoch) VALUES (?1, 1)
         ON CONFLICT (session) DO UPDATE SET epoch = epoch + 1 RETURNING epoch",
    )?;
    let epoch = bump.query_row([session.as_str()], |row| row.get(0))?;
    let mut count = db.prepare_cached(
        "UPDATE sessions SET attempts = attempts + 1 WHERE id = ?1 AND is_open RETURNING attempts",
    )?;
    let attempts = count.query_row([session.as_str()], |row| row.get(0)).optional()?;
    Ok((epoch, attempts.unwrap_or_default()))
}

/// Whoever has the session by now: its own attempt is one more.
pub(super) fn withdraw_attempt(db: &Connection, session: &SessionId) -> Result<(), Fail> {
    db.prepare_cached("UPDATE sessions SET attempts = attempts - 1 WHERE id = ?1 AND attempts > 0")?
        .execute([session.as_str()])?;
    Ok(())
}

pub(super) fn reset_attempts(db: &Connection, session: &SessionId) -> Result<(), Fail> {
    let found =
        db.prepare_cached("UPDATE sessions SET attempts = 0 WHERE id = ?1")?.execute([session.as_str()])?;
    if found == 0 { Err(StoreError::Missing(session.clone()).into()) } else { Ok(()) }
}

pub(super) fn create(db: &Connection, holder: &Holder, first: &NewSession) -> Result<Revision, Fail> {
    check_lease(db, holder)?;
    let id = holder.session.as_str();
    let State { last_turn, usage, .. } = &first.state;
    let added = db
        .prepare_cached(
            "INSERT INTO sessions (id, model, created_ms, updated_ms, last_turn, usage)
             VALUES (?1, ?2, ?3, ?3, ?4, ?5) ON CONFLICT (id) DO NOTHING",
        )?
        .execute((id, &first.model, first.created_ms, last_turn, usage.get()))?;
    if added == 0 {
        return Err(StoreError::Exists(holder.session.clone()).into());
    }
    let n = db.last_insert_rowid();
    db.prepare_cached("INSERT INTO descriptions (session, body) VALUES (?1, ?2)")?
        .execute((n, first.meta.get().as_bytes()))?;
    checkpoint(db, n, 0, &first.state)?;
    Ok(Revision(0))
}

pub(super) fn commit(
    db: &Connection,
    holder: &Holder,
    rows: &Rows,
    stamps: &Stamps,
) -> Result<Committed, Fail> {
    let Target { n, head, entries: count } = target(db, holder)?;
    let last_seq = rows.after(&holder.session, head)?;
    let revision = head.revision.0 + 1;
    let count = entries::append(db, n, count, &rows.entries)?;
    events(db, n, &rows.events)?;
    checkpoint(db, n, revision, &rows.state)?;
    stamps.write(db, n)?;
    if let Some(usage) = &rows.usage {
        db.prepare_cached("INSERT INTO usage (session, revision, body) VALUES (?1, ?2, ?3)")?.execute((
            n,
            revision,
            usage.get(),
        ))?;
    }
    db.prepare_cached("DELETE FROM journal WHERE session = ?1")?.execute([n])?;
    let State { last_turn, usage, .. } = &rows.state;
    let (says, reason) = match &rows.ended {
        Ended::For(reason) => (true, Some(reason.get())),
        Ended::Open => (true, None),
        Ended::AsBefore => (false, None),
    };
    db.prepare_cached(
        "UPDATE sessions SET revision = ?2, head = ?3, last_seq = ?4, last_turn = ?5, usage = ?6,
         updated_ms = ?7, terminal = iif(?8, ?9, terminal), is_open = ?10, attempts = iif(?10, attempts, 0)
         WHERE n = ?1",
    )?
    .execute((
        n,
        revision,
        count,
        last_seq,
        last_turn,
        usage.get(),
        rows.now_ms,
        says,
        reason,
        rows.state.is_open,
    ))?;
    consume(db, n, holder, &rows.consumed)?;
    let mut left =
        db.prepare_cached("SELECT EXISTS (SELECT 1 FROM inputs WHERE session = ?1 AND body IS NOT NULL)")?;
    let has_inputs = left.query_row([n], |row| row.get(0))?;
    Ok(Committed { revision: Revision(revision), has_inputs })
}

/// Keeps an input for whoever has the session, or takes it next.
pub(super) fn put_input(
    db: &Connection,
    session: &SessionId,
    key: Option<&str>,
    body: &write::Json,
) -> Result<InputId, Fail> {
    let found = db
        .prepare_cached(
            "UPDATE sessions SET last_input = last_input + 1 WHERE id = ?1
             RETURNING n, last_input, is_open",
        )?
        .query_row([session.as_str()], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, u64>(1)?, row.get::<_, bool>(2)?))
        })
        .optional()?;
    let (n, id, has_turn) = found.ok_or_else(|| StoreError::Missing(session.clone()))?;
    if !has_turn {
        return Err(StoreError::NoTurn(session.clone()).into());
    }
    let added = db
        .prepare_cached(
            "INSERT INTO inputs (session, id, key, body) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (session, key) WHERE key IS NOT NULL DO NOTHING",
        )?
        .execute((n, id, key, body.get().as_bytes()))?;
    if added == 0 {
        let (session, key) = (session.clone(), key.unwrap_or_default().to_owned());
        return Err(StoreError::Repeated { session, key }.into());
    }
    Ok(InputId(id))
}

/// Keeps what was said of a turn.
pub(super) fn put_round(
    db: &Connection,
    session: &SessionId,
    turn: u64,
    body: &write::Json,
) -> Result<(), Fail> {
    let kept = db
        .prepare_cached(
            "INSERT INTO rounds (session, turn, body) SELECT n, ?2, ?3 FROM sessions WHERE id = ?1
             ON CONFLICT (session, turn) DO UPDATE SET body = excluded.body",
        )?
        .execute((session.as_str(), turn, body.get().as_bytes()))?;
    if kept == 0 { Err(StoreError::Missing(session.clone()).into()) } else { Ok(()) }
}

/// Takes used inputs out of the inbox; the keys of those that have one stay.
fn consume(db: &Connection, n: i64, holder: &Holder, used: &[InputId]) -> Result<(), Fail> {
    for InputId(input) in used {
        let found = db
            .prepare_cached(
                "UPDATE inputs SET body = NULL WHERE session = ?1 AND id = ?2 AND body IS NOT NULL",
            )?
            .execute((n, input))?;
        if found == 0 {
            let (session, input) = (holder.session.clone(), *input);
            return Err(StoreError::NoInput { session, input }.into());
        }
        db.prepare_cached("DELETE FROM inputs WHERE session = ?1 AND id = ?2 AND key IS NULL")?
            .execute((n, input))?;
    }
    Ok(())
}

pub(super) fn journal(
    db: &Connection,
    holder: &Holder,
    records: &Records,
    new_events: &Events,
) -> Result<(), Fail> {
    let Target { n, head, .. } = target(db, holder)?;
    let last_seq = new_events.after(&holder.session, head)?;
    let mut insert = db.prepare_cached(
        "INSERT INTO journal (session, pos, is_response, adds, body)
         VALUES (?1, (SELECT count(*) FROM journal WHERE session = ?1), ?2, ?3, ?4)",
    )?;
    for record in &records.0 {
        insert.execute((n, record.is_response, record.adds, record.body.get().as_bytes()))?;
    }
    events(db, n, new_events)?;
    db.prepare_cached("UPDATE sessions SET last_seq = ?2 WHERE n = ?1")?.execute((n, last_seq))?;
    Ok(())
}

/// Rows of other tables go with the session's own.
pub(super) fn delete(db: &Connection, holder: &Holder) -> Result<(), Fail> {
    let Target { n, .. } = target(db, holder)?;
    db.prepare_cached("DELETE FROM sessions WHERE n = ?1")?.execute([n])?;
    Ok(())
}

pub(super) fn blob(db: &Connection, session: &SessionId, hash: &BlobHash, bytes: &[u8]) -> Result<(), Fail> {
    let found = db
        .prepare_cached("SELECT n FROM sessions WHERE id = ?1")?
        .query_row([session.as_str()], |row| row.get::<_, i64>(0))
        .optional()?;
    let n = found.ok_or_else(|| StoreError::Missing(session.clone()))?;
    db.prepare_cached("INSERT INTO blobs (hash, bytes) VALUES (?1, ?2) ON CONFLICT (hash) DO NOTHING")?
        .execute((hash.as_str(), bytes))?;
    db.prepare_cached("INSERT INTO blob_refs (session, hash) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
        .execute((n, hash.as_str()))?;
    Ok(())
}

/// Refuses a writer whose lease was taken over, whatever its file lock says.
pub(super) fn check_lease(db: &Connection, holder: &Holder) -> Result<(), Fail> {
    let newest = db
        .prepare_cached("SELECT epoch FROM leases WHERE session = ?1")?
        .query_row([holder.session.as_str()], |row| row.get(0))
        .optional()?;
    Ok(write::holds(&holder.session, holder.epoch, newest.unwrap_or_default())?)
}

fn target(db: &Connection, holder: &Holder) -> Result<Target, Fail> {
    let found = db
        .prepare_cached(
            "SELECT n, revision, last_seq, head,
             EXISTS (SELECT 1 FROM journal WHERE session = n AND is_response = 1),
             (SELECT epoch FROM leases WHERE leases.session = ?1)
             FROM sessions WHERE id = ?1",
        )?
        .query_row([holder.session.as_str()], |row| {
            let head = Head { revision: Revision(row.get(1)?), last_seq: row.get(2)?, pending: row.get(4)? };
            Ok((Target { n: row.get(0)?, head, entries: row.get(3)? }, row.get::<_, Option<u64>>(5)?))
        })
        .optional()?;
    let Some((target, newest)) = found else {
        check_lease(db, holder)?;
        return Err(StoreError::Missing(holder.session.clone()).into());
    };
    write::holds(&holder.session, holder.epoch, newest.unwrap_or_default())?;
    Ok(target)
}

pub(super) fn events(db: &Connection, n: i64, events: &Events) -> Result<(), Fail> {
    let mut insert = db.prepare_cached("INSERT INTO events (session, seq, body) VALUES (?1, ?2, ?3)")?;
    for (seq, body) in &events.0 {
        insert.execute((n, seq, body.get().as_bytes()))?;
    }
    Ok(())
}

pub(super) fn checkpoint(db: &Connection, n: i64, revision: u64, state: &State) -> Result<(), Fail> {
    db.prepare_cached("INSERT INTO checkpoints (session, revision, body) VALUES (?1, ?2, ?3)")?.execute((
        n,
        revision,
        state.checkpoint.get().as_bytes(),
    ))?;
    db.prepare_cached("DELETE FROM checkpoints WHERE session = ?1 AND revision <= ?2 - ?3")?.execute((
        n,
        revision,
        CHECKPOINTS_KEPT,
    ))?;
    Ok(())
}

const CHECKPOINTS_KEPT: i64 = 3;
