//! The reads, each run on a snapshot.

use agent_core::{
    BlobHash, Event, Revision, RoundSummary, SessionId, SessionMeta, SessionRecord, SessionState,
    StoredInput, Usage,
};
use rusqlite::{Connection, OptionalExtension, Row as SqlRow};

use super::fault::Fail;
use super::{entries, stand_in};
use crate::rows::{self, Numbered, SessionRows, StateRows, SummaryRow};
use crate::{Row, StoreError, SummaryLine};

pub(super) fn session(db: &Connection, id: &SessionId) -> Result<Option<SessionRecord>, Fail> {
    let found = db
        .prepare_cached(
            "SELECT n, revision, head, last_seq, body FROM sessions
             LEFT JOIN descriptions ON session = n WHERE id = ?1",
        )?
        .query_row([id.as_str()], |row| {
            Ok((row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
        })
        .optional()?;
    let Some((n, revision, head, last_seq, meta)) = found else { return Ok(None) };
    let entries = entries::all(db, n)?;
    let (state, stand_in) = stand_in::state(db, n, id, &state_rows(db, n, revision)?)?;
    Ok(Some(SessionRows { meta, head, entries, state, stand_in, last_seq }.read(id)?))
}

pub(super) fn meta(db: &Connection, id: &SessionId) -> Result<Option<SessionMeta>, Fail> {
    let found = db
        .prepare_cached("SELECT body FROM sessions LEFT JOIN descriptions ON session = n WHERE id = ?1")?
        .query_row([id.as_str()], |row| row.get::<_, Option<Vec<u8>>>(0))
        .optional()?;
    Ok(found.map(|body| rows::meta(id, body)).transpose()?)
}

pub(super) fn state(db: &Connection, id: &SessionId) -> Result<Option<SessionState>, Fail> {
    let found = db
        .prepare_cached("SELECT n, revision FROM sessions WHERE id = ?1")?
        .query_row([id.as_str()], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)))
        .optional()?;
    let Some((n, revision)) = found else { return Ok(None) };
    let (mut state, stand_in) = stand_in::state(db, n, id, &state_rows(db, n, revision)?)?;
    if stand_in.is_some() {
        // Nothing that was asked at work then is open any more.
        state.journal.clear();
    }
    Ok(Some(state))
}

pub(super) fn inputs(db: &Connection, id: &SessionId) -> Result<Vec<StoredInput>, Fail> {
    let (n, _) = existing(db, id)?;
    Ok(rows::inputs(id, &numbered(db, OPEN_INPUTS, n)?)?)
}

pub(super) fn rounds(db: &Connection, id: &SessionId) -> Result<Vec<RoundSummary>, Fail> {
    let (n, _) = existing(db, id)?;
    let rows = numbered(db, ROUNDS, n)?;
    Ok(rows::decode_all(id, rows, Row::Round)?)
}

pub(super) fn state_rows(db: &Connection, n: i64, revision: u64) -> Result<StateRows, Fail> {
    let checkpoint = db
        .prepare_cached("SELECT body FROM checkpoints WHERE session = ?1 AND revision = ?2")?
        .query_row((n, revision), |row| row.get(0))
        .optional()?;
    let terminal: Option<String> =
        db.prepare_cached("SELECT terminal FROM sessions WHERE n = ?1")?.query_row([n], |row| row.get(0))?;
    let terminal = terminal.map(String::into_bytes);
    Ok(StateRows {
        revision,
        checkpoint,
        journal: numbered(db, "SELECT pos, body FROM journal WHERE session = ?1 ORDER BY pos", n)?,
        inputs: numbered(db, OPEN_INPUTS, n)?,
        terminal,
    })
}

pub(super) fn adds(db: &Connection, n: i64) -> Result<Vec<bool>, Fail> {
    let mut adds = db.prepare_cached("SELECT adds FROM journal WHERE session = ?1 ORDER BY pos")?;
    Ok(adds.query_map([n], |row| row.get(0))?.collect::<Result<_, _>>()?)
}

