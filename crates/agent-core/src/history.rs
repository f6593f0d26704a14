//! The conversation: a log of entries that only grows.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::step::{MISSING_RESULT, Parts, Repair, disambiguate};
use crate::{CallId, EntryId, HistoryView, PendingStep, Response, StepRecord, Text, ToolOutput, UserMessage};

/// The log of a session. It grows; nothing in it can be changed or taken out (requirement M2).
#[derive(Debug, Clone, Default)]
pub struct History {
    /// Invariant: positions are ids; no two calls share an id.
    entries: Vec<Entry>,
    calls: BTreeSet<CallId>,
    /// The newest summary, the only one that renders (requirement M3).
    summary: Option<EntryId>,
    /// The newest clearing, the only one that renders.
    cleared: Option<EntryId>,
}

/// One entry of a history. Exhaustive on purpose: a new kind must be handled everywhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "the compiler must find every place when an entry kind is added")]
pub enum Entry {
    /// What the user said.
    User(UserMessage),
    /// A finished step of the model.
    Step(StepRecord),
    /// Words of the harness that stay in the conversation.
    Note(Note),
    /// A rewrite of what came before, applied by the view and never to the log.
    Boundary(Rewrite),
}

impl Entry {
    /// The step, where it is one.
    pub fn as_step(&self) -> Option<&StepRecord> {
        match self {
            Self::Step(step) => Some(step),
            Self::User(_) | Self::Note(_) | Self::Boundary(_) => None,
        }
    }
}

/// A boundary with its position.
pub(crate) type Boundary<'h> = (EntryId, &'h Rewrite);

/// Words of the harness, shown to the model in the user role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a record: a kind and words")]
pub struct Note {
    /// What it is for.
    pub kind: NoteKind,
    /// The words as the model sees them.
    pub text: Text,
}

/// What a note is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NoteKind {
    /// A reminder that stays.
    Reminder,
    /// The date changed while the session was open.
    Date,
    /// A push to go on.
    Nudge,
    /// State of something outside the conversation, told when it changed, or what a system said in a conversation that
    /// was begun elsewhere. Until [`Self::PutBack`] was there, state put back after a compaction was stored as this too.
    State,
    /// State of the harness, put back behind a boundary from where it is kept. Behind the next boundary it is put back
    /// anew, so that nothing reads it out of the conversation.
    PutBack,
    /// A reminder that is meant until the user speaks again. It stays in the history; where the provider can
    /// ([`crate::ModelProfile::turn_scoped_system`]), the model does not see it after the next message of the user, and
    /// elsewhere it reads as any other note.
    TurnScoped,
}

/// How the view shows what lies before a boundary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "the view must handle every rewrite")]
pub enum Rewrite {
    /// Words stand for everything before `kept_from`.
    Summary {
        /// The summary.
        text: Text,
        /// The first entry shown in full again; at most the boundary's own position.
        kept_from: EntryId,
        /// Whether the kept entries lose their reasoning (thinking bound to bytes that are gone).
        strip_reasoning: bool,
    },
    /// Tool results before `results_to` are shown clipped.
    Cleared {
        /// The first entry whose results are shown whole.
        results_to: EntryId,
        /// Bytes kept of each clipped result.
        keep_bytes: usize,
        /// Whether the steps before the boundary lose their reasoning (thinking bound to bytes that are clipped).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        strip_reasoning: bool,
        /// Whether the words of every result that is clipped were put whole into the blob store before, so that what is
        /// shown of it names them ([`crate::Clip::offloaded`]). A driver that stores them says so.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        offloaded: bool,
    },
}

/// Why an entry cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// A call's id stands in the history already.
    #[error("call {0} is in the history already; admit the response with History::admit, which renames it")]
    DuplicateCall(CallId),
    /// A boundary that covers what does not exist yet, or less than the one before.
    #[error("the boundary refers to entry {given}, but must lie between {least} and {most}")]
    Boundary {
        /// The entry referred to.
        given: EntryId,
        /// Where the newest boundary already reaches.
        least: EntryId,
        /// The end of the history.
        most: EntryId,
    },
}

/// The prompt of one model call while it is put together: the history as it stands and words for this call only.
///
/// It borrows the history, so the history cannot grow until the draft is gone
/// (`tests/compile_fail/grow_while_drafting.rs`).
#[derive(Debug)]
pub struct Draft<'h> {
    view: HistoryView<'h>,
    ephemeral: Vec<Note>,
}

impl History {
    /// A history without entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends an entry.
    pub fn push(&mut self, entry: Entry) -> Result<EntryId, HistoryError> {
        self.check(&entry)?;
        Ok(self.append(entry))
    }

