//! Writes a session out, as far as it can be read.

use std::collections::BTreeMap;
use std::io::Write;

use agent_core::{InputId, Revision, SessionId};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::{JsonlError, Kind, LeftOut, Line, VERSION, base64};
use crate::{Row, Salvaged, Store, StoreError};

/// Writes a session as JSON Lines, one thing a line: the head with its version, the entries as their very bytes, the blobs,
/// the state with an open turn and what it waits for, what was said to it, its usage, what was said of its turns, and the
/// durable events. Read in again it is the same session, and written out again the same lines. Of a damaged session it
/// writes what can be read, and answers what cannot (requirements D7, D8).
///
/// # Errors
/// For a session that does not exist ([`StoreError::Missing`]), and when nothing can be read or written.
pub async fn export(
    store: &dyn Store,
    session: &SessionId,
    out: &mut (dyn Write + Send),
) -> Result<Vec<LeftOut>, JsonlError> {
    let found = store.salvage(session).await?.ok_or_else(|| StoreError::Missing(session.clone()))?;
    let mut lines = Lines { out, count: 0 };
    let mut left_out: Vec<_> = found.damage.iter().map(damaged).collect();
    head(&found, &mut lines)?;
    entries(&found, &mut lines, &mut left_out)?;
    blobs(store, session, &mut lines, &mut left_out).await?;
    state(&found, &mut lines)?;
    for event in &found.events {
        lines.thing(Kind::Event, event.seq, event)?;
    }
    let n = Some(lines.count);
    lines.put(Line { kind: Kind::End, n, ..Line::default() })?;
    lines.out.flush()?;
    Ok(left_out)
}

fn head(found: &Salvaged, lines: &mut Lines<'_>) -> Result<(), JsonlError> {
    lines.put(Line {
        kind: Kind::Session,
        version: Some(VERSION),
        revision: Some(found.revision.0),
        last_input: Some(found.last_input).filter(|last| *last > 0),
        body: found.meta.as_ref().map(to_raw_value).transpose()?,
        ..Line::default()
    })
}

/// The entries; one that cannot be read has a line without a body, so that it is not forgotten that there was one.
fn entries(found: &Salvaged, lines: &mut Lines<'_>, left_out: &mut Vec<LeftOut>) -> Result<(), JsonlError> {
    let mut all: BTreeMap<u64, Option<Box<RawValue>>> =
        damaged_rows(found).filter_map(|row| Some((entry_number(row)?, None))).collect();
    for (n, text) in &found.entries {
        let body = RawValue::from_string(text.clone());
        all.insert(*n, body.map_err(|cause| left_out.push(LeftOut::new(format!("entry {n}"), cause))).ok());
    }
    for (n, body) in all {
        lines.put(Line { kind: Kind::Entry, n: Some(n), body, ..Line::default() })?;
    }
    Ok(())
}

fn damaged_rows(found: &Salvaged) -> impl Iterator<Item = Row> {
    found
        .damage
        .iter()
        .filter_map(|error| if let StoreError::Corrupt { row, .. } = error { Some(*row) } else { None })
}

fn entry_number(row: Row) -> Option<u64> {
    if let Row::Entry(n) = row { Some(n) } else { None }
}

/// What is neither history nor events.
fn state(found: &Salvaged, lines: &mut Lines<'_>) -> Result<(), JsonlError> {
    if let Some(checkpoint) = &found.checkpoint {
        lines.thing(Kind::Checkpoint, None, checkpoint)?;
    }
    if let Some(terminal) = &found.terminal {
        lines.thing(Kind::Terminal, None, terminal)?;
    }
    for (n, record) in (0..).zip(&found.journal) {
        lines.thing(Kind::Journal, Some(n), record)?;
    }
    for row in damaged_rows(found) {
        // Without it the open turn would look as though it had come less far.
        if let Row::Journal(n) = row {
            lines.put(Line { kind: Kind::Journal, n: Some(n), ..Line::default() })?;
        }
    }
    for input in &found.inputs {
        lines.thing(Kind::Input, Some(input.id.0), &input.input)?;
    }
    for (InputId(n), key) in &found.used {
        lines.thing(Kind::Used, Some(*n), key)?;
    }
    for (Revision(n), usage) in &found.usage {
        lines.thing(Kind::Usage, Some(*n), usage)?;
    }
    for round in &found.rounds {
        lines.thing(Kind::Round, Some(round.turn), round)?;
    }
    Ok(())
}

async fn blobs(
    store: &dyn Store,
    session: &SessionId,
    lines: &mut Lines<'_>,
    left_out: &mut Vec<LeftOut>,
) -> Result<(), JsonlError> {
    for hash in store.blobs(session).await? {
        match store.get_blob(&hash).await {
            Ok(Some(bytes)) => {
                let (hash, base64) = (Some(hash.as_str().to_owned()), Some(base64::encode(&bytes)));
                lines.put(Line { kind: Kind::Blob, hash, base64, ..Line::default() })?;
            }
            Ok(None) => left_out.push(LeftOut::new(format!("blob {}", hash.as_str()), "it is missing")),
            Err(StoreError::CorruptBlob(hash)) => {
                left_out
                    .push(LeftOut::new(format!("blob {}", hash.as_str()), "its bytes do not have its hash"));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn damaged(error: &StoreError) -> LeftOut {
    if let StoreError::Corrupt { row, cause, .. } = error {
        LeftOut::new(row.to_string(), cause)
    } else {
        LeftOut::new("a part of the session", error)
    }
}

/// Where lines go.
struct Lines<'a> {
    out: &'a mut (dyn Write + Send),
    count: u64,
}

impl Lines<'_> {
    fn put(&mut self, mut line: Line) -> Result<(), JsonlError> {
        let is_broken = |body: &RawValue| body.get().contains(['\n', '\r']);
        if let Some(body) = line.body.take_if(|body| is_broken(body)) {
            line.text = Some(String::from(Box::<str>::from(body)));
        }
        serde_json::to_writer(&mut *self.out, &line)?;
        self.out.write_all(b"\n")?;
        self.count += 1;
        Ok(())
    }

    fn thing(&mut self, kind: Kind, n: Option<u64>, thing: &impl Serialize) -> Result<(), JsonlError> {
        self.put(Line { kind, n, body: Some(to_raw_value(thing)?), ..Line::default() })
    }
}
