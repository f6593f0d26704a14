//! What lines say, and the session that they make.

use std::collections::BTreeMap;

use agent_core::{
    BlobHash, Checkpoint, Entry, Event, History, Input, InputId, JournalRecord, Note, NoteKind, Revision,
    RoundSummary, SessionId, SessionMeta, StoredInput, TerminalReason, Text, Usage,
};

use super::{Imported, JsonlError, LeftOut};
use crate::WholeSession;

/// What lines say.
#[derive(Default)]
pub(super) struct Found {
    pub(super) meta: Option<SessionMeta>,
    pub(super) revision: Option<u64>,
    pub(super) last_input: u64,
    pub(super) entries: Vec<Placed<Option<String>>>,
    pub(super) blobs: BTreeMap<BlobHash, Vec<u8>>,
    pub(super) checkpoint: Option<Checkpoint>,
    pub(super) terminal: Option<TerminalReason>,
    pub(super) journal: Vec<Placed<JournalRecord>>,
    pub(super) inputs: Vec<Placed<Input>>,
    pub(super) used: Vec<Placed<String>>,
    pub(super) usage: Vec<Placed<Usage>>,
    pub(super) rounds: Vec<Placed<RoundSummary>>,
    pub(super) events: Vec<Placed<Event>>,
    pub(super) left_out: Vec<LeftOut>,
    /// How many lines stand before the last one, as that says.
    pub(super) counted: Option<u64>,
    /// Of how many lines it is known what they hold.
    pub(super) known: u64,
    /// How many of those say what another one says.
    pub(super) twice: u64,
    /// Whether an entry is not there.
    lacks_entries: bool,
}

/// Something with a number, and the line where it stands.
pub(super) struct Placed<T> {
    pub(super) line: u64,
    pub(super) n: u64,
    pub(super) it: T,
}

impl Found {
    /// The session that these lines make.
    pub(super) fn whole(
        mut self,
        name: Option<SessionId>,
        now_ms: i64,
    ) -> Result<(WholeSession, Imported), JsonlError> {
        if self.meta.is_none() && self.entries.is_empty() {
            return Err(JsonlError::NoSession);
        }
        let mut meta = match self.meta.take() {
            Some(meta) => meta,
            None => self.headless(name.clone(), now_ms)?,
        };
        meta.id = name.unwrap_or(meta.id);
        let entries = self.entries();
        // Every text was read before, so that what is left is to make calls and results pair.
        let (_, repairs) =
            History::load(&entries).map_err(|unreadable| JsonlError::Json(unreadable.cause))?;
        let events = self.events(&meta.id);
        let usage = self.in_order("the usage of revision", |found| &mut found.usage);
        let rounds = self.in_order("what was said of turn", |found| &mut found.rounds);
        let (inputs, used) = self.inbox();
        // After everything else, so that it is known what is missing.
        let (checkpoint, journal) = self.state(&events, &rounds);
        let session = meta.id.clone();
        let entry_count = entries.len();
        let whole = WholeSession {
            meta,
            // Without a number it has the one that the first version gave.
            revision: Revision(self.revision.unwrap_or(1)),
            entries,
            checkpoint,
            journal,
            inputs,
            used,
            last_input: self.last_input,
            terminal: self.terminal,
            events,
            usage: usage.into_iter().map(|usage| (Revision(usage.n), usage.it)).collect(),
            rounds: rounds.into_iter().map(|round| round.it).collect(),
            blobs: self.blobs.into_values().collect(),
            now_ms,
        };
        let repairs = repairs.into_iter().map(|(_, repair)| repair).collect();
        Ok((whole, Imported { session, entries: entry_count, left_out: self.left_out, repairs }))
    }

    fn headless(&mut self, name: Option<SessionId>, now_ms: i64) -> Result<SessionMeta, JsonlError> {
        let said = self.events.first().map(|event| event.it.session.clone());
        let id = name.or(said).ok_or(JsonlError::NoName)?;
        let why = "the head cannot be read, so the session has no system prompt and no tools";
        self.left_out.push(LeftOut::new("the system prompt and the tools", why));
        let (system, tools) = (Vec::new(), Vec::new());
        Ok(SessionMeta { id, created_ms: now_ms, model: "unknown".into(), system, static_blocks: 0, tools })
    }

    /// What has numbers, in their order, each once.
    fn in_order<T>(&mut self, what: &str, place: fn(&mut Self) -> &mut Vec<Placed<T>>) -> Vec<Placed<T>> {
        let mut all = std::mem::take(place(self));
        all.sort_by_key(|placed| (placed.n, placed.line));
        let mut first = BTreeMap::new();
        all.retain(|Placed { line, n, .. }| {
            let of = *first.entry(*n).or_insert(*line);
            if of != *line {
                self.twice += 1;
                let why = format!("line {of} is of it too, and was taken");
                self.left_out.push(LeftOut::new(format!("line {line} ({what} {n})"), why));
            }
            of == *line
        });
        all
    }

