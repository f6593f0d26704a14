//! What stands for a state that cannot be read: the session goes on from what is left, between turns (requirement D8).

use agent_core::{Checkpoint, JournalRecord, SessionId, SessionState, StandIn, TerminalReason};
use rusqlite::Connection;

use super::fault::Fail;
use super::{reads, stamps};
use crate::rows::{self, StateRows};
use crate::{Row, StoreError};

/// The state as it was written; where a row of it is damaged, what is known without it.
pub(super) fn state(
    db: &Connection,
    n: i64,
    id: &SessionId,
    rows: &StateRows,
) -> Result<(SessionState, Option<StandIn>), Fail> {
    match whole(db, n, id, rows) {
        Ok(state) => Ok((state, None)),
        Err(Fail::Refused(StoreError::Corrupt {
            row: row @ (Row::Checkpoint | Row::Journal(_)),
            cause,
            ..
        })) => {
            let (state, instead, was_open) = left(db, n, id, rows)?;
            let lost = format!("{row} cannot be read ({cause}); {instead}");
            Ok((state, Some(StandIn { lost, was_open })))
        }
        Err(error) => Err(error),
    }
}

fn whole(db: &Connection, n: i64, id: &SessionId, rows: &StateRows) -> Result<SessionState, Fail> {
    let mut state = rows.read(id)?;
    let adds = reads::adds(db, n)?;
    stamps::put_back(db, n, id, (&mut state.checkpoint, &mut state.journal), &adds)?;
    Ok(state)
}

/// The state without what is damaged, what stands in its place in words, and whether a turn was open.
fn left(
    db: &Connection,
    n: i64,
    id: &SessionId,
    rows: &StateRows,
) -> Result<(SessionState, String, bool), Fail> {
    let (last_turn, usage, was_open): (u64, Vec<u8>, bool) = db
        .prepare_cached("SELECT last_turn, CAST(usage AS BLOB), is_open FROM sessions WHERE n = ?1")?
        .query_row([n], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let (older, instead) = older(db, n, rows.revision)?;
    let Checkpoint { slots, asked_ms, asked_otherwise, compaction, .. } = older;
    let usage = rows::decode(id, Row::Summary, &usage)?;
    let mut checkpoint = Checkpoint {
        last_turn,
        usage,
        slots,
        asked_ms,
        asked_otherwise,
        compaction,
        ..Checkpoint::default()
    };
    let adds = reads::adds(db, n)?;
    let readable = rows.journal.iter().zip(adds).filter_map(|((_, body), adds)| {
        // One that cannot be read is why we are here.
        Some((serde_json::from_slice::<JournalRecord>(body).ok()?, adds))
    });
    let (mut journal, adds): (Vec<_>, Vec<_>) = readable.unzip();
    match stamps::put_back(db, n, id, (&mut checkpoint, &mut journal), &adds) {
        // A file without its stamp is read again before it is changed.
        Ok(()) | Err(Fail::Refused(_)) => {}
        Err(error @ Fail::Sql(_)) => return Err(error),
    }
    let terminal = match (&rows.terminal, was_open) {
        (_, true) => Some(TerminalReason::Interrupted),
        (Some(body), false) => Some(rows::decode(id, Row::Summary, body)?),
        (None, false) => None,
    };
    let revision = agent_core::Revision(rows.revision);
    let inputs = rows::inputs(id, &rows.inputs)?;
    Ok((SessionState { revision, checkpoint, journal, inputs, terminal }, instead, was_open))
}

/// The newest checkpoint that can be read, and what it is.
fn older(db: &Connection, n: i64, revision: u64) -> Result<(Checkpoint, String), Fail> {
    let mut query = db
        .prepare_cached("SELECT revision, body FROM checkpoints WHERE session = ?1 ORDER BY revision DESC")?;
    let mut found = query.query([n])?;
    while let Some(row) = found.next()? {
        let (of, body) = (row.get::<_, u64>(0)?, row.get_ref(1)?.as_bytes().map_err(rusqlite::Error::from)?);
        let Ok(checkpoint) = serde_json::from_slice(body) else { continue };
        let instead = match revision.saturating_sub(of) {
            0 => "what tools share is kept".to_owned(),
            back => format!("what tools share is as of {back} commits before"),
        };
        return Ok((checkpoint, instead));
    }
    Ok((Checkpoint::default(), "what tools share is lost, and begins anew".to_owned()))
}
