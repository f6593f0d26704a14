//! Reads a session in, as far as the lines can be read.

use std::io::BufRead;

use agent_core::{
    Checkpoint, Commit, Entry, EntryId, Event, History, Input, JournalRecord, Note, NoteKind, Revision,
    SessionId, SessionMeta, TerminalReason, Text,
};
use serde::de::DeserializeOwned;

use super::{Imported, JsonlError, Kind, LeftOut, Line, VERSION, base64};
use crate::{Store, rows};

/// Creates a session from the lines that [`export`](super::export) wrote, under the name it had or another.
///
/// Of a damaged file it takes what can be read, and answers what it did not: an entry that is missing between others is
/// replaced by words that say so, because later entries name earlier ones by position; events behind a gap are left out.
/// Entries pair as those of every session do ([`History::load`]). All of it is read before anything is written.
///
/// # Errors
/// When there is a session of that name ([`crate::StoreError::Exists`]), the file is of a newer version, or nothing in it can be
/// read.
pub async fn import(
    store: &dyn Store,
    lines: &mut (dyn BufRead + Send),
    name: Option<SessionId>,
    now_ms: i64,
) -> Result<Imported, JsonlError> {
    let found = Found::read(lines)?;
    let whole = found.whole(name, now_ms)?;
    let session = whole.meta.id.clone();
    let lease = store.lease(&session).await?;
    store.create(&lease, &whole.meta, &whole.checkpoint).await?;
    match whole.put(store, &lease, now_ms).await {
        Ok(imported) => Ok(imported),
        Err(error) => {
            // Half a session is worse than none; what failed first is what is told.
            drop(store.delete(lease).await);
            Err(error)
        }
    }
}

/// What lines say.
#[derive(Default)]
struct Found {
    meta: Option<SessionMeta>,
    entries: Vec<(u64, String)>,
    blobs: Vec<Vec<u8>>,
    checkpoint: Option<Checkpoint>,
    terminal: Option<TerminalReason>,
    journal: Vec<JournalRecord>,
    inputs: Vec<Input>,
    events: Vec<Event>,
    left_out: Vec<LeftOut>,
    /// Whether a line of the journal could not be read.
    is_torn: bool,
    has_end: bool,
}

/// A session that can be created.
struct Whole {
    meta: SessionMeta,
    entries: Vec<Entry>,
    checkpoint: Checkpoint,
    found: Found,
    repairs: Vec<agent_core::Repair>,
}

impl Found {
    fn read(lines: &mut (dyn BufRead + Send)) -> Result<Self, JsonlError> {
        let mut found = Self::default();
        let (mut bytes, mut number) = (Vec::new(), 0u64);
        while lines.read_until(b'\n', &mut bytes)? > 0 {
            number += 1;
            let line = serde_json::from_slice::<Line>(&bytes);
            bytes.clear();
            let what = format!("line {number}");
            match line {
                Ok(line) => found.take(line, number, what)?,
                Err(cause) => found.left_out.push(LeftOut::new(what, cause)),
            }
        }
        if !found.has_end && number > 0 {
            let why = "the last line is missing, so the file was cut off here";
            found.left_out.push(LeftOut::new(format!("what followed line {number}"), why));
        }
        Ok(found)
    }

