//! Requests and conversations, built in few words.

use agent_core::{
    AssistantPart, CallId, Encoded, Encoder, Entry, History, ModelProfile, ModelRequest, Note, NoteKind,
    ProviderData, RawJson, RequestSettings, Response, StepRecord, SystemBlock, Text, ToolCall, ToolCard,
    ToolChoice, ToolInput, ToolOutput, ToolResult, UserMessage,
};
use agent_providers::{ToolNames, WireFormat};

/// Everything of a request but the conversation.
#[derive(Default)]
pub(super) struct Ask {
    pub(super) system: Vec<SystemBlock>,
    pub(super) tools: Vec<ToolCard>,
    pub(super) settings: RequestSettings,
    pub(super) choice: ToolChoice,
    pub(super) reminders: Vec<&'static str>,
    pub(super) stream: bool,
}

impl Ask {
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
            marks: &[],
            stream: self.stream,
        })
    }

    /// The body for this model, and what was noted.
    pub(super) fn body(&self, profile: ModelProfile, history: &History) -> (String, Vec<String>) {
        let encoded = self.encode(&mut *encoder(profile), history);
        let notes = encoded.diagnostics.into_iter().map(|note| note.what);
        (text(&encoded.request.body), notes.collect())
    }
}

pub(super) fn profile(model: &str) -> ModelProfile {
    ModelProfile {
        max_output: 65_536,
        forced_tool_choice: true,
        vision: true,
        known: true,
        ..ModelProfile::conservative("gemini", model)
    }
}

pub(super) fn encoder(profile: ModelProfile) -> Box<dyn Encoder> {
    agent_providers::encoder(&WireFormat::Gemini.into(), profile, ToolNames::default())
}

pub(super) fn text(body: &agent_core::Body) -> String {
    let text = String::from_utf8(body.to_vec()).unwrap();
    serde_json::from_str::<serde::de::IgnoredAny>(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    text
}

pub(super) fn raw(json: &str) -> RawJson {
    RawJson::parse(json).unwrap()
}

pub(super) fn own(json: &str) -> Option<ProviderData> {
    Some(ProviderData { provider: "gemini".into(), json: raw(json) })
}

pub(super) fn user(words: &str) -> Entry {
    Entry::User(UserMessage::text(words).unwrap())
}

pub(super) fn words(text: &str) -> AssistantPart {
    AssistantPart::text(text).unwrap()
}

pub(super) fn call(id: &str, name: &str, input: &str, data: Option<ProviderData>) -> AssistantPart {
    let id = CallId::new(id).unwrap();
    AssistantPart::ToolCall(ToolCall { id, name: name.into(), input: ToolInput::finished(input), data })
}

pub(super) fn step(parts: Vec<AssistantPart>, outputs: Vec<ToolOutput>) -> Entry {
    let said = Response::of(parts);
    let ids: Vec<CallId> = said.calls().map(|call| call.id.clone()).collect();
    let results = ids.into_iter().zip(outputs).map(|(call, output)| ToolResult { call, output }).collect();
    Entry::Step(StepRecord::new(said, results).unwrap())
}

pub(super) fn history(entries: Vec<Entry>) -> History {
    let mut history = History::new();
    for entry in entries {
        history.push(entry).unwrap();
    }
    history
}
