//! What recorded answers of Ollama mean.

use agent_core::{ModelErrorKind, ModelEvent, ResponseBuilder};
use agent_providers::{
    Decoded, ResponseHead, StreamDecoder, ToolNames, WireFormat, decode_body, decode_response,
};

use super::folder;
use crate::support::{files, printed, read};

fn decode<C: AsRef<[u8]>>(chunks: &[C]) -> Decoded {
    decode_response(&WireFormat::Ollama.into(), chunks, &ResponseHead::unknown())
}

/// Name and bytes of each recorded answer.
fn fixtures() -> Vec<(String, Vec<u8>)> {
    let all = files(&folder()).into_iter();
    let all: Vec<_> = all.filter(|(name, _)| !name.contains(".expect.") && !name.ends_with(".md")).collect();
    assert!(all.len() > 15, "only {} fixtures", all.len());
    all
}

/// The suite of all formats cuts streams; here every fixture is given as a body that came whole.
#[test]
fn bodies_that_came_whole_mean_the_same() {
    for (name, bytes) in fixtures() {
        let mut whole = Decoded::default();
        let head = ResponseHead { status: Some(200), ..ResponseHead::unknown() };
        for event in decode_body(&WireFormat::Ollama.into(), &ToolNames::default(), &head, &bytes) {
            whole.take(event);
        }
        assert_eq!(printed(&whole), printed(&decode(&[&bytes])), "{name}");
    }
}

#[test]
fn a_failed_status_is_classified_whatever_the_body() {
    let check = |status: u16, body: &str, kind: ModelErrorKind| {
        let head = ResponseHead { status: Some(status), ..ResponseHead::unknown() };
        let decoded = decode_response(&WireFormat::Ollama.into(), &[body], &head);
        assert_eq!(decoded.error.unwrap().kind, kind);
    };
    check(404, r#"{"error":"model \"leaf\" not found"}"#, ModelErrorKind::InvalidRequest);
    check(503, "<html>", ModelErrorKind::Overloaded);
}

#[test]
fn the_events_of_an_answer() {
    let mut decoder = StreamDecoder::new(&WireFormat::Ollama.into(), ToolNames::default());
    let bytes = read(&folder().join("calls.ndjson"));
    let events = decoder.push(&bytes);
    assert!(decoder.is_complete() && decoder.finish().is_empty(), "the last object is the end");
    let shown: Vec<String> = events.into_iter().map(|event| sketch(&event.unwrap())).collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    start leaf:4b
    0 text "I look."
    {"text":{"text":"I look."}}
    1 look call_0 
    1 look call_0 {"z":12345678901234567890,"a":1.0,"w":"\u00e9"}
    {"tool_call":{"id":"call_0","name":"look","input":{"json":{"z":12345678901234567890,"a":1.0,"w":"\u00e9"}}}}
    2 list_all call_1 
    2 list_all call_1 {}
    {"tool_call":{"id":"call_1","name":"list_all","input":{"json":{}}}}
    3 look call_x1 
    3 look call_x1 {"at":"pot"}
    {"tool_call":{"id":"call_x1","name":"look","input":{"json":{"at":"pot"}},"data":{"provider":"ollama","json":{"id":"call_x1"}}}}
    usage 26 9 {"total_duration":900,"load_duration":10,"prompt_eval_count":26,"prompt_eval_duration":20,"eval_count":9,"eval_duration":70}
    finish ToolCalls stop
    "#);
}

fn sketch(event: &ModelEvent) -> String {
    match event {
        ModelEvent::Start(origin) => format!("start {}", origin.model),
        ModelEvent::TextDelta { index, text } => format!("{index} text {text:?}"),
        ModelEvent::ReasoningDelta { index, text } => format!("{index} thinking {text:?}"),
        ModelEvent::ToolInputDelta { index, call, tool, json } => format!("{index} {tool} {call} {json}"),
        ModelEvent::Part(part) => serde_json::to_string(part).unwrap(),
        ModelEvent::Usage(usage) => {
            format!("usage {} {} {}", usage.input, usage.output, usage.raw.as_ref().unwrap())
        }
        ModelEvent::Finish(finish) => format!("finish {:?} {}", finish.kind, finish.raw),
        ModelEvent::Cleared { .. } | _ => "other".into(),
    }
}

#[test]
fn thinking_and_images_are_parts() {
    let lines = concat!(
        r#"{"model":"m","message":{"thinking":"a","content":" "},"done":false}"#,
        r#"{"message":{"thinking":"b","content":"c"},"done":false}"#,
        r#"{"message":{"content":"","images":["aVZC"]},"done":true,"done_reason":"stop"}"#
    );
    let mut builder = ResponseBuilder::default();
    let mut decoder = StreamDecoder::new(&WireFormat::Ollama.into(), ToolNames::default());
    for event in decoder.push(lines.as_bytes()) {
        builder.take(event.unwrap());
    }
    let parts = builder.finish().unwrap().parts;
    let shown: String = parts.iter().map(|part| serde_json::to_string(part).unwrap() + "\n").collect();
    insta::assert_snapshot!(shown, @r#"
    {"reasoning":{"text":"a"}}
    {"reasoning":{"text":"b"}}
    {"text":{"text":"c"}}
    {"provider":{"provider":"ollama","kind":"images","raw":{"images":["aVZC"]}}}
    "#);
}

#[test]
fn broken_shapes_and_objects_that_are_too_large_are_protocol_errors() {
    let check = |line: &str| {
        let error = decode(&[line]).error.unwrap();
        assert_eq!(error.kind, ModelErrorKind::Protocol, "{line}: {error}");
        assert!(error.message.len() < 400, "{error}");
    };
    check(r#"{"message":"words"}"#);
    check(r#"{"message":{"tool_calls":{"a":1}}}"#);
    check(r#"{"message":{"tool_calls":["look"]}}"#);
    check(r#"{"message":{"tool_calls":[{"id":"x"}]}}"#);
    check(r#"{"message":nonsense}"#);
    let mut decoder = StreamDecoder::with_event_limit(&WireFormat::Ollama.into(), ToolNames::default(), 50);
    let line = format!(r#"{{"message":{{"content":"{}"}}}}"#, "x".repeat(60));
    let error = decoder.push(line.as_bytes()).pop().unwrap().unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Protocol);
    assert!(decoder.push(b"{\"done\":true}").is_empty() && decoder.finish().is_empty());
}
