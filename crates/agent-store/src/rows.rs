//! Stored rows, read back into the records of core; a row that cannot be read is named.

use agent_core::{
    BlobHash, InputId, Revision, SessionId, SessionMeta, SessionRecord, SessionState, SessionSummary,
    StandIn, StoredInput,
};
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::{Damage, Row, StoreError};

/// A session as its rows; bodies are the stored bytes.
#[derive(Debug)]
pub(crate) struct SessionRows {
    pub(crate) meta: Option<Vec<u8>>,
    /// How many entries there must be.
    pub(crate) head: u64,
    pub(crate) entries: Vec<Numbered>,
    pub(crate) state: SessionState,
    pub(crate) stand_in: Option<StandIn>,
    pub(crate) last_seq: u64,
}

/// The state of a session as its rows.
#[derive(Debug)]
pub(crate) struct StateRows {
    pub(crate) revision: u64,
    pub(crate) checkpoint: Option<Vec<u8>>,
    pub(crate) journal: Vec<Numbered>,
    pub(crate) inputs: Vec<Numbered>,
    pub(crate) terminal: Option<Vec<u8>>,
}

/// A line of the session list as its rows.
#[derive(Debug)]
pub(crate) struct SummaryRow {
    pub(crate) id: String,
    pub(crate) created_ms: i64,
    pub(crate) updated_ms: i64,
    pub(crate) model: String,
    pub(crate) entries: u64,
    pub(crate) turns: u64,
    pub(crate) terminal: Option<Vec<u8>>,
    pub(crate) usage: Vec<u8>,
}

/// A position and the bytes stored there.
pub(crate) type Numbered = (u64, Vec<u8>);

impl SessionRows {
    pub(crate) fn read(self, session: &SessionId) -> Result<SessionRecord, StoreError> {
        in_order(session, &self.entries, 0..self.head, Row::Entry)?;
        let entries = self.entries.into_iter().map(|(n, body)| text(session, Row::Entry(n), body));
        let SessionState { revision, checkpoint, journal, inputs, terminal: _ } = self.state;
        Ok(SessionRecord {
            meta: meta(session, self.meta)?,
            revision,
            entries: entries.collect::<Result<_, _>>()?,
            checkpoint,
            journal,
            inputs,
            last_seq: self.last_seq,
            stand_in: self.stand_in,
        })
    }
}

impl StateRows {
    pub(crate) fn read(&self, session: &SessionId) -> Result<SessionState, StoreError> {
        in_order(session, &self.journal, 0..self.journal.len() as u64, Row::Journal)?;
        let journal = self.journal.iter().map(|(n, body)| decode(session, Row::Journal(*n), body));
        let checkpoint = there(session, Row::Checkpoint, self.checkpoint.as_ref())?;
        Ok(SessionState {
            revision: Revision(self.revision),
            checkpoint: decode(session, Row::Checkpoint, checkpoint)?,
            journal: journal.collect::<Result<_, _>>()?,
            inputs: inputs(session, &self.inputs)?,
            terminal: self.terminal.as_ref().map(|body| decode(session, Row::Summary, body)).transpose()?,
        })
    }
}

impl SummaryRow {
    pub(crate) fn read(self) -> Result<SessionSummary, StoreError> {
        let id = SessionId::new(self.id).map_err(|cause| StoreError::Damaged { cause: Box::new(cause) })?;
        let terminal = self.terminal.map(|body| decode(&id, Row::Summary, &body)).transpose()?;
        let usage = decode(&id, Row::Summary, &self.usage)?;
        let Self { created_ms, updated_ms, model, entries, turns, .. } = self;
        Ok(SessionSummary { id, created_ms, updated_ms, model, entries, turns, terminal, usage })
    }
}

/// What was fixed when a session began.
pub(crate) fn meta(session: &SessionId, body: Option<Vec<u8>>) -> Result<SessionMeta, StoreError> {
    decode(session, Row::Meta, &there(session, Row::Meta, body)?)
}

/// What is in an inbox.
pub(crate) fn inputs(session: &SessionId, rows: &[Numbered]) -> Result<Vec<StoredInput>, StoreError> {
    let read = |(n, body): &Numbered| {
        Ok(StoredInput { id: InputId(*n), input: decode(session, Row::Input(*n), body)? })
    };
    rows.iter().map(read).collect()
}

/// Numbered rows, decoded.
pub(crate) fn decode_all<T: DeserializeOwned>(
    session: &SessionId,
    rows: Vec<Numbered>,
    row: fn(u64) -> Row,
) -> Result<Vec<T>, StoreError> {
    rows.into_iter().map(|(n, body)| decode(session, row(n), &body)).collect()
}

/// Whether the rows stand at exactly these positions; one that is missing, or is too much, is damage.
pub(crate) fn in_order(
    session: &SessionId,
    rows: &[Numbered],
    range: std::ops::Range<u64>,
    row: fn(u64) -> Row,
) -> Result<(), StoreError> {
    let mut found = rows.iter().map(|(n, _)| *n);
    for n in range {
        if found.next() != Some(n) {
            return Err(corrupt(session, row(n), Damage::Missing));
        }
    }
    found.next().map_or(Ok(()), |n| Err(corrupt(session, row(n), Damage::Stray)))
}

pub(crate) fn decode<T: DeserializeOwned>(
    session: &SessionId,
    row: Row,
    body: &[u8],
) -> Result<T, StoreError> {
    serde_json::from_slice(body).map_err(|cause| corrupt(session, row, cause.into()))
}

/// Content address of bytes.
pub(crate) fn hash(bytes: &[u8]) -> BlobHash {
    BlobHash::of_digest(&Sha256::digest(bytes).into())
}

/// The bytes, if they are the ones of this address.
pub(crate) fn checked(address: &BlobHash, bytes: Vec<u8>) -> Result<Vec<u8>, StoreError> {
    if hash(&bytes) == *address { Ok(bytes) } else { Err(StoreError::CorruptBlob(address.clone())) }
}

fn there<T>(session: &SessionId, row: Row, body: Option<T>) -> Result<T, StoreError> {
    body.ok_or_else(|| corrupt(session, row, Damage::Missing))
}

fn text(session: &SessionId, row: Row, body: Vec<u8>) -> Result<String, StoreError> {
    String::from_utf8(body).map_err(|cause| corrupt(session, row, cause.into()))
}

fn corrupt(session: &SessionId, row: Row, cause: Damage) -> StoreError {
    StoreError::Corrupt { session: session.clone(), row, cause }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_bytes_is_their_sha_256() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash(b"abc").as_str(), abc);
        assert_eq!(checked(&hash(b"abc"), b"abc".to_vec()).unwrap(), b"abc");
        let error = checked(&hash(b"abc"), b"abd".to_vec()).unwrap_err();
        assert!(matches!(error, StoreError::CorruptBlob(_)));
    }

    #[test]
    fn a_missing_row_is_named() {
        let session = SessionId::new("s").unwrap();
        let check = |found: &[u64], expect: &str| {
            let rows: Vec<Numbered> = found.iter().map(|n| (*n, Vec::new())).collect();
            let end = in_order(&session, &rows, 0..3, Row::Entry);
            let text = end.map_or_else(|error| error.to_string(), |()| "whole".into());
            assert!(text.starts_with(expect), "{found:?}: {text}");
        };
        check(&[0, 1, 2], "whole");
        check(&[], "entry 0 of session s is damaged: it is missing");
        check(&[0, 2], "entry 1 of session s");
        check(&[0, 1], "entry 2 of session s");
        check(&[0, 1, 2, 3], "entry 3 of session s is damaged: it should not be there");
    }
}
