//! A session begun as a copy of another one's beginning: rows are copied inside the database.

use agent_core::{Revision, RoundSummary, SessionId, SessionMeta};
use rusqlite::{Connection, OptionalExtension};

use super::fault::Fail;
use super::stamps::Stamps;
use super::writes::{self, Holder};
use super::{entries, reads};
use crate::write::{self, Events, Head, State};
use crate::{Damage, Row, StoreError, rows};

/// What is copied, and what the copy begins with.
#[derive(Debug)]
pub(super) struct Branch {
    pub(super) from: SessionId,
    pub(super) entries: u64,
    pub(super) state: State,
    pub(super) stamps: Stamps,
    pub(super) events: Events,
    pub(super) now_ms: i64,
}

/// The session that is copied from.
struct Source {
    n: i64,
    head: u64,
    meta: Option<Vec<u8>>,
}

pub(super) fn fork(db: &Connection, holder: &Holder, branch: &Branch) -> Result<Revision, Fail> {
    writes::check_lease(db, holder)?;
    let id = holder.session();
    let mut is_there = db.prepare_cached("SELECT EXISTS (SELECT 1 FROM sessions WHERE id = ?1)")?;
    if is_there.query_row([id.as_str()], |row| row.get(0))? {
        return Err(StoreError::Exists(id.clone()).into());
    }
    let source = source(db, branch)?;
    let nothing = Head { revision: Revision(0), last_seq: 0, pending: false };
    let last_seq = branch.events.after(id, nothing)?;
    let n = describe(db, id, branch, (&source, last_seq))?;
    copy(db, n, source.n, branch)?;
    copy_rounds(db, n, source.n, branch)?;
    writes::checkpoint(db, n, 0, &branch.state)?;
    branch.stamps.write(db, n)?;
    writes::events(db, n, &branch.events)?;
    Ok(Revision(0))
}

fn source(db: &Connection, branch: &Branch) -> Result<Source, Fail> {
    let found = db
        .prepare_cached(
            "SELECT n, head, body FROM sessions LEFT JOIN descriptions ON session = n WHERE id = ?1",
        )?
        .query_row([branch.from.as_str()], |row| {
            Ok(Source { n: row.get(0)?, head: row.get(1)?, meta: row.get(2)? })
        })
        .optional()?;
    let source = found.ok_or_else(|| StoreError::Missing(branch.from.clone()))?;
    if branch.entries > source.head {
        let (session, head, entries) = (branch.from.clone(), source.head, branch.entries);
        return Err(StoreError::NoEntry { session, head, entries }.into());
    }
    Ok(source)
}

/// The rows that say what the new session is; its key.
fn describe(
    db: &Connection,
    id: &SessionId,
    branch: &Branch,
    (source, last_seq): (&Source, u64),
) -> Result<i64, Fail> {
    let missing =
        || StoreError::Corrupt { session: branch.from.clone(), row: Row::Meta, cause: Damage::Missing };
    let body = source.meta.as_ref().ok_or_else(missing)?;
    let meta: SessionMeta = rows::decode(&branch.from, Row::Meta, body)?;
    let meta = SessionMeta { id: id.clone(), created_ms: branch.now_ms, ..meta };
    let State { last_turn, usage, is_open, .. } = &branch.state;
    db.prepare_cached(
        "INSERT INTO sessions (id, model, created_ms, updated_ms, head, last_seq, last_turn, usage, is_open)
         VALUES (?1, ?2, ?3, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute((
        id.as_str(),
        &meta.model,
        meta.created_ms,
        branch.entries,
        last_seq,
        last_turn,
        usage.get(),
        is_open,
    ))?;
    let n = db.last_insert_rowid();
    db.prepare_cached("INSERT INTO descriptions (session, body) VALUES (?1, ?2)")?
        .execute((n, write::json(id, &meta)?.get().as_bytes()))?;
    Ok(n)
}

fn copy(db: &Connection, n: i64, source: i64, branch: &Branch) -> Result<(), Fail> {
    entries::copy(db, (&branch.from, source), n, branch.entries)?;
    db.prepare_cached(
        "INSERT INTO blob_refs (session, hash) SELECT ?1, hash FROM blob_refs WHERE session = ?2",
    )?
    .execute((n, source))?;
    Ok(())
}

/// What was said of turns that lie within the copy, and that the new session will not have turns of the same numbers as.
fn copy_rounds(db: &Connection, n: i64, source: i64, branch: &Branch) -> Result<(), Fail> {
    let mut insert = db.prepare_cached("INSERT INTO rounds (session, turn, body) VALUES (?1, ?2, ?3)")?;
    let found = reads::numbered(db, reads::ROUNDS, source)?;
    for (turn, body) in found.into_iter().filter(|(turn, _)| *turn <= branch.state.last_turn) {
        let round: RoundSummary = rows::decode(&branch.from, Row::Round(turn), &body)?;
        if round.to.position() as u64 <= branch.entries {
            insert.execute((n, turn, body))?;
        }
    }
    Ok(())
}
