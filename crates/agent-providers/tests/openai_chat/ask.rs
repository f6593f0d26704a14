//! Requests of Chat Completions and conversations, built in few words.

use agent_core::{
    AssistantPart, Body, CacheProfile, CallId, Diagnostic, Encoded, Encoder, Entry, History, Mark,
    ModelProfile, ModelRequest, Note, NoteKind, ProviderData, RawJson, Reasoning, RequestSettings, Response,
    Seal, StepRecord, SystemBlock, Text, ToolCall, ToolCard, ToolChoice, ToolInput, ToolOutput, ToolResult,
    UserMessage,
};
use agent_providers::openai_chat::Quirks;
use agent_providers::{Dialect, ToolNames, WireFormat};

/// A model that takes markers.
pub(super) const MARKED: CacheProfile =
    CacheProfile::Marked { max_marks: 4, min_tokens: 0, lookback: 20, collapse_runs: true };

/// Everything of a request but the conversation.
pub(super) struct Ask {
    pub(super) provider: &'static str,
    pub(super) quirks: Quirks,
    pub(super) profile: ModelProfile,
    pub(super) system: Vec<SystemBlock>,
    pub(super) tools: Vec<ToolCard>,
    pub(super) settings: RequestSettings,
    pub(super) choice: ToolChoice,
    pub(super) marks: Vec<Mark>,
    pub(super) stream: bool,
    pub(super) reminders: Vec<&'static str>,
}

impl Ask {
    /// A request with nothing around the conversation. The model takes markers, but for those of OpenAI, where most
    /// take none.
    pub(super) fn bare(provider: &'static str) -> Self {
        let cache = if provider == "openai-chat" { CacheProfile::Automatic } else { MARKED };
        let profile = ModelProfile {
            known: true,
            vision: true,
            forced_tool_choice: true,
            max_output: 64_000,
            cache,
            ..ModelProfile::conservative(provider, "oolong-2")
        };
        Self {
            provider,
            quirks: Quirks::of(provider),
            profile,
            system: Vec::new(),
            tools: Vec::new(),
            settings: RequestSettings::default(),
            choice: ToolChoice::Auto,
            marks: Vec::new(),
            stream: true,
            reminders: Vec::new(),
        }
    }

    /// A request with a system prompt and two tools.
    pub(super) fn full(provider: &'static str) -> Self {
        let schema = RawJson::parse(r#"{"type":"object"}"#).unwrap();
        Self {
            system: vec![SystemBlock::new("Be brief.").unwrap(), SystemBlock::new("Be kind.").unwrap()],
            tools: vec![
                ToolCard::new("look", "Looks.", &schema).unwrap(),
                ToolCard::new("notes.add", "", &schema).unwrap(),
            ],
            ..Self::bare(provider)
        }
    }

    pub(super) fn encoder(&self) -> Box<dyn Encoder> {
        let dialect = Dialect {
            format: WireFormat::OpenAiChat,
            provider: self.provider.into(),
            quirks: self.quirks.clone(),
        };
        agent_providers::encoder(&dialect, self.profile.clone(), ToolNames::default())
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

    /// The body as text, and what had to be left out.
    pub(super) fn told(&self, history: &History) -> (String, Vec<Diagnostic>) {
        let Encoded { request, diagnostics } = self.encode(&mut *self.encoder(), history);
        (text(&request.body), diagnostics)
    }

    /// The body as text of a request that needs no word.
    #[track_caller]
    pub(super) fn text(&self, history: &History) -> String {
        let (text, diagnostics) = self.told(history);
        assert_eq!(diagnostics, []);
        text
    }
}

pub(super) fn text(body: &Body) -> String {
    let bytes = body.to_vec();
    assert_eq!(bytes.len(), body.len(), "the length is exact");
    let text = String::from_utf8(bytes).unwrap();
    serde_json::from_str::<serde::de::IgnoredAny>(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    text
}

/// A body with a line for each message.
pub(super) fn lines(text: &str) -> String {
    text.replace("},{\"role", "},\n{\"role").replace("],\"messages\"", "],\n\"messages\"")
}

/// The messages of a body and nothing around them.
pub(super) fn messages(text: &str) -> &str {
    let (_, rest) = text.split_once(r#""messages":"#).unwrap();
    rest.rsplit_once(r#","stream":true"#).unwrap().0
}

pub(super) fn user(words: &str) -> Entry {
    Entry::User(UserMessage::text(words).unwrap())
}

pub(super) fn note(text: &str) -> Entry {
    Entry::Note(Note { kind: NoteKind::Reminder, text: Text::new(text).unwrap() })
}

pub(super) fn words(text: &str) -> AssistantPart {
    AssistantPart::text(text).unwrap()
}

pub(super) fn thought(text: &str) -> AssistantPart {
    AssistantPart::Reasoning(Reasoning { text: text.into(), seal: None })
}

pub(super) fn item(provider: &str, raw: &str) -> AssistantPart {
    let seal = Seal::Item { provider: provider.into(), raw: RawJson::parse(raw).unwrap() };
    AssistantPart::Reasoning(Reasoning { text: "hm".into(), seal: Some(seal) })
}

pub(super) fn call(id: &str, name: &str, input: &str) -> AssistantPart {
    let id = CallId::new(id).unwrap();
    AssistantPart::ToolCall(ToolCall { id, name: name.into(), input: ToolInput::finished(input), data: None })
}

pub(super) fn data(provider: &str, json: &str) -> ProviderData {
    ProviderData { provider: provider.into(), json: RawJson::parse(json).unwrap() }
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

pub(super) fn talk() -> History {
    history(vec![
        user("go"),
        step(
            vec![
                thought("Both."),
                words("ok"),
                call("call_a", "look", "{}"),
                call("call_b", "notes.add", r#"{"z":12345678901234567890,"a":1.0}"#),
            ],
            vec![ToolOutput::text("seen"), ToolOutput::error("no")],
        ),
        note("mind the step"),
        user("and then?"),
    ])
}
