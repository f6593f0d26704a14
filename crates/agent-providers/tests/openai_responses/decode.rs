//! What answers mean.

use agent_core::{
    AssistantPart, FinishKind, ModelErrorKind, ModelEvent, Response, ResponseBuilder, ToolInput,
};
use agent_providers::{Decoded, ResponseHead, StreamDecoder, ToolNames, WireFormat, decode_response};

use super::fixture;
use crate::support::{files, stream};

pub(super) fn decode(bytes: &[u8]) -> Decoded {
    decode_response(&WireFormat::OpenAiResponses.into(), &[bytes], &ResponseHead::unknown())
}

fn events(chunks: &[&[u8]], names: ToolNames) -> Vec<Result<ModelEvent, agent_core::ModelError>> {
    let mut decoder = StreamDecoder::new(&WireFormat::OpenAiResponses.into(), names);
    let mut events: Vec<_> = chunks.iter().flat_map(|chunk| decoder.push(chunk)).collect();
    events.extend(decoder.finish());
    events
}

/// The whole answer of a stream that has one.
pub(super) fn response(bytes: &[u8]) -> Response {
    let mut builder = ResponseBuilder::default();
    for event in events(&[bytes], ToolNames::default()) {
        builder.take(event.unwrap());
    }
    builder.finish().unwrap()
}

fn parts(name: &str) -> String {
    let parts = response(&fixture(name)).parts;
    parts.iter().map(|part| serde_json::to_string(part).unwrap() + "\n").collect()
}

#[test]
fn what_is_told_to_those_who_watch_is_what_is_kept() {
    for (name, bytes) in files(&super::folder()) {
        if !name.ends_with(".sse") {
            continue;
        }
        let (mut text, mut thought, mut kept, mut kept_thought) =
            <(String, String, String, String)>::default();
        let mut whole = false;
        for event in events(&[&bytes], ToolNames::default()) {
            match event {
                Ok(ModelEvent::TextDelta { text: new, .. }) => text.push_str(&new),
                Ok(ModelEvent::ReasoningDelta { text: new, .. }) => thought.push_str(&new),
                Ok(ModelEvent::Part(AssistantPart::Text(said))) => kept.push_str(said.text.as_str()),
                Ok(ModelEvent::Part(AssistantPart::Reasoning(said))) => kept_thought.push_str(&said.text),
                Ok(ModelEvent::Finish(_)) => whole = true,
                Ok(_) | Err(_) => {}
            }
        }
        if whole {
            assert_eq!((text, thought), (kept, kept_thought), "{name}");
        }
    }
}

#[test]
fn items_keep_their_bytes_and_what_came_with_them() {
    insta::assert_snapshot!(parts("hosted.sse"), @r#"
    {"provider":{"provider":"openai-responses","kind":"web_search_call","raw":{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"tea prices","n":1.0}}}}
    {"text":{"text":"Tea costs 3.50.","data":{"provider":"openai-responses","json":{"id":"msg_1","status":"completed","part":{"annotations":[{"type":"url_citation","start_index":0,"end_index":9,"url":"https://tea.example/1","title":"Tea"}]}}}}}
    {"provider":{"provider":"openai-responses","kind":"brand_new_item","raw":{"type":"brand_new_item","zeta":1.0,"alpha":2}}}
    {"provider":{"provider":"openai-responses","kind":"program","raw":{"id":"cm_1","type":"program","call_id":"call_p","code":"await tools.brew({})"}}}
    {"tool_call":{"id":"call_1","name":"brew","input":{"json":{}},"data":{"provider":"openai-responses","json":{"id":"fc_1","status":"completed","caller":{"type":"program","caller_id":"call_p"}}}}}
    "#);
}