pub(super) fn events(db: &Connection, id: &SessionId, after_seq: u64) -> Result<Vec<Event>, Fail> {
    let (n, last_seq): (i64, u64) = existing(db, id)?;
    // A number beyond the last one has no events after it, however large it is.
    let after = after_seq.min(last_seq);
    let mut query =
        db.prepare_cached("SELECT seq, body FROM events WHERE session = ?1 AND seq > ?2 ORDER BY seq")?;
    let found: Vec<Numbered> = query.query_map((n, after), pair)?.collect::<Result<_, _>>()?;
    rows::in_order(id, &found, after + 1..last_seq + 1, Row::Event)?;
    Ok(rows::decode_all(id, found, Row::Event)?)
}

pub(super) fn usage(db: &Connection, id: &SessionId) -> Result<Vec<(Revision, Usage)>, Fail> {
    let (n, _) = existing(db, id)?;
    let rows = numbered(db, USAGE, n)?;
    let decoded =
        rows.into_iter().map(|(n, body)| Ok((Revision(n), rows::decode(id, Row::Usage(n), &body)?)));
    decoded.collect()
}

pub(super) fn sessions(db: &Connection) -> Result<Vec<SummaryLine>, Fail> {
    let mut query = db.prepare_cached(
        "SELECT id, created_ms, updated_ms, model, head, last_turn, terminal, usage FROM sessions
         ORDER BY updated_ms DESC, id",
    )?;
    let rows: Vec<SummaryRow> = query.query_map((), summary)?.collect::<Result<_, _>>()?;
    Ok(rows.into_iter().map(SummaryRow::read).collect())
}

pub(super) fn blob(db: &Connection, hash: &BlobHash) -> Result<Option<Vec<u8>>, Fail> {
    let found = db
        .prepare_cached("SELECT bytes FROM blobs WHERE hash = ?1")?
        .query_row([hash.as_str()], |row| row.get(0))
        .optional()?;
    Ok(found.map(|bytes| rows::checked(hash, bytes)).transpose()?)
}

pub(super) fn blobs(db: &Connection, id: &SessionId) -> Result<Vec<BlobHash>, Fail> {
    let (n, _) = existing(db, id)?;
    let mut query = db.prepare_cached("SELECT hash FROM blob_refs WHERE session = ?1 ORDER BY hash")?;
    let found: Vec<String> = query.query_map([n], |row| row.get(0))?.collect::<Result<_, _>>()?;
    let hash = |hash: &String| {
        let damaged = || StoreError::Damaged { cause: format!("{hash:?} is no hash of a blob").into() };
        BlobHash::parse(hash).ok_or_else(damaged)
    };
    Ok(found.iter().map(hash).collect::<Result<_, _>>()?)
}

/// The key of a session, and the number of its last event.
fn existing(db: &Connection, id: &SessionId) -> Result<(i64, u64), Fail> {
    let found = db
        .prepare_cached("SELECT n, last_seq FROM sessions WHERE id = ?1")?
        .query_row([id.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    found.ok_or_else(|| StoreError::Missing(id.clone()).into())
}

pub(super) fn numbered(db: &Connection, query: &str, n: i64) -> Result<Vec<Numbered>, Fail> {
    let mut query = db.prepare_cached(query)?;
    let rows = query.query_map([n], pair)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn pair(row: &SqlRow<'_>) -> rusqlite::Result<Numbered> {
    Ok((row.get(0)?, row.get_ref(1)?.as_bytes()?.to_vec()))
}

fn summary(row: &SqlRow<'_>) -> rusqlite::Result<SummaryRow> {
    Ok(SummaryRow {
        id: row.get(0)?,
        created_ms: row.get(1)?,
        updated_ms: row.get(2)?,
        model: row.get(3)?,
        entries: row.get(4)?,
        turns: row.get(5)?,
        terminal: row.get::<_, Option<String>>(6)?.map(String::into_bytes),
        usage: row.get_ref(7)?.as_bytes()?.to_vec(),
    })
}

const OPEN_INPUTS: &str = "SELECT id, body FROM inputs WHERE session = ?1 AND body IS NOT NULL ORDER BY id";
pub(super) const ROUNDS: &str = "SELECT turn, body FROM rounds WHERE session = ?1 ORDER BY turn";
pub(super) const USAGE: &str = "SELECT revision, body FROM usage WHERE session = ?1 ORDER BY revision";