    /// Turns what a model said into a step of this history: calls get ids of their own (case M01).
    pub fn admit(&self, mut response: Response) -> PendingStep {
        disambiguate(&mut response, |id| self.calls.contains(id));
        // Ids are unique now; a response cannot be refused.
        PendingStep::new(response).unwrap_or_else(|_| unreachable!("disambiguated calls have unique ids"))
    }

    /// Builds a history from stored entries, mending what breaks the rules and saying so (requirement M4).
    ///
    /// The stored bytes stay as they are. An entry that is not readable at all is an error that names it.
    pub fn load<S: AsRef<str>>(stored: &[S]) -> Result<(Self, Vec<(EntryId, Repair)>), UnreadableEntry> {
        let mut repairs = Vec::new();
        let mut history = Self::new();
        for (position, text) in stored.iter().map(AsRef::as_ref).enumerate() {
            let id = EntryId::at(position);
            let entry = match serde_json::from_str::<Entry>(text) {
                Ok(entry) => entry,
                Err(cause) => {
                    let Ok(StoredStep::Step(parts)) = serde_json::from_str::<StoredStep>(text) else {
                        return Err(UnreadableEntry { id, cause });
                    };
                    let (step, mended) = parts.repaired();
                    repairs.extend(mended.into_iter().map(|repair| (id, repair)));
                    Entry::Step(step)
                }
            };
            history.append_mended(entry, &mut repairs);
        }
        Ok((history, repairs))
    }

    /// Builds a history from entries that came from elsewhere, mending what breaks the rules and saying so.
    pub fn mended(entries: Vec<Entry>) -> (Self, Vec<(EntryId, Repair)>) {
        let mut repairs = Vec::new();
        let mut history = Self::new();
        for entry in entries {
            history.append_mended(entry, &mut repairs);
        }
        (history, repairs)
    }

    /// A view that lends every entry.
    pub fn view(&self) -> HistoryView<'_> {
        HistoryView::new(self)
    }

    /// A prompt to put together for the next call.
    pub fn draft(&self) -> Draft<'_> {
        Draft { view: self.view(), ephemeral: Vec::new() }
    }

    /// All entries, boundaries and what they cover included.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The newest summary and the newest clearing.
    pub(crate) fn boundaries(&self) -> (Option<Boundary<'_>>, Option<Boundary<'_>>) {
        let at = |id: Option<EntryId>| {
            let id = id?;
            let Some(Entry::Boundary(rewrite)) = self.entries.get(id.position()) else { return None };
            Some((id, rewrite))
        };
        (at(self.summary), at(self.cleared))
    }

    fn check(&self, entry: &Entry) -> Result<(), HistoryError> {
        match entry {
            Entry::Step(step) => {
                let taken = step.pairs().find(|(call, _)| self.calls.contains(&call.id));
                taken.map_or(Ok(()), |(call, _)| Err(HistoryError::DuplicateCall(call.id.clone())))
            }
            Entry::Boundary(rewrite) => self.check_boundary(rewrite),
            Entry::User(_) | Entry::Note(_) => Ok(()),
        }
    }

    /// A boundary reaches at least as far as the newest of its kind and no further than the end.
    fn check_boundary(&self, rewrite: &Rewrite) -> Result<(), HistoryError> {
        let (summary, cleared) = self.boundaries();
        let newest = match rewrite {
            Rewrite::Summary { .. } => summary,
            Rewrite::Cleared { .. } => cleared,
        };
        let given = rewrite.reach();
        let most = EntryId::at(self.entries.len());
        let least = newest.map_or(EntryId::at(0), |(_, newest)| newest.reach());
        if given < least || given > most {
            return Err(HistoryError::Boundary { given, least, most });
        }
        Ok(())
    }

    /// Appends an entry that was checked.
    fn append(&mut self, entry: Entry) -> EntryId {
        let id = EntryId::at(self.entries.len());
        match &entry {
            Entry::Step(step) => self.calls.extend(step.pairs().map(|(call, _)| call.id.clone())),
            Entry::Boundary(Rewrite::Summary { .. }) => self.summary = Some(id),
            Entry::Boundary(Rewrite::Cleared { .. }) => self.cleared = Some(id),
            Entry::User(_) | Entry::Note(_) => {}
        }
        self.entries.push(entry);
        id
    }

    fn append_mended(&mut self, entry: Entry, repairs: &mut Vec<(EntryId, Repair)>) {
        let id = EntryId::at(self.entries.len());
        match (self.check(&entry), entry) {
            (Ok(()), entry) => {
                self.append(entry);
            }
            (Err(_), Entry::Step(step)) => {
                let (step, renamed) = self.renamed(&step);
                repairs.extend(renamed.into_iter().map(|repair| (id, repair)));
                self.append(Entry::Step(step));
            }
            // A boundary that reaches nowhere keeps its place in the log and does not render.
            (Err(_), entry @ (Entry::Boundary(_) | Entry::User(_) | Entry::Note(_))) => {
                self.entries.push(entry)
            }
        }
    }

    /// The step with ids of its own.
    fn renamed(&self, step: &StepRecord) -> (StepRecord, Vec<Repair>) {
        let mut outputs = step.pairs().map(|(call, result)| (call.id.clone(), result.output.clone()));
        let mut repairs = Vec::new();
        // The calls are distinct and stay in order, so the n-th renamed call is the n-th call of the step.
        let step = self.admit(step.response().clone()).finish_with(|call| {
            let Some((from, output)) = outputs.next() else { return ToolOutput::error(MISSING_RESULT) };
            if from != call.id {
                repairs.push(Repair::Renamed { from, to: call.id.clone() });
            }
            output
        });
        (step, repairs)
    }
}

