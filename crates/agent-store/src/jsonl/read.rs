//! Reads lines in, as far as they can be read, and has the store create the session they make.

use std::io::BufRead;

use agent_core::{RoundSummary, SessionId, SessionMeta};
use serde::de::DeserializeOwned;

use super::found::{Found, Placed};
use super::{Imported, JsonlError, Kind, LeftOut, Line, VERSION, base64};
use crate::{Store, StoreError, rows};

/// Creates a session from the lines that [`export`](super::export) wrote, under the name it had or another.
///
/// It is the same session: its entries are the bytes that the lines have, its commits and inputs keep their numbers. All of
/// it is read before anything is written, and written by [`Store::import`], so it is there as a whole or not at all.
///
/// Of a damaged file it takes what can be read, and answers which lines it did not take, and why: an entry that is missing
/// between others is replaced by words that say so, because later entries name earlier ones by position; events behind a
/// gap are left out; a turn is left open only if nothing of it is missing. Lines may stand in any order, with either line
/// ending.
///
/// # Errors
/// When there is a session of that name ([`StoreError::Exists`]), the file is of a newer version, or nothing in it can be
/// read.
pub async fn import(
    store: &dyn Store,
    lines: &mut (dyn BufRead + Send),
    name: Option<SessionId>,
    now_ms: i64,
) -> Result<Imported, JsonlError> {
    let (whole, imported) = Reader::default().read(lines)?.whole(name, now_ms)?;
    if store.state(&imported.session).await?.is_some() {
        // Before the lease, which a worker may have who is at that session.
        return Err(StoreError::Exists(imported.session).into());
    }
    let lease = store.lease(&imported.session).await?;
    store.import(&lease, whole).await?;
    Ok(imported)
}

/// Takes one line after another.
#[derive(Default)]
struct Reader {
    found: Found,
    /// Which line is read, from 1.
    at: u64,
    /// How many lines there were that are not empty.
    lines: u64,
    /// The line at which another session begins.
    other: Option<u64>,
}

impl Reader {
    fn read(mut self, lines: &mut (dyn BufRead + Send)) -> Result<Found, JsonlError> {
        let mut bytes = Vec::new();
        while self.other.is_none() && lines.read_until(b'\n', &mut bytes)? > 0 {
            self.at += 1;
            self.line(&bytes)?;
            bytes.clear();
        }
        self.ends();
        Ok(self.found)
    }

    fn line(&mut self, bytes: &[u8]) -> Result<(), JsonlError> {
        // Some editors put a mark before the first line.
        let bytes = if self.at == 1 { bytes.strip_prefix(BOM).unwrap_or(bytes) } else { bytes };
        // Without its end, so that what is wrong with it is told of this line.
        let bytes = bytes.trim_ascii();
        if bytes.is_empty() {
            return Ok(());
        }
        self.lines += 1;
        match serde_json::from_slice::<Line>(bytes) {
            Ok(line) => self.take(line),
            Err(cause) => {
                self.leave(cause);
                Ok(())
            }
        }
    }

    /// Says why the line that is read is left out.
    fn leave(&mut self, why: impl std::fmt::Display) {
        self.found.left_out.push(LeftOut::new(format!("line {}", self.at), why));
    }

    fn take(&mut self, line: Line) -> Result<(), JsonlError> {
        let kind = line.kind;
        if line.n.is_some_and(|n| n > LARGEST || (n == 0 && matches!(kind, Kind::Input | Kind::Used))) {
            self.leave("its number is none that a session gives");
            return Ok(());
        }
        let left_out = self.found.left_out.len();
        match kind {
            Kind::Session => self.head(&line)?,
            Kind::Entry => self.entry(line),
            Kind::Blob => self.blob(&line),
            Kind::Checkpoint => self.once(&line, |found| &mut found.checkpoint),
            Kind::Terminal => self.once(&line, |found| &mut found.terminal),
            Kind::Journal => self.placed(&line, |found| &mut found.journal),
            Kind::Input => {
                // The first version had no numbers.
                let n = line.n.or(Some(self.found.inputs.len() as u64 + 1));
                self.placed(&Line { n, ..line }, |found| &mut found.inputs);
            }
            Kind::Used => self.placed(&line, |found| &mut found.used),
            Kind::Usage => self.placed(&line, |found| &mut found.usage),
            Kind::Round => {
                let round: Option<RoundSummary> = self.body(&line);
                match round {
                    Some(it) if (1..=LARGEST).contains(&it.turn) => {
                        self.found.rounds.push(Placed { line: self.at, n: it.turn, it });
                    }
                    Some(_) => self.leave("its turn has a number that no session gives"),
                    None => {}
                }
            }
            Kind::Event => self.placed(&line, |found| &mut found.events),
            Kind::End => {
                self.found.counted = self.found.counted.or(line.n).or(Some(self.lines - 1));
            }
            Kind::Unknown => self.leave("a kind that this release does not know"),
        }
        let was_taken = self.found.left_out.len() == left_out;
        self.found.known += u64::from(match kind {
            Kind::Entry | Kind::Journal => was_taken,
            Kind::End | Kind::Unknown => false,
            Kind::Session
            | Kind::Blob
            | Kind::Checkpoint
            | Kind::Terminal
            | Kind::Input
            | Kind::Used
            | Kind::Usage
            | Kind::Round
            | Kind::Event => true,
        });
        Ok(())
    }

