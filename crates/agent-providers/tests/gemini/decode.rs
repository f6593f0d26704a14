//! What recorded answers of Gemini mean.

use agent_core::{
    AssistantPart, FinishKind, ModelError, ModelErrorKind, ModelEvent, Response, ResponseBuilder,
};
use agent_providers::{Decoded, ResponseHead, StreamDecoder, ToolNames, WireFormat, decode_response};

use super::folder;
use crate::support::{files, read, stream};

fn decode<C: AsRef<[u8]>>(chunks: &[C]) -> Decoded {
    decode_response(&WireFormat::Gemini.into(), chunks, &ResponseHead::unknown())
}

fn events(bytes: &[u8]) -> Vec<Result<ModelEvent, ModelError>> {
    let mut decoder = StreamDecoder::new(&WireFormat::Gemini.into(), ToolNames::default());
    let mut events = decoder.push(bytes);
    events.extend(decoder.finish());
    events
}

/// The whole answer of a stream that has one.
fn response(bytes: &[u8]) -> Response {
    let mut builder = ResponseBuilder::default();
    for event in events(bytes) {
        builder.take(event.unwrap());
    }
    builder.finish().unwrap()
}

/// Name and bytes of each recorded answer.
fn fixtures() -> Vec<(String, Vec<u8>)> {
    let all = files(&folder()).into_iter();
    let all: Vec<_> = all.filter(|(name, _)| !name.contains(".expect.") && !name.ends_with(".md")).collect();
    assert!(all.len() > 20, "only {} fixtures", all.len());
    all
}

/// The parts that a fixture gives, written as JSON, one a line.
#[track_caller]
fn parts(name: &str) -> String {
    let response = response(&read(&folder().join(name)));
    response.parts.iter().map(|part| serde_json::to_string(part).unwrap() + "\n").collect()
}