/// An entry whose stored bytes cannot be read.
#[derive(Debug, thiserror::Error)]
#[error(
    "entry {id} of the history is not readable ({cause}); export the session up to it, or restore a copy"
)]
#[non_exhaustive]
pub struct UnreadableEntry {
    /// Which one.
    pub id: EntryId,
    /// What the reader said.
    #[source]
    pub cause: serde_json::Error,
}

/// Reads just enough of a broken step to mend it.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredStep {
    Step(Parts),
}

impl Rewrite {
    /// The first entry that this rewrite leaves as it is.
    pub fn reach(&self) -> EntryId {
        match self {
            Self::Summary { kept_from, .. } => *kept_from,
            Self::Cleared { results_to, .. } => *results_to,
        }
    }
}

impl<'h> Draft<'h> {
    /// Adds words for this call only; they never enter the history.
    pub fn remind(&mut self, note: Note) {
        self.ephemeral.push(note);
    }

    /// The history as it stands.
    pub fn view(&self) -> HistoryView<'h> {
        self.view
    }

    /// The words for this call only, after everything else.
    pub fn ephemeral(&self) -> &[Note] {
        &self.ephemeral
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::Repair;

    fn step(call: &str, result: &str) -> String {
        format!(
            r#"{{"step":{{"response":{{"parts":[{{"tool_call":{{"id":"{call}","name":"t","input":{{"json":{{}}}}}}}}],"finish":{{"kind":"tool_calls","raw":"tool_use"}}}},"results":[{{"call":"{result}","output":{{"text":"r"}}}}]}}}}"#
        )
    }

    #[test]
    fn what_breaks_the_rules_is_mended_in_the_view() {
        let check = |entries: &[&str], expect: &[(usize, Repair)]| {
            let (history, repairs) = History::load(entries).unwrap();
            let expect: Vec<_> =
                expect.iter().map(|(at, repair)| (EntryId::at(*at), repair.clone())).collect();
            assert_eq!(repairs, expect);
            assert_eq!(history.len(), entries.len(), "every entry keeps its place");
            let mut again = History::new();
            assert!(
                history.entries().iter().all(|entry| again.push(entry.clone()).is_ok()),
                "it obeys the rules now"
            );
        };
        let id = |id: &str| CallId::new(id).unwrap();
        let user = r#"{"user":[{"text":"hi"}]}"#;
        check(&[user, &step("a", "a")], &[]);
        check(&[user, &step("a", "b")], &[(1, Repair::Dropped(id("b"))), (1, Repair::Answered(id("a")))]);
        let renamed = Repair::Renamed { from: id("a"), to: id("a~2") };
        check(&[user, &step("a", "a"), &step("a", "a")], &[(2, renamed)]);
    }

    #[test]
    fn kinds_of_notes_are_stored_by_name() {
        let check = |kind: NoteKind, name: &str| {
            let stored = format!(r#"{{"note":{{"kind":"{name}","text":"The tide is low."}}}}"#);
            let note = Note { kind, text: Text::new("The tide is low.").unwrap() };
            assert_eq!(serde_json::from_str::<Entry>(&stored).unwrap(), Entry::Note(note.clone()));
            assert_eq!(serde_json::to_string(&Entry::Note(note)).unwrap(), stored);
        };
        check(NoteKind::Reminder, "reminder");
        check(NoteKind::Date, "date");
        check(NoteKind::Nudge, "nudge");
        check(NoteKind::State, "state");
        check(NoteKind::PutBack, "put_back");
        check(NoteKind::TurnScoped, "turn_scoped");
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let check =
            |entry: &str| History::load(&[r#"{"user":[{"text":"hi"}]}"#, entry]).unwrap_err().to_string();
        assert!(check(r#"{"user":[]}"#).starts_with("entry 1 of the history is not readable"));
        assert!(check(r#"{"who":1}"#).contains("unknown variant `who`"));
        assert!(check("7").starts_with("entry 1"));
        assert!(check(r#"{"user":[{"text":"cut"#).starts_with("entry 1"), "what is no JSON at all");
    }
}