    fn take(&mut self, line: Line, number: u64, what: String) -> Result<(), JsonlError> {
        match line.kind {
            Kind::Session => {
                if let Some(found) = line.version.filter(|version| *version > VERSION) {
                    return Err(JsonlError::Newer { found });
                }
                self.meta = self.body(&line, what);
            }
            Kind::Entry => match (line.n, line.body) {
                (Some(n), Some(body)) => self.entries.push((n, body.get().to_owned())),
                (_, _) => self.left_out.push(LeftOut::new(what, "an entry without position or body")),
            },
            Kind::Blob => self.blob(&line, what),
            Kind::Checkpoint => self.checkpoint = self.body(&line, what),
            Kind::Terminal => self.terminal = self.body(&line, what),
            Kind::Journal => {
                let record = self.body(&line, what);
                self.is_torn |= record.is_none() || line.n != Some(self.journal.len() as u64);
                self.journal.extend(record);
            }
            Kind::Input => {
                let input = self.body(&line, what);
                self.inputs.extend(input);
            }
            Kind::Event => {
                let event: Option<Event> = self.body(&line, what);
                self.events.extend(event);
            }
            Kind::End => {
                self.has_end = true;
                if line.n.is_some_and(|count| count + 1 != number) {
                    let why = format!("it counts {} lines before it", line.n.unwrap_or_default());
                    self.left_out.push(LeftOut::new("lines that were taken out or put in", why));
                }
            }
            Kind::Unknown => self.left_out.push(LeftOut::new(what, "a kind that this release does not know")),
        }
        Ok(())
    }

    fn body<T: DeserializeOwned>(&mut self, line: &Line, what: String) -> Option<T> {
        let text = line.body.as_ref().map_or("null", |body| body.get());
        serde_json::from_str(text).map_err(|cause| self.left_out.push(LeftOut::new(what, cause))).ok()
    }

    fn blob(&mut self, line: &Line, what: String) {
        let bytes = line.base64.as_deref().and_then(base64::decode);
        match bytes {
            Some(bytes) if line.hash.as_deref() == Some(rows::hash(&bytes).as_str()) => {
                self.blobs.push(bytes)
            }
            Some(_) => self.left_out.push(LeftOut::new(what, "the bytes of this blob do not have its hash")),
            None => self.left_out.push(LeftOut::new(what, "the bytes of this blob are not base64")),
        }
    }

    /// The session that these lines make.
    fn whole(mut self, name: Option<SessionId>, now_ms: i64) -> Result<Whole, JsonlError> {
        if self.meta.is_none() && self.entries.is_empty() {
            return Err(JsonlError::NoSession);
        }
        let mut meta = match self.meta.take() {
            Some(meta) => meta,
            None => self.headless(name.clone(), now_ms)?,
        };
        meta.id = name.unwrap_or(meta.id);
        let texts = self.in_place();
        // Every text was read before, so that what is left is to make calls and results pair.
        let (history, repairs) =
            History::load(&texts).map_err(|unreadable| JsonlError::Json(unreadable.cause))?;
        let entries = history.entries().to_vec();
        self.tell_rewritten(&texts, &entries, !repairs.is_empty());
        self.events_in_order(&meta.id);
        let checkpoint = self.state();
        let repairs = repairs.into_iter().map(|(_, repair)| repair).collect();
        Ok(Whole { meta, entries, checkpoint, found: self, repairs })
    }

    fn headless(&mut self, name: Option<SessionId>, now_ms: i64) -> Result<SessionMeta, JsonlError> {
        let said = self.events.first().map(|event| event.session.clone());
        let id = name.or(said).ok_or(JsonlError::NoName)?;
        let why = "the head cannot be read, so the session has no system prompt and no tools";
        self.left_out.push(LeftOut::new("the system prompt and the tools", why));
        let (system, tools) = (Vec::new(), Vec::new());
        Ok(SessionMeta { id, created_ms: now_ms, model: "unknown".into(), system, static_blocks: 0, tools })
    }

    /// The entries, each at its position; words stand where one cannot be read.
    fn in_place(&mut self) -> Vec<String> {
        let entries = std::mem::take(&mut self.entries);
        let mut texts: Vec<String> = Vec::with_capacity(entries.len());
        for (n, text) in entries {
            let at = texts.len() as u64;
            if n < at || n > at + MOST_MISSING {
                self.left_out.push(LeftOut::new(format!("entry {n}"), "it does not stand at its position"));
                continue;
            }
            for missing in at..n {
                self.replace(missing, "it is missing", &mut texts);
            }
            match History::load(&[&text]) {
                Ok(_) => texts.push(text),
                Err(unreadable) => self.replace(n, &unreadable.cause.to_string(), &mut texts),
            }
        }
        texts
    }