#[test]
fn signatures_stay_with_their_parts() {
    insta::assert_snapshot!(parts("text.sse"), @r#"
    {"reasoning":{"text":"The user asks for tea.","seal":{"signature":{"provider":"gemini","value":"dGhvdWdodA=="}}}}
    {"text":{"text":"Tea is ready.","data":{"provider":"gemini","json":{"thoughtSignature":"d29yZHM="}}}}
    "#);
    insta::assert_snapshot!(parts("calls.sse"), @r#"
    {"tool_call":{"id":"call_0","name":"look","input":{"json":{"z":12345678901234567890,"a":1.0,"w":"\u00e9"}},"data":{"provider":"gemini","json":{"thoughtSignature":"Zmlyc3Q="}}}}
    {"tool_call":{"id":"call_1","name":"list_all","input":{"json":{}}}}
    {"tool_call":{"id":"call_2","name":"look","input":{"json":{}}}}
    "#);
    insta::assert_snapshot!(parts("call_ids.sse"), @r#"
    {"text":{"text":"Let me look."}}
    {"tool_call":{"id":"fc_7","name":"look","input":{"json":{"at":"tea"}},"data":{"provider":"gemini","json":{"id":"fc_7","thoughtSignature":"c2ln"}}}}
    "#);
    insta::assert_snapshot!(parts("answer.json"), @r#"
    {"reasoning":{"text":"Two words"}}
    {"text":{"text":"first"}}
    {"text":{"text":"second","data":{"provider":"gemini","json":{"thoughtSignature":"cw=="}}}}
    {"tool_call":{"id":"call_0","name":"look","input":{"json":{
            "at": "tea"
           }}}}
    {"provider":{"provider":"gemini","kind":"inlineData","raw":{
          "inlineData": {
           "mimeType": "image/png",
           "data": "iVBO"
          }
         }}}
    "#);
}

#[test]
fn what_only_the_provider_understands_keeps_its_bytes() {
    insta::assert_snapshot!(parts("hosted_tools.sse"), @r#"
    {"text":{"text":"I compute."}}
    {"provider":{"provider":"gemini","kind":"executableCode","raw":{"executableCode":{"language":"PYTHON","code":"print(2 + 2)\n"},"thoughtSignature":"Y29kZQ=="}}}
    {"provider":{"provider":"gemini","kind":"codeExecutionResult","raw":{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"4\n"}}}}
    {"text":{"text":"It is four."}}
    {"provider":{"provider":"gemini","kind":"groundingMetadata","raw":{"groundingMetadata":{"webSearchQueries":["two and two"]}}}}
    "#);
}

#[test]
fn what_was_told_of_an_input_is_the_input() {
    for (name, bytes) in fixtures() {
        let (mut told, mut inputs) = (Vec::<(String, String)>::new(), Vec::new());
        for event in events(&bytes).into_iter().flatten() {
            match event {
                ModelEvent::ToolInputDelta { call, json, .. } => {
                    match told.iter_mut().find(|(id, _)| id == call.as_str()) {
                        Some((_, text)) => text.push_str(&json),
                        None => {
                            assert!(json.is_empty(), "{name}: a call is announced before its input");
                            told.push((call.as_str().to_owned(), json));
                        }
                    }
                }
                ModelEvent::Part(AssistantPart::ToolCall(call)) => {
                    inputs.push((call.id.as_str().to_owned(), call.input.as_str().to_owned()));
                }
                ModelEvent::Start(_)
                | ModelEvent::TextDelta { .. }
                | ModelEvent::ReasoningDelta { .. }
                | ModelEvent::Part(_)
                | ModelEvent::Usage(_)
                | ModelEvent::Finish(_)
                | _ => {}
            }
        }
        // Blank input is the empty object.
        for (_, text) in told.iter_mut().filter(|(_, text)| text.is_empty()) {
            text.push_str(if name.starts_with("cut_blank") { "" } else { "{}" });
        }
        assert_eq!(told, inputs, "{name}");
    }
}

#[test]
fn finish_reasons_have_our_words() {
    use FinishKind as K;
    let check = |raw: &str, kind: FinishKind| {
        let chunk = format!(
            r#"{{"candidates":[{{"content":{{"parts":[{{"text":"x"}}]}},"finishReason":"{raw}"}}]}}"#
        );
        for bytes in [stream(&[&chunk]), chunk.clone().into_bytes()] {
            let finish = decode(&[bytes]).finish.unwrap();
            assert_eq!((finish.kind, finish.raw.as_str()), (kind, raw));
        }
    };
    check("STOP", K::Stop);
    check("MAX_TOKENS", K::Length);
    for filtered in [
        "SAFETY",
        "RECITATION",
        "LANGUAGE",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "IMAGE_SAFETY",
        "MODEL_ARMOR",
    ] {
        check(filtered, K::ContentFilter);
    }
    for other in ["OTHER", "TOO_MANY_TOOL_CALLS", "NO_IMAGE", "A_NEW_WORD"] {
        check(other, K::Other);
    }
}

#[test]
fn an_answer_that_its_provider_could_not_read_is_an_error() {
    let check = |reason: &str, kind: ModelErrorKind, retryable: bool| {
        let chunk = format!(r#"{{"candidates":[{{"finishReason":"{reason}","finishMessage":"why so"}}]}}"#);
        let error = decode(&[stream(&[&chunk])]).error.unwrap();
        assert_eq!((error.kind, error.retryable), (kind, retryable), "{error}");
        assert!(error.message.contains(reason) && error.message.contains("(why so)"), "{error}");
    };
    check("MALFORMED_FUNCTION_CALL", ModelErrorKind::Protocol, true);
    check("UNEXPECTED_TOOL_CALL", ModelErrorKind::Protocol, true);
    check("MALFORMED_RESPONSE", ModelErrorKind::Protocol, true);
    check("MISSING_THOUGHT_SIGNATURE", ModelErrorKind::InvalidRequest, false);
}

#[test]
fn a_broken_shape_is_a_protocol_error() {
    let check = |chunk: &str| {
        let error = decode(&[stream(&[chunk])]).error.unwrap();
        assert_eq!(error.kind, ModelErrorKind::Protocol, "{chunk}: {error}");
        assert!(error.message.len() < 400, "{error}");
    };
    check("[1]");
    check(r#"{"candidates":7}"#);
    check(r#"{"candidates":[7]}"#);
    check(r#"{"candidates":[{"content":"words"}]}"#);
    check(r#"{"candidates":[{"content":{"parts":"words"}}]}"#);
    check(r#"{"candidates":[{"content":{"parts":["words"]}}]}"#);
    check(r#"{"candidates":[{"content":{"parts":[{"functionCall":"look"}]}}]}"#);
    check(r#"{"promptFeedback":"no"}"#);
}

#[test]
fn pieces_that_name_a_call_again_go_on_in_it() {
    let call = |fields: &str| {
        format!(r#"{{"candidates":[{{"content":{{"parts":[{{"functionCall":{{{fields}}}}}]}}}}]}}"#)
    };
    let end = r#"{"candidates":[{"finishReason":"STOP"}]}"#;
    let a = r#"{"jsonPath":"$.a","numberValue":1}"#;
    let b = r#"{"jsonPath":"$.b","numberValue":2}"#;
    let check = |pieces: &[String], expect: &[&str]| {
        let chunks: Vec<&str> = pieces.iter().map(String::as_str).chain([end]).collect();
        let decoded = decode(&[stream(&chunks)]);
        let inputs: Vec<&str> = decoded.calls.iter().map(|call| call.input.as_str()).collect();
        assert_eq!((inputs.as_slice(), decoded.finish.unwrap().kind), (expect, FinishKind::ToolCalls));
    };
    let first = call(&format!(r#""name":"f","id":"x","partialArgs":[{a}],"willContinue":true"#));
    check(
        &[first.clone(), call(&format!(r#""name":"f","id":"x","partialArgs":[{b}]"#))],
        &[r#"{"a":1,"b":2}"#],
    );
    check(&[first.clone(), call(&format!(r#""partialArgs":[{b}]"#))], &[r#"{"a":1,"b":2}"#]);
    check(&[first.clone(), call(r#""name":"g","args":{"c":3}"#)], &[r#"{"a":1}"#, r#"{"c":3}"#]);
    check(&[first.clone(), call(r#""name":"f","id":"y","args":{}"#)], &[r#"{"a":1}"#, "{}"]);
    check(&[first, call(r#""willContinue":true"#), call("")], &[r#"{"a":1}"#]);
    check(&[call(r#""name":"f","args":"{\"s\":1}""#)], &[r#"{"s":1}"#]);
    check(&[call(r#""name":"f","args":"{\"s\"""#)], &[r#"{"s""#]);
}

#[test]
fn tools_are_called_by_their_real_names() {
    let names = ToolNames::default();
    let wire = names.wire("calendar.respond").into_owned();
    let chunk = format!(
        r#"{{"candidates":[{{"content":{{"parts":[{{"functionCall":{{"name":"{wire}"}}}}]}},"finishReason":"STOP"}}]}}"#
    );
    let mut decoder = StreamDecoder::new(&WireFormat::Gemini.into(), names);
    let mut builder = ResponseBuilder::default();
    let mut events = decoder.push(&stream(&[&chunk]));
    assert!(!decoder.is_complete(), "more may follow a finish reason");
    events.extend(decoder.finish());
    assert!(decoder.is_complete());
    for event in events {
        builder.take(event.unwrap());
    }
    assert_eq!(builder.finish().unwrap().calls().next().unwrap().name, "calendar.respond");
}
