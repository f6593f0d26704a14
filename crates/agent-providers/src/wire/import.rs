//! Recorded requests read back into the conversations they were made of: what the formats share.

use agent_core::{
    AssistantPart, CallId, ContentPart, Diagnostic, Entry, EntryId, History, Note, NoteKind, Repair,
    RequestSettings, Response, StepRecord, SystemBlock, Text, ToolCard, ToolChoice, ToolOutput, ToolResult,
    UserMessage, UserPart,
};

/// A recorded request as the harness would hold it.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "a report of plain data, taken apart by its readers")]
pub struct Imported {
    /// The model's name; empty where the address names it.
    pub model: String,
    /// The system prompt.
    pub system: Vec<SystemBlock>,
    /// The tools, hosted ones included.
    pub tools: Vec<ToolCard>,
    /// Limits, sampling, thinking.
    pub settings: RequestSettings,
    /// Whether and which tool had to be called.
    pub tool_choice: ToolChoice,
    /// Whether a stream was asked for.
    pub stream: bool,
    /// The conversation, every call paired with its result.
    pub history: History,
    /// What was mended to pair them, and where.
    pub repairs: Vec<(EntryId, Repair)>,
    /// What has no place in our types and was left out.
    pub diagnostics: Vec<Diagnostic>,
}

/// Bytes that are no request of a format.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// Not JSON, or not an object with the fields of a request.
    #[error(
        "the bytes are no {format} request ({cause}); pass the body of a request, and the format it is in"
    )]
    Json {
        /// The format's name.
        format: &'static str,
        /// What the reader said.
        #[source]
        cause: serde_json::Error,
    },
    /// A message that is no object, or whose role is unknown.
    #[error("message {position} has the role {role:?}, which {format} does not have; check the format")]
    Role {
        /// The format's name.
        format: &'static str,
        /// Which message, from 0.
        position: usize,
        /// Its role.
        role: String,
    },
}

/// A part of a user's message as a part of a result.
pub(crate) fn content_part(part: UserPart) -> Option<ContentPart> {
    match part {
        UserPart::Text(text) => Some(ContentPart::Text(text)),
        UserPart::File(file) => Some(ContentPart::File(file)),
        UserPart::Provider(part) => Some(ContentPart::Provider(part)),
        _ => None,
    }
}

/// Groups what was said into entries: a call and its result become one step, whatever stands between them.
#[derive(Debug, Default)]
pub(crate) struct Grouping {
    entries: Vec<Entry>,
    /// What the model said last; its results may still come.
    said: Option<Vec<AssistantPart>>,
    results: Vec<ToolResult>,
    /// What the user said after `said`: it stands behind the step.
    after: Vec<Entry>,
    repairs: Vec<(EntryId, Repair)>,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

impl Grouping {
    /// The model said something new.
    pub(crate) fn said(&mut self, parts: Vec<AssistantPart>) {
        self.end_step();
        self.said = Some(parts);
    }

    /// The model said more: of the same answer, if nobody else spoke since.
    pub(crate) fn said_more(&mut self, part: AssistantPart) {
        match &mut self.said {
            Some(parts) if self.results.is_empty() && self.after.is_empty() => parts.push(part),
            Some(_) | None => self.said(vec![part]),
        }
    }

    /// The call that a result without an id must answer: the first one of this tool that has none yet.
    pub(crate) fn unanswered(&self, tool: &str) -> Option<&CallId> {
        let calls = self.said.iter().flatten().filter_map(AssistantPart::as_call);
        let mut open = calls.filter(|call| self.results.iter().all(|result| result.call != call.id));
        open.find(|call| call.name == tool).map(|call| &call.id)
    }

    /// A tool's result; `call` as the provider names it.
    pub(crate) fn result(&mut self, call: &str, output: ToolOutput) {
        match CallId::new(call) {
            Ok(call) => self.results.push(ToolResult { call, output }),
            Err(_) => self.leave_out("messages", "a tool result names no call"),
        }
    }

    /// The user said something; a message without content is none.
    pub(crate) fn user(&mut self, parts: Vec<UserPart>) {
        self.after.extend(UserMessage::new(parts).ok().map(Entry::User));
    }

    /// The system said something inside the conversation.
    pub(crate) fn note(&mut self, text: &str) {
        self.after.extend(Text::new(text).map(|text| Entry::Note(Note { kind: NoteKind::State, text })));
    }

    /// Whether nobody spoke yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.said.is_none() && self.after.is_empty() && self.results.is_empty()
    }

    /// Tells of something that has no place in our types.
    pub(crate) fn leave_out(&mut self, what: &str, why: &str) {
        self.diagnostics.push(Diagnostic { what: what.to_owned(), why: why.to_owned() });
    }

    /// The conversation, with what was mended and what was left out.
    pub(crate) fn finish(mut self) -> (History, Vec<(EntryId, Repair)>, Vec<Diagnostic>) {
        self.end_step();
        let (history, renamed) = History::mended(self.entries);
        self.repairs.extend(renamed);
        (history, self.repairs, self.diagnostics)
    }

    /// Turns what the model said and the results that came for it into an entry, before what the user said next.
    fn end_step(&mut self) {
        let results = std::mem::take(&mut self.results);
        let id = EntryId::at(self.entries.len());
        match self.said.take() {
            Some(parts) => {
                let (step, mended) = StepRecord::repaired(Response::of(parts), results);
                self.repairs.extend(mended.into_iter().map(|repair| (id, repair)));
                self.entries.push(Entry::Step(step));
            }
            None => {
                self.repairs.extend(results.into_iter().map(|result| (id, Repair::Dropped(result.call))));
            }
        }
        self.entries.append(&mut self.after);
    }
}