    /// The entries, each at its position; words stand where one cannot be read.
    fn entries(&mut self) -> Vec<String> {
        let found = self.in_order("entry", |found| &mut found.entries);
        let mut texts: Vec<String> = Vec::with_capacity(found.len());
        for Placed { line, n, it } in found {
            let at = texts.len() as u64;
            if n > at + MOST_MISSING {
                let why = format!("it stands far behind entry {at}, the next one");
                self.left_out.push(LeftOut::new(format!("line {line} (entry {n})"), why));
                self.lacks_entries = true;
                continue;
            }
            for missing in at..n {
                self.replace(format!("entry {missing}"), "no line has it", &mut texts);
            }
            let what = format!("line {line} (entry {n})");
            let Some(text) = it else {
                self.replace(what, "it could not be read when it was written out", &mut texts);
                continue;
            };
            match History::load(&[&text]) {
                Ok(_) => texts.push(text),
                Err(unreadable) => self.replace(what, &unreadable.cause, &mut texts),
            }
        }
        texts
    }

    fn replace(&mut self, what: String, why: impl std::fmt::Display, texts: &mut Vec<String>) {
        self.lacks_entries = true;
        self.left_out.push(LeftOut::new(what, format!("{why}; words that say so stand in its place")));
        let note = Text::new(UNREADABLE).map(|text| Entry::Note(Note { kind: NoteKind::State, text }));
        texts.extend(note.and_then(|note| serde_json::to_string(&note).ok()));
    }

    fn events(&mut self, session: &SessionId) -> Vec<Event> {
        let mut found = self.in_order("event", |found| &mut found.events);
        let whole = (1..).zip(&found).take_while(|(seq, placed)| placed.n == *seq).count();
        let behind = found.split_off(whole);
        if let (Some(first), Some(last)) = (behind.first(), behind.last()) {
            let what = match behind.len() {
                1 => format!("line {} (event {})", first.line, first.n),
                _ => format!("lines {} to {} (events {} to {})", first.line, last.line, first.n, last.n),
            };
            let why = format!("it stands behind a gap: no line has event {}", whole + 1);
            self.left_out.push(LeftOut::new(what, why));
        }
        let named =
            |placed: Placed<Event>| Event { session: session.clone(), seq: Some(placed.n), ..placed.it };
        found.into_iter().map(named).collect()
    }

    /// The state, if it can be trusted; a session between turns otherwise.
    fn state(
        &mut self,
        events: &[Event],
        rounds: &[Placed<RoundSummary>],
    ) -> (Checkpoint, Vec<JournalRecord>) {
        let journal = self.in_order("journal record", |found| &mut found.journal);
        let is_whole = (0..).zip(&journal).all(|(n, placed)| placed.n == n);
        // A line that nobody can read may be a record of what ran already.
        let is_known = self.counted.is_some_and(|counted| self.known >= counted + self.twice);
        let mut checkpoint = self.checkpoint.take().unwrap_or_else(|| {
            let why = "there is no state, so the session begins between turns, with nothing shared by tools";
            self.left_out.push(LeftOut::new("the checkpoint", why));
            let turns = events.iter().filter_map(|event| event.turn).map(agent_core::TurnId::number);
            let last_turn = turns.chain(rounds.iter().map(|round| round.n)).max().unwrap_or_default();
            Checkpoint { last_turn, ..Checkpoint::default() }
        });
        if checkpoint.turn.is_some() && !(is_whole && is_known && !self.lacks_entries) {
            let why = "entries or journal records of it are missing, so it cannot be taken up";
            self.left_out.push(LeftOut::new("the open turn", why));
            let Checkpoint { last_turn, slots, usage, nano_usd, elapsed_ms, children, compaction, .. } =
                checkpoint;
            let spent = Checkpoint { usage, nano_usd, elapsed_ms, children, ..Checkpoint::default() };
            checkpoint = Checkpoint { last_turn, slots, compaction, ..spent };
            return (checkpoint, Vec::new());
        }
        if is_whole {
            (checkpoint, journal.into_iter().map(|placed| placed.it).collect())
        } else {
            (checkpoint, Vec::new())
        }
    }

    /// What was said to it; no two replies are to one request.
    fn inbox(&mut self) -> (Vec<StoredInput>, Vec<(InputId, String)>) {
        let inputs = self.in_order("input", |found| &mut found.inputs);
        let used = self.in_order("input", |found| &mut found.used);
        let mut ids: BTreeMap<u64, u64> = BTreeMap::new();
        let mut keys: BTreeMap<String, u64> = BTreeMap::new();
        let mut is_new = |n: u64, key: Option<&str>, line: u64| {
            let of = ids.get(&n).or_else(|| keys.get(key?)).copied();
            if let Some(of) = of {
                let why = format!("line {of} has its number or answers the same, and was taken");
                self.left_out.push(LeftOut::new(format!("line {line} (input {n})"), why));
                self.twice += 1;
                return false;
            }
            ids.insert(n, line);
            keys.extend(key.map(|key| (key.to_owned(), line)));
            true
        };
        let mut open = Vec::new();
        for Placed { line, n, it } in inputs {
            if is_new(n, it.key(), line) {
                open.push(StoredInput { id: InputId(n), input: it });
            }
        }
        let used = used.into_iter().filter(|placed| is_new(placed.n, Some(&placed.it), placed.line));
        let used = used.map(|placed| (InputId(placed.n), placed.it)).collect();
        (open, used)
    }
}

/// What the model reads where an entry was.
const UNREADABLE: &str =
    "(An entry of this conversation stood here and could not be read when the session was imported.)";
/// A position further on than this is damage itself.
const MOST_MISSING: u64 = 10_000;
