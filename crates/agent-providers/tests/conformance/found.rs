//! Tools that a search found: a reference where the provider expands one, and words everywhere else.

use agent_core::{
    AssistantPart, CallId, ContentPart, Encoder, Entry, EntryId, FoundTool, History, ModelProfile,
    ModelRequest, RawJson, RequestSettings, Response, Rewrite, StepRecord, Text, ToolCall, ToolCard,
    ToolChoice, ToolInput, ToolOutput, ToolResult, UserMessage,
};
use agent_providers::{Dialect, ToolNames, WireFormat, encoder};

fn card(name: &str) -> ToolCard {
    ToolCard::new(name, "Works.", &RawJson::parse(r#"{"type":"object"}"#).unwrap()).unwrap()
}

fn encode(encoder: &mut dyn Encoder, tools: &[ToolCard], log: &History) -> String {
    let encoded = encoder.encode(&ModelRequest {
        system: &[],
        tools,
        draft: &log.draft(),
        settings: &RequestSettings::default(),
        tool_choice: &ToolChoice::Auto,
        marks: &[],
        stream: true,
    });
    String::from_utf8(encoded.request.body.to_vec()).unwrap()
}

/// A search that found `mcp__add`.
fn searched() -> History {
    let id = CallId::new("c1").unwrap();
    let input = ToolInput::finished(r#"{"query":"add"}"#);
    let call = ToolCall { id: id.clone(), name: "tool_search".into(), input, data: None };
    let words = Text::new("mcp__add {} adds what is given").unwrap();
    let output = ToolOutput::Content(vec![ContentPart::Tool(FoundTool { name: "mcp__add".into(), words })]);
    let step = StepRecord::new(
        Response::of(vec![AssistantPart::ToolCall(call)]),
        vec![ToolResult { call: id, output }],
    );
    let mut log = History::new();
    log.push(Entry::User(UserMessage::text("go").unwrap())).unwrap();
    log.push(Entry::Step(step.unwrap())).unwrap();
    log
}

const WORDS: &str = "mcp__add {} adds what is given";
const REFERENCE: &str = r#"{"type":"tool_reference","tool_name":"mcp__add"}"#;

#[test]
fn words_say_it_wherever_a_reference_is_not_expanded() {
    for format in WireFormat::ALL {
        for deferred_tools in [true, false] {
            let dialect = Dialect::from(format);
            let little = ModelProfile::conservative(dialect.provider.clone(), "m");
            let profile = ModelProfile { deferred_tools, known: true, ..little };
            let mut encoder = encoder(&dialect, profile, ToolNames::default());
            let body =
                encode(&mut *encoder, &[card("tool_search"), card("mcp__add").deferred()], &searched());
            let expands = deferred_tools && format == WireFormat::Anthropic;
            assert_eq!(body.contains(REFERENCE), expands, "{format:?}: {body}");
            assert_eq!(body.contains(WORDS), !expands, "{format:?}: {body}");
            assert_eq!(body.contains(r#""defer_loading":true"#), expands, "{format:?}: {body}");
        }
    }
}

#[test]
fn a_reference_stands_only_where_its_tool_does() {
    let profile = ModelProfile { deferred_tools: true, ..ModelProfile::conservative("anthropic", "m") };
    let mut encoder = encoder(&WireFormat::Anthropic.into(), profile, ToolNames::default());
    let mut log = searched();
    let search = card("tool_search");
    let mut check = |tools: &[ToolCard], log: &History, is_reference: bool| {
        let body = encode(&mut *encoder, tools, log);
        assert_eq!((body.contains(REFERENCE), body.contains(WORDS)), (is_reference, !is_reference), "{body}");
        body
    };
    let whole = check(&[search.clone(), card("mcp__add").deferred()], &log, true);
    check(std::slice::from_ref(&search), &log, false);
    check(&[search.clone(), card("mcp__add")], &log, false);
    let again = check(&[search.clone(), card("mcp__add").deferred()], &log, true);
    assert_eq!(whole, again);
    // Another one that may be found moves no byte of the conversation.
    let more = check(&[search.clone(), card("mcp__add").deferred(), card("mcp__new").deferred()], &log, true);
    let messages = |body: &str| body.split_once(r#""messages""#).unwrap().1.to_owned();
    assert_eq!(messages(&more), messages(&whole));
    // What is cleared leaves no reference to be expanded.
    log.push(Entry::User(UserMessage::text("on").unwrap())).unwrap();
    let cleared = Rewrite::Cleared {
        results_to: EntryId::at(2),
        keep_bytes: 9,
        strip_reasoning: false,
        offloaded: false,
    };
    log.push(Entry::Boundary(cleared)).unwrap();
    let body = encode(&mut *encoder, &[search, card("mcp__add").deferred()], &log);
    assert!(!body.contains("tool_reference") && body.contains("bytes removed"), "{body}");
}
