//! Thinking that another model of the same provider sealed: left out, unless the model takes it (requirement P3).

use agent_core::{
    AssistantPart, CallId, Encoded, Entry, History, ModelProfile, ModelRequest, RawJson, Reasoning,
    RequestSettings, Response, Seal, StepRecord, ToolCall, ToolChoice, ToolInput, ToolOutput, ToolResult,
    UserMessage,
};
use agent_providers::openai_chat::Quirks;
use agent_providers::{Catalog, Dialect, ToolNames, WireFormat, encoder};

const SEALED: &str = "c2VhbGVkIHRoaW5raW5n";

/// A step in which a model thought, and called a tool.
fn thought(asked: Option<&str>, seal: &Seal) -> Entry {
    let reasoning = Reasoning { text: "hm".into(), seal: Some(seal.clone()) };
    let id = CallId::new("call_1").unwrap();
    let call = ToolCall { id: id.clone(), name: "look".into(), input: ToolInput::finished("{}"), data: None };
    let parts = vec![AssistantPart::Reasoning(reasoning), AssistantPart::ToolCall(call)];
    let mut said = Response::of(parts);
    said.origin.asked = asked.map(str::to_owned);
    let result = ToolResult { call: id, output: ToolOutput::text("seen") };
    Entry::Step(StepRecord::new(said, vec![result]).unwrap())
}

fn encoded(dialect: &Dialect, profile: ModelProfile, steps: &[Entry]) -> Encoded {
    let mut log = History::new();
    log.push(Entry::User(UserMessage::text("go").unwrap())).unwrap();
    for step in steps {
        let Entry::Step(step) = step else { panic!("no step: {step:?}") };
        let pending = log.admit(step.response().clone());
        log.push(Entry::Step(pending.finish_with(|_| ToolOutput::text("seen")))).unwrap();
    }
    encoder(dialect, profile, ToolNames::default()).encode(&ModelRequest {
        system: &[],
        tools: &[],
        draft: &log.draft(),
        settings: &RequestSettings::default(),
        tool_choice: &ToolChoice::Auto,
        marks: &[],
        stream: true,
    })
}

/// How often the seal is sent to `model-1`, and what is told, when these models were asked.
#[track_caller]
fn check(dialect: &Dialect, seal: &Seal, takes: bool, asked: &[Option<&str>], expect: (usize, &[&str])) {
    let profile = ModelProfile {
        takes_thinking_of_siblings: takes,
        known: true,
        ..ModelProfile::conservative(dialect.provider.clone(), "model-1")
    };
    let steps: Vec<Entry> = asked.iter().map(|asked| thought(*asked, seal)).collect();
    let Encoded { request, diagnostics } = encoded(dialect, profile, &steps);
    let body = String::from_utf8(request.body.to_vec()).unwrap();
    let (sent, told) = expect;
    assert_eq!(body.matches(SEALED).count(), sent, "{asked:?} {body}");
    assert_eq!(body.matches("look").count() > 0, !asked.is_empty(), "the call goes on: {body}");
    let why: Vec<&str> = diagnostics.iter().map(|told| told.why.as_str()).collect();
    assert_eq!(why, told, "{dialect:?}");
}

#[test]
fn a_sibling_is_not_told_what_it_may_not_be_able_to_read() {
    let signature =
        |provider: &str| Seal::Signature { provider: provider.to_owned(), value: SEALED.to_owned() };
    let item = |provider: &str, json: String| Seal::Item {
        provider: provider.to_owned(),
        raw: RawJson::parse(json).unwrap(),
    };
    let reasoning =
        format!(r#"{{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"{SEALED}"}}"#);
    let detail = format!(r#"{{"type":"reasoning.encrypted","data":"{SEALED}"}}"#);
    let routed = Dialect {
        quirks: Quirks::of("openrouter"),
        provider: "openrouter".into(),
        ..WireFormat::OpenAiChat.into()
    };
    let of = |format: WireFormat| Dialect::from(format);
    let (claude, gemini, openai) =
        (of(WireFormat::Anthropic), of(WireFormat::Gemini), of(WireFormat::OpenAiResponses));
    for (dialect, seal) in [
        (&claude, signature(&claude.provider)),
        (&gemini, signature(&gemini.provider)),
        (&openai, item(&openai.provider, reasoning)),
        (&routed, item("openrouter", detail)),
    ] {
        let check = |takes, asked: &[Option<&str>], sent, told: &[&str]| {
            check(dialect, &seal, takes, asked, (sent, told));
        };
        check(false, &[None, Some("model-1"), Some("model-1-20261130")], 3, &[]);
        let told = "thinking that model-2 sealed may mean nothing to model-1; left out";
        check(false, &[Some("model-2"), Some("model-1"), Some("model-2")], 1, &[told]);
        check(true, &[Some("model-2"), Some("model-1")], 2, &[]);
    }
}

#[test]
fn whose_api_drops_it_by_itself_gets_all_of_it() {
    let takes =
        |provider: &str, model: &str| Catalog::builtin().profile(provider, model).takes_thinking_of_siblings;
    assert!(takes("anthropic", "claude-opus-5-5") && takes("anthropic", "claude-of-tomorrow"));
    assert!(!takes("anthropic", "kimi-k3"), "another vendor behind the same format");
    assert!(!takes("openai-responses", "gpt-5.6") && !takes("gemini", "gemini-3-pro"));
}
