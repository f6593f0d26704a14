//! Reads a session row by row, so that one that is damaged hides no other (requirement D8).

use agent_core::{Checkpoint, JournalRecord, SessionId};
use rusqlite::{Connection, OptionalExtension};

use super::fault::Fail;
use super::{entries, reads, stamps};
use crate::rows::{self, Numbered, StateRows};
use crate::{Damage, Row, Salvaged, StoreError};

pub(super) fn session(db: &Connection, id: &SessionId) -> Result<Option<Salvaged>, Fail> {
    let found = db
        .prepare_cached(
            "SELECT n, revision, head, last_seq, body FROM sessions
             LEFT JOIN descriptions ON session = n WHERE id = ?1",
        )?
        .query_row([id.as_str()], |row| {
            Ok((row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?, row.get::<_, u64>(3)?, row.get(4)?))
        })
        .optional()?;
    let Some((n, revision, head, last_seq, meta)) = found else { return Ok(None) };
    let mut found = Salvaged::default();
    let mut wreck = Wreck { id, damage: &mut found.damage };
    found.meta = wreck.one(Row::Meta, meta);
    let entries = entries::all(db, n)?;
    wreck.gaps(&entries, 0..head, Row::Entry);
    found.entries = wreck.texts(entries);
    let events = reads::numbered(db, "SELECT seq, body FROM events WHERE session = ?1 ORDER BY seq", n)?;
    wreck.gaps(&events, 1..last_seq + 1, Row::Event);
    let events = events.into_iter().filter_map(|(seq, body)| wreck.one(Row::Event(seq), Some(body)));
    found.events = events.collect();
    state(db, (n, revision), &mut found, id)?;
    Ok(Some(found))
}

/// What a turn needs to go on: it is taken up as a whole or not at all.
fn state(
    db: &Connection,
    (n, revision): (i64, u64),
    found: &mut Salvaged,
    id: &SessionId,
) -> Result<(), Fail> {
    let StateRows { checkpoint, journal, inputs, terminal, .. } = reads::state_rows(db, n, revision)?;
    let mut wreck = Wreck { id, damage: &mut found.damage };
    let checkpoint: Option<Checkpoint> = wreck.one(Row::Checkpoint, checkpoint);
    found.terminal = terminal.and_then(|body| wreck.one(Row::Summary, Some(body)));
    match rows::inputs(id, &inputs) {
        Ok(inputs) => found.inputs = inputs,
        Err(error) => wreck.damage.push(error),
    }
    let whole: Vec<Option<JournalRecord>> =
        journal.into_iter().map(|(pos, body)| wreck.one(Row::Journal(pos), Some(body))).collect();
    let mut journal: Vec<_> = whole.into_iter().collect::<Option<_>>().unwrap_or_default();
    let Some(mut checkpoint) = checkpoint else { return Ok(()) };
    let adds = reads::adds(db, n)?;
    match stamps::put_back(db, n, id, (&mut checkpoint, &mut journal), &adds) {
        Ok(()) => {}
        Err(Fail::Refused(error)) => wreck.damage.push(error),
        Err(Fail::Sql(error)) => return Err(error.into()),
    }
    (found.checkpoint, found.journal) = (Some(checkpoint), journal);
    Ok(())
}

/// Where damage is noted.
struct Wreck<'a> {
    id: &'a SessionId,
    damage: &'a mut Vec<StoreError>,
}

impl Wreck<'_> {
    fn note(&mut self, row: Row, cause: Damage) {
        self.damage.push(StoreError::Corrupt { session: self.id.clone(), row, cause });
    }

    fn one<T: serde::de::DeserializeOwned>(&mut self, row: Row, body: Option<Vec<u8>>) -> Option<T> {
        let Some(body) = body else {
            self.note(row, Damage::Missing);
            return None;
        };
        serde_json::from_slice(&body).map_err(|cause| self.note(row, cause.into())).ok()
    }

    fn texts(&mut self, rows: Vec<Numbered>) -> Vec<(u64, String)> {
        let text = |(n, body): Numbered| match String::from_utf8(body) {
            Ok(text) => Some((n, text)),
            Err(cause) => {
                self.note(Row::Entry(n), cause.into());
                None
            }
        };
        rows.into_iter().filter_map(text).collect()
    }

    fn gaps(&mut self, rows: &[Numbered], range: std::ops::Range<u64>, row: fn(u64) -> Row) {
        let missing: Vec<u64> =
            range.filter(|n| rows.binary_search_by_key(n, |(found, _)| *found).is_err()).collect();
        missing.into_iter().for_each(|n| self.note(row(n), Damage::Missing));
    }
}
