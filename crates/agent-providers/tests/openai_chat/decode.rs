//! What recorded answers of Chat Completions mean.

use std::collections::BTreeMap;

use agent_core::{
    AssistantPart, FinishKind, ModelError, ModelErrorKind, ModelEvent, Response, ResponseBuilder,
};
use agent_providers::openai_chat::Quirks;
use agent_providers::{Dialect, ResponseHead, StreamDecoder, ToolNames, WireFormat, decode_response};

use super::folder;
use crate::support::{files, read, stream};

type Events = Vec<Result<ModelEvent, ModelError>>;

/// The fixtures of this format: name and bytes.
fn fixtures() -> Vec<(String, Vec<u8>)> {
    let mut all = files(&folder());
    all.retain(|(name, _)| !name.contains(".expect.") && !name.ends_with(".md"));
    assert!(all.len() > 40, "only {} fixtures", all.len());
    all
}

fn dialect() -> Dialect {
    WireFormat::OpenAiChat.into()
}

/// The events of these bytes, given in pieces of one size.
fn events(dialect: &Dialect, bytes: &[u8], size: usize) -> Events {
    let mut decoder = StreamDecoder::new(dialect, ToolNames::default());
    let mut events: Events = bytes.chunks(size).flat_map(|chunk| decoder.push(chunk)).collect();
    events.extend(decoder.finish());
    events
}

/// The whole answer of a fixture.
pub(super) fn response(name: &str) -> Response {
    let mut builder = ResponseBuilder::default();
    for event in events(&dialect(), &read(&folder().join(name)), 4096) {
        builder.take(event.unwrap());
    }
    builder.finish().unwrap()
}

/// Cut anywhere, a stream is whole or interrupted; it never gives a call that did not end, and nothing follows the end.
#[test]
fn a_cut_stream_is_whole_or_interrupted() {
    for (name, bytes) in fixtures().into_iter().filter(|(name, _)| name.ends_with(".sse")) {
        let is_border = |at: &usize| bytes[at.saturating_sub(2)..(at + 2).min(bytes.len())].contains(&b'\n');
        for cut in (0..bytes.len()).filter(is_border) {
            let events = events(&dialect(), &bytes[..cut], bytes.len());
            let (last, before) = events.split_last().unwrap();
            assert!(before.iter().all(Result::is_ok), "{name} at {cut}");
            let ends = before.iter().flatten().filter(|event| matches!(event, ModelEvent::Finish(_)));
            assert_eq!(ends.count(), 0, "{name} at {cut}: something follows the end");
            match last {
                Ok(ModelEvent::Finish(_)) => {}
                Ok(event) => panic!("{name} at {cut}: {event:?}"),
                Err(error) if error.kind == ModelErrorKind::Interrupted => {
                    let gave_call = before
                        .iter()
                        .flatten()
                        .any(|event| matches!(event, ModelEvent::Part(AssistantPart::ToolCall(_))));
                    assert!(!gave_call, "{name} at {cut}");
                }
                Err(error) => assert!(!error.message.is_empty(), "{name} at {cut}"),
            }
        }
    }
}

#[track_caller]
fn parts(name: &str) -> String {
    serde_json::to_string(&response(name).parts).unwrap().replace("},{\"", "},\n{\"")
}