#[test]
fn thinking_is_sealed_by_the_item_that_was_complete() {
    insta::assert_snapshot!(parts("reasoning.sse"), @r#"
    {"reasoning":{"text":"Count the cups.\n\nFour of them.","seal":{"item":{"provider":"openai-responses","raw":{"id":"rs_1","type":"reasoning","encrypted_content":"bGF0ZQ==","summary":[{"type":"summary_text","text":"Count the cups."},{"type":"summary_text","text":"Four of them."}],"content":[],"status":null}}}}}
    {"text":{"text":"Four.","data":{"provider":"openai-responses","json":{"id":"msg_1","status":"completed","phase":"final_answer"}}}}
    "#);
    insta::assert_snapshot!(parts("rotating_ids.sse"), @r#"
    {"reasoning":{"text":"Warm the pot.","seal":{"item":{"provider":"openai-responses","raw":{"id":"r-4","type":"reasoning","encrypted_content":null,"summary":[{"type":"summary_text","text":"Warm the pot."}]}}}}}
    {"text":{"text":"Warm it.","data":{"provider":"openai-responses","json":{"id":"r-8","status":"completed"}}}}
    {"tool_call":{"id":"call_1","name":"brew","input":{"json":{"cups":2}},"data":{"provider":"openai-responses","json":{"id":"r-12","status":"completed"}}}}
    "#);
}

#[test]
fn a_refusal_keeps_its_kind() {
    insta::assert_snapshot!(parts("refusal.sse"), @r#"{"text":{"text":"I cannot pour that.","data":{"provider":"openai-responses","json":{"id":"msg_1","status":"completed","part":{"type":"refusal"}}}}}"#);
}

#[test]
fn an_item_whose_end_is_missing_is_what_was_streamed() {
    let bytes = stream(&[
        r#"{"type":"response.created","response":{"id":"r","model":"m"}}"#,
        r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}"#,
        r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"Hm."}"#,
        r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":1,"delta":"So."}"#,
        r#"{"type":"response.output_item.added","output_index":1,"item":{"id":"m_1","type":"message","status":"in_progress","role":"assistant","content":[]}}"#,
        r#"{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"Tea"}"#,
        r#"{"type":"response.output_text.annotation.added","output_index":1,"content_index":0,"annotation":{"url":"u"}}"#,
        r#"{"type":"response.completed","response":{"id":"r"}}"#,
    ]);
    let said = response(&bytes);
    insta::assert_snapshot!(serde_json::to_string(&said.parts).unwrap(), @r#"[{"reasoning":{"text":"Hm.\n\nSo.","seal":{"item":{"provider":"openai-responses","raw":{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"Hm."},{"type":"summary_text","text":"So."}]}}}}},{"text":{"text":"Tea","data":{"provider":"openai-responses","json":{"id":"m_1","part":{"annotations":[{"url":"u"}]}}}}}]"#);
    assert_eq!((said.origin.model.as_str(), said.origin.message.as_deref()), ("m", Some("r")));
}

#[test]
fn ends_have_our_words() {
    use FinishKind as K;
    let check = |end: &str, kind: FinishKind, raw: &str| {
        let finish = decode(&stream(&[end])).finish.unwrap();
        assert_eq!((finish.kind, finish.raw.as_str()), (kind, raw));
    };
    let incomplete = |reason: &str| {
        format!(
            r#"{{"type":"response.incomplete","response":{{"status":"incomplete","incomplete_details":{reason}}}}}"#
        )
    };
    check(r#"{"type":"response.completed","response":{}}"#, K::Stop, "completed");
    check(r#"{"type":"response.done","response":{"status":"completed"}}"#, K::Stop, "completed");
    check(&incomplete(r#"{"reason":"max_output_tokens"}"#), K::Length, "max_output_tokens");
    check(&incomplete(r#"{"reason":"content_filter"}"#), K::ContentFilter, "content_filter");
    check(&incomplete(r#"{"reason":"steam"}"#), K::Other, "steam");
    check(&incomplete("null"), K::Other, "incomplete");
    check(
        r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}]}}"#,
        K::ToolCalls,
        "completed",
    );
}

#[test]
fn one_failure_is_told_once() {
    let all = events(&[&fixture("error_then_failed.sse")], ToolNames::default());
    assert_eq!(all.iter().filter(|event| event.is_err()).count(), 1);
    assert!(all.last().unwrap().is_err());
    let check = |event: &str, kind: ModelErrorKind| {
        let error = decode(&stream(&[event])).error.unwrap();
        assert_eq!(error.kind, kind, "{error}");
    };
    check(r#"{"type":"error","code":"server_error","message":"no","param":null}"#, ModelErrorKind::Transport);
    check(r#"{"error":{"type":"rate_limit_error","message":"slow"}}"#, ModelErrorKind::RateLimited);
    check(r#"{"type":"response.failed","response":{"error":null}}"#, ModelErrorKind::Transport);
    check(r#"{"type":"response.cancelled","response":{}}"#, ModelErrorKind::Interrupted);
    check(r#"{"type":"response.completed","response":{"status":"failed"}}"#, ModelErrorKind::Transport);
    check(r#"{"type":"response.completed","response":{"status":"in_progress"}}"#, ModelErrorKind::Protocol);
}

#[test]
fn a_broken_order_is_a_protocol_error() {
    let check = |events: &[&str]| {
        let error = decode(&stream(events)).error.unwrap();
        assert_eq!(error.kind, ModelErrorKind::Protocol, "{error}");
    };
    check(&[r#"{"type":"response.output_item.added","item":"text"}"#]);
    check(&[r#"{"type":"response.output_item.done","item":["message"]}"#]);
    check(&[r#"{"type":"response.completed"}"#]);
    check(&[r#"{"type":"response.completed","response":{"output":{}}}"#]);
    check(&[r#"{"object":"chat.completion.chunk","choices":[]}"#]);
    check(&[
        r#"{"type":"response.created","response":{"id":"a"}}"#,
        r#"{"type":"response.created","response":{"id":"b"}}"#,
    ]);
    assert_eq!(decode(br#"{"object":"list"}"#).error.unwrap().kind, ModelErrorKind::Protocol);
}

#[test]
fn only_the_last_call_can_have_been_cut() {
    let item = |id: &str, arguments: &str| {
        format!(r#"{{"type":"function_call","call_id":"{id}","name":"f","arguments":"{arguments}"}}"#)
    };
    let inputs = |calls: &[String]| {
        let end = format!(
            r#"{{"type":"response.incomplete","response":{{"output":[{}],"incomplete_details":{{"reason":"max_output_tokens"}}}}}}"#,
            calls.join(",")
        );
        decode(&stream(&[&end])).calls.into_iter().map(|call| call.input).collect::<Vec<_>>()
    };
    let bad = r#"{\"a"#;
    assert_eq!(
        inputs(&[item("a", bad), item("b", bad)]),
        [ToolInput::finished("{\"a"), ToolInput::cut("{\"a")]
    );
    assert_eq!(
        inputs(&[item("a", ""), item("b", "{}")]),
        [ToolInput::finished("{}"), ToolInput::finished("{}")]
    );
}

#[test]
fn tools_are_called_by_their_real_names() {
    let names = ToolNames::default();
    let wire = names.wire("calendar.respond").into_owned();
    let end = format!(
        r#"{{"type":"response.completed","response":{{"output":[{{"type":"function_call","call_id":"c","name":"{wire}","arguments":"{{}}"}}]}}}}"#
    );
    let mut builder = ResponseBuilder::default();
    for event in events(&[&stream(&[&end])], names) {
        builder.take(event.unwrap());
    }
    assert_eq!(builder.finish().unwrap().calls().next().unwrap().name, "calendar.respond");
}