    fn head(&mut self, line: &Line) -> Result<(), JsonlError> {
        if let Some(found) = line.version.filter(|version| *version > VERSION) {
            return Err(JsonlError::Newer { found });
        }
        let meta: Option<SessionMeta> = self.body(line);
        let is_other = |known: &SessionMeta| meta.as_ref().is_some_and(|meta| meta.id != known.id);
        if self.found.meta.as_ref().is_some_and(is_other) {
            self.leave(
                "another session begins here; it and what follows are left out, give each a file of its own",
            );
            self.other = Some(self.at);
            return Ok(());
        }
        if self.found.meta.is_some() {
            self.found.twice += 1;
            self.leave(TWICE);
            return Ok(());
        }
        self.found.revision = line.revision.filter(|revision| *revision <= LARGEST);
        self.found.last_input = line.last_input.filter(|last| *last <= LARGEST).unwrap_or_default();
        self.found.meta = meta;
        Ok(())
    }

    fn entry(&mut self, line: Line) {
        let text = line.text.or_else(|| Some(String::from(Box::<str>::from(line.body?))));
        match line.n {
            // One without a body could not be read when it was written out.
            Some(n) => self.found.entries.push(Placed { line: self.at, n, it: text }),
            None => self.leave("an entry without position"),
        }
    }

    fn once<T: DeserializeOwned>(&mut self, line: &Line, place: fn(&mut Found) -> &mut Option<T>) {
        let it = self.body(line);
        if place(&mut self.found).is_some() {
            self.found.twice += 1;
            self.leave(TWICE);
        } else {
            *place(&mut self.found) = it;
        }
    }

    fn placed<T: DeserializeOwned>(&mut self, line: &Line, place: fn(&mut Found) -> &mut Vec<Placed<T>>) {
        let Some(it) = self.body(line) else { return };
        match line.n {
            Some(n) => place(&mut self.found).push(Placed { line: self.at, n, it }),
            None => self.leave("it has no number"),
        }
    }

    fn body<T: DeserializeOwned>(&mut self, line: &Line) -> Option<T> {
        let body = line.body.as_ref().map(|body| body.get());
        let text = line.text.as_deref().or(body).unwrap_or("null");
        serde_json::from_str(text).map_err(|cause| self.leave(cause)).ok()
    }

    fn blob(&mut self, line: &Line) {
        let bytes = line.base64.as_deref().and_then(base64::decode);
        match bytes {
            Some(bytes) if line.hash.as_deref() == Some(rows::hash(&bytes).as_str()) => {
                if self.found.blobs.insert(rows::hash(&bytes), bytes).is_some() {
                    self.found.twice += 1;
                    self.leave(TWICE);
                }
            }
            Some(_) => self.leave("the bytes of this blob do not have its hash"),
            None => self.leave("the bytes of this blob are not base64"),
        }
    }

    /// What the number of lines says.
    fn ends(&mut self) {
        // The head of another session is none of its lines.
        let lines = self.lines - u64::from(self.other.is_some());
        self.found.known -= u64::from(self.other.is_some());
        match self.found.counted {
            Some(counted) if counted.saturating_add(1) != lines => {
                let why = format!("the last line counts {counted} lines before it, there are {}", lines - 1);
                self.found.left_out.push(LeftOut::new("lines that were taken out or put in", why));
            }
            None if self.at > 0 => {
                let why = "the last line is missing, so the file was cut off here";
                self.found.left_out.push(LeftOut::new(format!("what followed line {}", self.at), why));
            }
            Some(_) | None => {}
        }
    }
}

const TWICE: &str = "it stands there twice; the first one was taken";
/// Numbers beyond this one come from damage; a store could not count on from them.
const LARGEST: u64 = u32::MAX as u64;
const BOM: &[u8] = b"\xef\xbb\xbf";