#[test]
fn items_of_thinking_are_whole_and_in_their_order() {
    insta::assert_snapshot!(parts("reasoning_details.sse"), @r#"
    [{"reasoning":{"text":"Warm the pot.","seal":{"item":{"provider":"openai-chat","raw":{"type":"reasoning.text","text":"Warm the pot.","format":"f-1","index":0,"signature":"c2lnbmVk"}}}}},
    {"text":{"text":"First, warm the pot."}},
    {"reasoning":{"text":"","seal":{"item":{"provider":"openai-chat","raw":{"type":"reasoning.encrypted","data":"c2VhbGVk","id":"rs_f1","index":1}}}}}]
    "#);
    insta::assert_snapshot!(parts("reasoning_content.sse"), @r#"
    [{"reasoning":{"text":"Two cups and two."}},
    {"text":{"text":"Four cups."}}]
    "#);
    insta::assert_snapshot!(parts("thinking_parts.sse"), @r#"
    [{"reasoning":{"text":"Count the leaves."}},
    {"text":{"text":"Seven leaves in all"}},
    {"provider":{"provider":"openai-chat","kind":"reference","raw":{"type":"reference","reference_ids":[1,2]}}},
    {"text":{"text":"."}}]
    "#);
}

#[test]
fn what_only_the_provider_understands_is_kept() {
    insta::assert_snapshot!(parts("call_fields.sse"), @r#"[{"tool_call":{"id":"call_a","name":"brew","input":{"json":{}},"data":{"provider":"openai-chat","json":{"extra_content":{"google":{"thought_signature":"c2ln"}}}}}}]"#);
    insta::assert_snapshot!(parts("call_custom.sse"), @r#"[{"tool_call":{"id":"call_a","name":"recipe","input":{"json":"Boil \"water\", then wait."},"data":{"provider":"openai-chat","json":{"type":"custom"}}}}]"#);
    insta::assert_snapshot!(parts("audio.sse"), @r#"[{"provider":{"provider":"openai-chat","kind":"audio","raw":{"id":"audio_f1","transcript":"Tea time.","data":"AAAA","expires_at":12345678901234567890}}}]"#);
    insta::assert_snapshot!(parts("message.json"), @r#"
    [{"text":{"text":"See the list.","data":{"provider":"openai-chat","json":{"annotations":[{"type":"url_citation","url_citation":{"url":"https://tea.example/1","title":"Tea"}}]}}}},
    {"tool_call":{"id":"call_a","name":"brew","input":{"json":{"z": 12345678901234567890, "a": 1.0}}}}]
    "#);
    insta::assert_snapshot!(parts("refusal.sse"), @r#"[{"text":{"text":"I cannot brew that.","data":{"provider":"openai-chat","json":{"refusal":true}}}}]"#);
}

/// Those who watch see every byte of every input; only blank ones are mended afterwards.
#[test]
fn deltas_say_what_parts_say() {
    let mut checked = 0;
    for (name, bytes) in fixtures() {
        let mut told: BTreeMap<String, String> = BTreeMap::new();
        for event in events(&dialect(), &bytes, bytes.len()).into_iter().flatten() {
            match event {
                ModelEvent::ToolInputDelta { call, json, .. } => {
                    told.entry(call.as_str().to_owned()).or_default().push_str(&json);
                }
                ModelEvent::Part(AssistantPart::ToolCall(call)) => {
                    let told = &told[call.id.as_str()];
                    let plain: Option<String> = serde_json::from_str(call.input.as_str()).ok();
                    let input = plain.as_deref().unwrap_or(call.input.as_str());
                    let was_blank = matches!(told.trim(), "" | "null") && input == "{}";
                    assert!(was_blank || told.contains(input), "{name}: {told} {input}");
                    checked += 1;
                }
                ModelEvent::Start(_) | ModelEvent::Part(_) | ModelEvent::Finish(_) | _ => {}
            }
        }
    }
    assert!(checked > 20, "only {checked} calls");
}

#[test]
fn words_for_the_end_have_our_words() {
    use FinishKind as K;
    let check = |raw: &str, kind: FinishKind| {
        let chunk = format!(r#"{{"choices":[{{"delta":{{"content":"a"}},"finish_reason":"{raw}"}}]}}"#);
        let finish =
            decode_response(&dialect(), &[stream(&[&chunk])], &ResponseHead::unknown()).finish.unwrap();
        assert_eq!((finish.kind, finish.raw.as_str()), (kind, raw));
    };
    for (raw, kind) in [
        ("stop", K::Stop),
        ("eos_token", K::Stop),
        ("end_turn", K::Stop),
        ("tool_calls", K::ToolCalls),
        ("function_call", K::ToolCalls),
        ("length", K::Length),
        ("model_length", K::Length),
        ("content_filter", K::ContentFilter),
        ("refusal", K::Refusal),
        ("model_context_window_exceeded", K::ContextWindow),
        ("brewed", K::Other),
    ] {
        check(raw, kind);
    }
    let failed = r#"{"choices":[{"delta":{},"finish_reason":"error"}]}"#;
    let error = decode_response(&dialect(), &[stream(&[failed])], &ResponseHead::unknown()).error.unwrap();
    assert_eq!((error.kind, error.retryable), (ModelErrorKind::Transport, true));
}

#[test]
fn a_connection_that_breaks_behind_the_end_loses_nothing() {
    let chunk = r#"{"choices":[{"delta":{"content":"Tea."},"finish_reason":"stop"}]}"#;
    let mut decoder = StreamDecoder::new(&dialect(), ToolNames::default());
    decoder.push(&stream(&[chunk]));
    let end = decoder.interrupt("the connection was reset");
    assert!(matches!(end.last(), Some(Ok(ModelEvent::Finish(_)))), "{end:?}");
    assert!(decoder.is_complete());
    let mut decoder = StreamDecoder::new(&dialect(), ToolNames::default());
    decoder.push(&stream(&[r#"{"choices":[{"delta":{"content":"Te"}}]}"#]));
    let error = decoder.interrupt("the connection was reset").pop().unwrap().unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Interrupted);
}

#[test]
fn names_come_back_and_the_mark_of_the_end_needs_no_blank_line() {
    let names = ToolNames::default();
    let wire = names.wire("kettle.boil").into_owned();
    let call = format!(
        r#"{{"choices":[{{"delta":{{"tool_calls":[{{"index":0,"id":"a","function":{{"name":"{wire}","arguments":"{{}}"}}}}]}}}}]}}"#
    );
    let mut decoder = StreamDecoder::new(&dialect(), names);
    let mut events = decoder.push(&stream(&[&call]));
    events.extend(decoder.push(b"data: [DONE]"));
    events.extend(decoder.finish());
    let named = events.iter().flatten().filter_map(|event| match event {
        ModelEvent::Part(AssistantPart::ToolCall(call)) => Some(call.name.as_str()),
        ModelEvent::ToolInputDelta { tool, .. } => Some(&**tool),
        ModelEvent::Start(_) | ModelEvent::Part(_) | ModelEvent::Finish(_) | _ => None,
    });
    assert_eq!(named.collect::<Vec<_>>(), ["kettle.boil", "kettle.boil"]);
    assert!(decoder.is_complete());
}

/// A provider's parts carry its name.
#[test]
fn a_dialect_is_that_of_its_provider() {
    let chunk =
        r#"{"choices":[{"delta":{"content":"Tea.","annotations":[{"n":1.0}]},"finish_reason":"stop"}]}"#;
    let of = |provider: &str| {
        let dialect = Dialect { provider: provider.into(), quirks: Quirks::of(provider), ..dialect() };
        let mut builder = ResponseBuilder::default();
        for event in events(&dialect, &stream(&[chunk]), 9) {
            builder.take(event.unwrap());
        }
        serde_json::to_string(&builder.finish().unwrap().parts).unwrap()
    };
    assert_eq!(
        of("xai-chat"),
        r#"[{"text":{"text":"Tea.","data":{"provider":"xai-chat","json":{"annotations":[{"n":1.0}]}}}}]"#
    );
}
