//! Requests and conversations, built in few words.

use agent_core::{
    AssistantPart, Body, CallId, Encoded, Encoder, Entry, History, Mark, ModelProfile, ModelRequest, Note,
    NoteKind, RawJson, RequestSettings, Response, StepRecord, SystemBlock, Text, ToolCall, ToolCard,
    ToolChoice, ToolInput, ToolOutput, ToolResult, UserMessage,
};
use agent_providers::{Catalog, ToolNames, WireFormat};

/// Everything of a request but the conversation.
pub(super) struct Ask {
    pub(super) system: Vec<SystemBlock>,
    pub(super) tools: Vec<ToolCard>,
    pub(super) settings: RequestSettings,
    pub(super) choice: ToolChoice,
    pub(super) marks: Vec<Mark>,
    pub(super) stream: bool,
    pub(super) reminders: Vec<&'static str>,
}

impl Default for Ask {
    fn default() -> Self {
        let schema = RawJson::parse(r#"{"type":"object"}"#).unwrap();
        Self {
            system: vec![SystemBlock::new("Be brief.").unwrap(), SystemBlock::new("Be kind.").unwrap()],
            tools: vec![
                ToolCard::new("look", "Looks.", &schema).unwrap(),
                ToolCard::new("notes.add", "", &schema).unwrap(),
            ],
            settings: RequestSettings { max_output: Some(100), ..RequestSettings::default() },
            choice: ToolChoice::Auto,
            marks: Vec::new(),
            stream: true,
            reminders: Vec::new(),
        }
    }
}

impl Ask {
    pub(super) fn bare() -> Self {
        Self { system: Vec::new(), tools: Vec::new(), ..Self::default() }
    }

    pub(super) fn encode(&self, encoder: &mut dyn Encoder, history: &History) -> Encoded {
        let mut draft = history.draft();
        for words in &self.reminders {
            draft.remind(Note { kind: NoteKind::Reminder, text: Text::new(*words).unwrap() });
        }
        encoder.encode(&ModelRequest {
            system: &self.system,
            tools: &self.tools,
            draft: &draft,
            settings: &self.settings,
            tool_choice: &self.choice,
            marks: &self.marks,
            stream: self.stream,
        })
    }

    pub(super) fn fresh(&self, history: &History) -> Encoded {
        self.encode(&mut *encoder(), history)
    }

    pub(super) fn text(&self, history: &History) -> String {
        text(&self.fresh(history).request.body)
    }
}

pub(super) fn encoder() -> Box<dyn Encoder> {
    encoder_of(profile("claude-sonnet-4-6"))
}

pub(super) fn profile(model: &str) -> ModelProfile {
    Catalog::builtin().profile("anthropic", model)
}

pub(super) fn encoder_of(profile: ModelProfile) -> Box<dyn Encoder> {
    agent_providers::encoder(&WireFormat::Anthropic.into(), profile, ToolNames::default())
}

pub(super) fn text(body: &Body) -> String {
    let bytes = body.to_vec();
    assert_eq!(bytes.len(), body.len(), "the length is exact");
    let text = String::from_utf8(bytes).unwrap();
    serde_json::from_str::<serde::de::IgnoredAny>(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    text
}

/// The messages of a body and nothing around them.
pub(super) fn messages(text: &str) -> &str {
    let (_, rest) = text.split_once(r#""messages":"#).unwrap();
    rest.split_once(r#","max_tokens""#).unwrap().0
}

pub(super) fn user(words: &str) -> Entry {
    Entry::User(UserMessage::text(words).unwrap())
}

pub(super) fn call(id: &str, name: &str, input: &str) -> AssistantPart {
    let id = CallId::new(id).unwrap();
    AssistantPart::ToolCall(ToolCall { id, name: name.into(), input: ToolInput::finished(input), data: None })
}

pub(super) fn step(parts: Vec<AssistantPart>, outputs: Vec<ToolOutput>) -> Entry {
    let said = Response::of(parts);
    let ids: Vec<CallId> = said.calls().map(|call| call.id.clone()).collect();
    let results = ids.into_iter().zip(outputs).map(|(call, output)| ToolResult { call, output }).collect();
    Entry::Step(StepRecord::new(said, results).unwrap())
}

pub(super) fn words(text: &str) -> AssistantPart {
    AssistantPart::text(text).unwrap()
}

pub(super) fn note(text: &str) -> Entry {
    Entry::Note(Note { kind: NoteKind::Reminder, text: Text::new(text).unwrap() })
}

pub(super) fn history(entries: Vec<Entry>) -> History {
    let mut history = History::new();
    for entry in entries {
        history.push(entry).unwrap();
    }
    history
}

pub(super) fn talk() -> History {
    history(vec![
        user("go"),
        step(
            vec![words("ok"), call("a", "look", "{}"), call("b", "notes.add", r#"{"z":1.0,"a":2}"#)],
            vec![ToolOutput::text("seen"), ToolOutput::error("no")],
        ),
        note("mind the step"),
        user("and then?"),
    ])
}
