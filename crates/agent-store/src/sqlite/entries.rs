//! Entries as their rows: a long one in parts, so that pages fill up.

use agent_core::SessionId;
use rusqlite::{Connection, Row};

use super::fault::Fail;
use crate::rows::{self, Numbered};
use crate::write::Json;

/// Appends entries behind the `head` there are, as the bytes that were given; how many there are then.
pub(super) fn append(db: &Connection, n: i64, head: u64, entries: &[Json]) -> Result<u64, Fail> {
    let mut first =
        db.prepare_cached("INSERT INTO entries (session, seq, body, parts) VALUES (?1, ?2, ?3, ?4)")?;
    for (seq, body) in (head..).zip(entries) {
        let mut parts = body.get().as_bytes().chunks(PART);
        let body = parts.next().unwrap_or_default();
        first.execute((n, seq, body, parts.len()))?;
        for (part, body) in (1_u64..).zip(parts) {
            db.prepare_cached("INSERT INTO entry_parts (session, seq, part, body) VALUES (?1, ?2, ?3, ?4)")?
                .execute((n, seq, part, body))?;
        }
    }
    Ok(head + entries.len() as u64)
}

/// The entries in order, put together. One that has not exactly its parts is left out, as if it were missing.
pub(super) fn all(db: &Connection, n: i64) -> Result<Vec<Numbered>, Fail> {
    let mut parts =
        db.prepare_cached("SELECT seq, part, body FROM entry_parts WHERE session = ?1 ORDER BY seq, part")?;
    let mut parts = parts.query([n])?;
    let mut part = parts.next()?;
    let mut firsts =
        db.prepare_cached("SELECT seq, parts, body FROM entries WHERE session = ?1 ORDER BY seq")?;
    let mut firsts = firsts.query([n])?;
    let mut entries = Vec::new();
    while let Some(first) = firsts.next()? {
        let (seq, count): (u64, usize) = (first.get(0)?, first.get(1)?);
        let start = bytes(first)?;
        // All but the last part are of one length.
        let known = start.len().saturating_add(count.saturating_sub(1).saturating_mul(PART));
        let mut body = Vec::with_capacity(known.min(MOST));
        body.extend_from_slice(start);
        let mut numbers = 1..=count;
        let mut is_whole = true;
        while let Some(row) = part
            && row.get::<_, u64>(0)? <= seq
        {
            if row.get::<_, u64>(0)? == seq {
                is_whole &= numbers.next() == Some(row.get(1)?);
                let more = bytes(row)?;
                body.reserve_exact(more.len());
                body.extend_from_slice(more);
            }
            part = parts.next()?;
        }
        if is_whole && numbers.next().is_none() {
            entries.push((seq, body));
        }
    }
    Ok(entries)
}

/// Copies the first entries of a session to another one; one that is damaged is named and nothing is copied.
pub(super) fn copy(db: &Connection, from: (&SessionId, i64), to: i64, entries: u64) -> Result<(), Fail> {
    let (id, n) = from;
    let (found, parts, stored): (u64, u64, u64) = db
        .prepare_cached(
            "SELECT count(*), coalesce(sum(parts), 0),
             (SELECT count(*) FROM entry_parts WHERE session = ?1 AND seq < ?2)
             FROM entries WHERE session = ?1 AND seq < ?2",
        )?
        .query_row((n, entries), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    if found != entries || stored != parts {
        rows::in_order(id, &all(db, n)?, 0..entries, crate::Row::Entry)?;
    }
    db.prepare_cached(
        "INSERT INTO entries (session, seq, body, parts)
         SELECT ?1, seq, body, parts FROM entries WHERE session = ?2 AND seq < ?3 ORDER BY seq",
    )?
    .execute((to, n, entries))?;
    db.prepare_cached(
        "INSERT INTO entry_parts (session, seq, part, body)
         SELECT ?1, seq, part, body FROM entry_parts WHERE session = ?2 AND seq < ?3 ORDER BY seq, part",
    )?
    .execute((to, n, entries))?;
    Ok(())
}

fn bytes<'a>(row: &'a Row<'_>) -> rusqlite::Result<&'a [u8]> {
    Ok(row.get_ref(2)?.as_bytes()?)
}

/// Bytes of a part: four of them fill a page of 8 KiB with what SQLite keeps beside each.
const PART: usize = 2_000;
/// What is set aside for an entry whose row claims more parts than fit.
const MOST: usize = 1 << 20;
