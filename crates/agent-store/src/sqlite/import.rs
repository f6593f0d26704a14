//! A session created with all it has: the writes that would have led to it, in one transaction.

use agent_core::{Commit, Revision};
use rusqlite::Connection;

use super::fault::Fail;
use super::stamps::{self, Stamps};
use super::writes::{self, Holder};
use crate::write::{self, Events, Json, NewSession, Records, Rows};
use crate::{Lease, StoreError, WholeSession, rows};

/// A whole session as its rows.
#[derive(Debug)]
pub(super) struct Whole {
    first: NewSession,
    rows: Rows,
    stamps: Stamps,
    journal: Records,
    revision: u64,
    usage: Vec<(u64, Json)>,
    rounds: Vec<(u64, Json)>,
    /// Number, key and body; those without a body were used.
    inputs: Vec<(u64, Option<String>, Option<Json>)>,
    last_input: u64,
    blobs: Vec<Vec<u8>>,
}

impl Whole {
    pub(super) fn encode(lease: &Lease, whole: WholeSession) -> Result<Self, StoreError> {
        whole.check(lease)?;
        let id = lease.session();
        let revision = whole.newest().0;
        let last_input = whole.newest_input();
        let checkpoint = stamps::without(&whole.checkpoint);
        let commit = Commit {
            expect: Revision(0),
            entries: &[],
            checkpoint: &checkpoint,
            usage: None,
            events: &whole.events,
            consumed: &[],
            terminal: whole.terminal.as_ref(),
            now_ms: whole.now_ms,
        };
        let usage = whole.usage.iter().map(|(Revision(at), usage)| Ok((*at, write::json(id, usage)?)));
        let rounds = whole.rounds.iter().map(|round| Ok((round.turn, write::json(id, round)?)));
        let open = whole.inputs.iter().map(|stored| {
            let key = stored.input.key().map(str::to_owned);
            Ok((stored.id.0, key, Some(write::json(id, &stored.input)?)))
        });
        let used = whole.used.iter().map(|(number, key)| Ok((number.0, Some(key.clone()), None)));
        Ok(Self {
            first: NewSession::encode(lease, &whole.meta, &checkpoint)?,
            stamps: Stamps::of(id, &whole.checkpoint)?,
            journal: stamps::records(lease, &whole.journal)?,
            usage: usage.collect::<Result<_, StoreError>>()?,
            rounds: rounds.collect::<Result<_, StoreError>>()?,
            inputs: open.chain(used).collect::<Result<_, StoreError>>()?,
            rows: Rows::encode(id, commit)?.with(whole.entries),
            revision,
            last_input,
            blobs: whole.blobs,
        })
    }
}

pub(super) fn import(db: &Connection, holder: &Holder, whole: &Whole) -> Result<Revision, Fail> {
    writes::create(db, holder, &whole.first)?;
    writes::commit(db, holder, &whole.rows, &whole.stamps)?;
    writes::journal(db, holder, &whole.journal, &Events(Vec::new()))?;
    for bytes in &whole.blobs {
        writes::blob(db, holder.session(), &rows::hash(bytes), bytes)?;
    }
    for (turn, body) in &whole.rounds {
        writes::put_round(db, holder.session(), *turn, body)?;
    }
    let n = number(db, holder, whole)?;
    let mut spend = db.prepare_cached("INSERT INTO usage (session, revision, body) VALUES (?1, ?2, ?3)")?;
    for (revision, body) in &whole.usage {
        spend.execute((n, revision, body.get()))?;
    }
    let mut say = db.prepare_cached("INSERT INTO inputs (session, id, key, body) VALUES (?1, ?2, ?3, ?4)")?;
    for (id, key, body) in &whole.inputs {
        say.execute((n, id, key, body.as_ref().map(|body| body.get().as_bytes())))?;
    }
    Ok(Revision(whole.revision))
}

/// Counts commits and inputs as the session did where it was; its key.
fn number(db: &Connection, holder: &Holder, whole: &Whole) -> Result<i64, Fail> {
    let n = db
        .prepare_cached("UPDATE sessions SET revision = ?2, last_input = ?3 WHERE id = ?1 RETURNING n")?
        .query_row((holder.session().as_str(), whole.revision, whole.last_input), |row| row.get(0))?;
    // What it was created with is no state that it ever had.
    db.prepare_cached("DELETE FROM checkpoints WHERE session = ?1 AND revision = 0")?.execute([n])?;
    db.prepare_cached("UPDATE checkpoints SET revision = ?2 WHERE session = ?1")?
        .execute((n, whole.revision))?;
    Ok(n)
}