    fn replace(&mut self, n: u64, why: &str, texts: &mut Vec<String>) {
        let why = format!("{why}; words that say so stand in its place");
        self.left_out.push(LeftOut::new(format!("entry {n}"), why));
        let note = Text::new(UNREADABLE).map(|text| Entry::Note(Note { kind: NoteKind::State, text }));
        texts.extend(note.and_then(|note| serde_json::to_string(&note).ok()));
    }

    /// Entries that are not stored as the bytes they were.
    fn tell_rewritten(&mut self, texts: &[String], entries: &[Entry], was_mended: bool) {
        let is_same = |(text, entry): (&String, &Entry)| {
            serde_json::to_string(entry).is_ok_and(|written| written == *text)
        };
        for (at, pair) in texts.iter().zip(entries).enumerate() {
            if !was_mended && !is_same(pair) {
                let why = "another release wrote them; the entry is kept as this one writes it";
                self.left_out.push(LeftOut::new(format!("the bytes of entry {}", EntryId::at(at)), why));
            }
        }
    }

    fn events_in_order(&mut self, session: &SessionId) {
        let whole = (1..).zip(&self.events).take_while(|(seq, event)| event.seq == Some(*seq)).count();
        if whole < self.events.len() {
            let why = format!("{} of them stand behind a gap", self.events.len() - whole);
            self.left_out.push(LeftOut::new(format!("events after {whole}"), why));
            self.events.truncate(whole);
        }
        self.events.iter_mut().for_each(|event| event.session = session.clone());
    }

    /// The state, if it can be trusted; a session between turns otherwise.
    fn state(&mut self) -> Checkpoint {
        let is_damaged = self.is_torn || self.left_out.iter().any(|left| left.what.starts_with("entry "));
        let mut checkpoint = self.checkpoint.take().unwrap_or_else(|| {
            let why = "there is no state, so the session begins between turns, with nothing shared by tools";
            self.left_out.push(LeftOut::new("the checkpoint", why));
            Checkpoint::default()
        });
        if checkpoint.turn.is_some() && is_damaged {
            let why = "entries or journal records of it are missing, so it cannot be taken up";
            self.left_out.push(LeftOut::new("the open turn", why));
            checkpoint.turn = None;
            checkpoint.turn_from = None;
            checkpoint.active = None;
            checkpoint.requests.clear();
            (checkpoint.asked_ms, checkpoint.asked_otherwise) = (None, false);
        }
        if checkpoint.turn.is_none() {
            self.journal.clear();
            self.inputs.clear();
        }
        checkpoint
    }
}

impl Whole {
    async fn put(self, store: &dyn Store, lease: &crate::Lease, now_ms: i64) -> Result<Imported, JsonlError> {
        let Self { meta, entries, checkpoint, found, repairs } = self;
        let commit = Commit {
            expect: Revision(0),
            entries: &entries,
            checkpoint: &checkpoint,
            usage: None,
            events: &found.events,
            consumed: &[],
            terminal: found.terminal.as_ref(),
            now_ms,
        };
        store.commit(lease, commit).await?;
        for bytes in &found.blobs {
            store.put_blob(&meta.id, bytes).await?;
        }
        if !found.journal.is_empty() {
            store.journal(lease, &found.journal, &[]).await?;
        }
        for input in &found.inputs {
            store.put_input(&meta.id, input).await?;
        }
        Ok(Imported { session: meta.id, entries: entries.len(), left_out: found.left_out, repairs })
    }
}

/// What the model reads where an entry was.
const UNREADABLE: &str =
    "(An entry of this conversation stood here and could not be read when the session was imported.)";
/// A position further on than this is damage itself.
const MOST_MISSING: u64 = 10_000;
