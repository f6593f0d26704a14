//! What recorded answers mean.

use agent_core::{AssistantPart, FinishKind, ModelErrorKind, ModelEvent, ResponseBuilder, Seal, ToolInput};
use agent_providers::{Decoded, StreamDecoder, ToolNames, WireFormat};

use crate::support::{decode, events, fixtures, response, stream};

/// The stream and the parts it gives, written as JSON.
#[track_caller]
fn parts(name: &str) -> String {
    let (_, bytes) = fixtures(".sse").into_iter().find(|(file, _)| file == name).unwrap();
    serde_json::to_string_pretty(&response(&bytes).parts).unwrap()
}

#[test]
fn blocks_of_the_provider_keep_their_bytes() {
    insta::assert_snapshot!(parts("server_tools.sse"), @r#"
    [
      {
        "provider": {
          "provider": "anthropic",
          "kind": "server_tool_use",
          "raw": {"type":"server_tool_use","id":"srvtoolu_f1","name":"web_search","input":{"query": "tea prices"}}
        }
      },
      {
        "provider": {
          "provider": "anthropic",
          "kind": "web_search_tool_result",
          "raw": {"type":"web_search_tool_result","tool_use_id":"srvtoolu_f1","content":[{"type":"web_search_result","url":"https://tea.example/1","title":"Tea","encrypted_content":"ZW5j"}]}
        }
      },
      {
        "text": {
          "text": "Tea costs 3.50.",
          "data": {
            "provider": "anthropic",
            "json": [{"type":"web_search_result_location","url":"https://tea.example/1","cited_text":"3.50"}]
          }
        }
      },
      {
        "provider": {
          "provider": "anthropic",
          "kind": "brand_new_block",
          "raw": {"type":"brand_new_block","zeta":1.0,"alpha":2}
        }
      }
    ]
    "#);
}

#[test]
fn a_compaction_is_a_block_of_the_provider() {
    insta::assert_snapshot!(parts("compaction.sse"), @r#"
    [
      {
        "provider": {
          "provider": "anthropic",
          "kind": "compaction",
          "raw": {"type":"compaction","content":"So far: tea."}
        }
      },
      {
        "text": {
          "text": "Go on."
        }
      }
    ]
    "#);
}

#[test]
fn thinking_is_sealed_by_the_last_signature() {
    let (_, bytes) = fixtures(".sse").into_iter().find(|(file, _)| file == "thinking.sse").unwrap();
    let seals: Vec<_> = response(&bytes)
        .parts
        .into_iter()
        .filter_map(|part| match part {
            AssistantPart::Reasoning(thought) => thought.seal,
            AssistantPart::Text(_) | AssistantPart::ToolCall(_) | AssistantPart::Provider(_) | _ => None,
        })
        .collect();
    let provider = || "anthropic".to_owned();
    assert_eq!(
        seals,
        [
            Seal::Signature { provider: provider(), value: "bmV3LXNpZ25hdHVyZQ==".into() },
            Seal::Redacted { provider: provider(), data: "c2VhbGVk".into() }
        ]
    );
}

#[test]
fn stop_reasons_have_our_words() {
    use FinishKind as K;
    let check = |raw: &str, kind: FinishKind| {
        let delta = format!(r#"{{"type":"message_delta","delta":{{"stop_reason":{raw}}}}}"#);
        let finish = decode(&stream(&[&delta, r#"{"type":"message_stop"}"#])).finish.unwrap();
        assert_eq!(
            (finish.kind, finish.raw.as_str()),
            (kind, raw.trim_matches('"').trim_start_matches("null"))
        );
    };
    check(r#""end_turn""#, K::Stop);
    check(r#""stop_sequence""#, K::Stop);
    check(r#""tool_use""#, K::ToolCalls);
    check(r#""max_tokens""#, K::Length);
    check(r#""model_context_window_exceeded""#, K::ContextWindow);
    check(r#""refusal""#, K::Refusal);
    check(r#""pause_turn""#, K::Pause);
    check(r#""compaction""#, K::Other);
    check("null", K::Other);
}

#[test]
fn usage_is_reported_as_it_grows() {
    let bytes = stream(&[
        r#"{"type":"message_start","message":{"usage":{"input_tokens":25,"output_tokens":1}}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":null},"usage":{"output_tokens":10}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":15,"input_tokens":null}}"#,
        r#"{"type":"message_delta","delta":{},"usage":null}"#,
        r#"{"type":"message_stop"}"#,
    ]);
    let mut reported = Vec::new();
    for event in events(&bytes) {
        if let ModelEvent::Usage(usage) = event.unwrap() {
            reported.push((usage.input, usage.output));
        }
    }
    assert_eq!(reported, [(25, 1), (25, 10), (25, 15)]);
}

#[test]
fn what_the_provider_cleared_is_told() {
    /// The tokens that an answer with this management of the context tells, wherever it stands.
    #[track_caller]
    fn check(management: &str, expect: &[u64]) {
        let stop = r#"{"type":"message_stop"}"#;
        let delta = format!(
            r#"{{"type":"message_delta","delta":{{"stop_reason":"end_turn"}},"context_management":{management}}}"#
        );
        let start = format!(r#"{{"type":"message_start","message":{{"context_management":{management}}}}}"#);
        for said in [stream(&[&delta, stop]), stream(&[&start, stop])] {
            let events: Vec<_> = events(&said).into_iter().collect::<Result<_, _>>().unwrap();
            let told = events.iter().filter_map(|event| {
                let ModelEvent::Cleared { tokens } = event else { return None };
                Some(*tokens)
            });
            assert_eq!(told.collect::<Vec<_>>(), expect, "{management}");
        }
    }
    check(
        r#"{"applied_edits":[{"type":"clear_thinking_20251015","cleared_thinking_turns":2,"cleared_input_tokens":300},{"type":"clear_tool_uses_20250919","cleared_tool_uses":8,"cleared_input_tokens":50000}]}"#,
        &[50_300],
    );
    check(
        r#"{"applied_edits":[{"type":"new","cleared_input_tokens":"many"},{"cleared_input_tokens":7},3]}"#,
        &[7],
    );
    check(r#"{"applied_edits":[]}"#, &[]);
    check(r#"{"applied_edits":null}"#, &[]);
    check(r#"{"applied_edits":"none"}"#, &[]);
    check("{}", &[]);
    check("null", &[]);
}

#[test]
fn nonsensical_numbers_do_not_overflow() {
    const MOST: u64 = u64::MAX;
    /// Input, output and cache writes of an answer that reports this usage.
    #[track_caller]
    fn check(usage: &str, expect: (u64, u64, u64)) {
        let delta = format!(r#"{{"type":"message_delta","delta":{{}},"usage":{usage}}}"#);
        let decoded = decode(&stream(&[&delta, r#"{"type":"message_stop"}"#]));
        assert!(decoded.error.is_none(), "{decoded:?}");
        let usage = &decoded.usage;
        assert_eq!((usage.input, usage.output, usage.cache_write()), expect);
    }
    check(
        r#"{"input_tokens":18446744073709551615,"output_tokens":9007199254740993}"#,
        (MOST, (1 << 53) + 1, 0),
    );
    check(r#"{"input_tokens":18446744073709551616,"output_tokens":1e300}"#, (0, 0, 0));
    check(r#"{"input_tokens":-1,"output_tokens":"2.5e3"}"#, (0, 2_500, 0));
    check(
        r#"{"cache_creation":{"ephemeral_5m_input_tokens":18446744073709551615,"ephemeral_1h_input_tokens":2}}"#,
        (0, 0, MOST),
    );
    check(
        r#"{"iterations":[{"type":"message","input_tokens":18446744073709551615,"output_tokens":1},{"type":"compaction","input_tokens":1,"output_tokens":18446744073709551615}]}"#,
        (MOST, MOST, 0),
    );
    // The block after the last index there is takes its place.
    let blocks = [
        r#"{"type":"content_block_start","index":4294967295,"content_block":{"type":"text","text":"a"}}"#,
        r#"{"type":"content_block_start","content_block":{"type":"text","text":"b"}}"#,
        r#"{"type":"content_block_delta","index":4294967296,"delta":{"type":"text_delta","text":"c"}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    assert_eq!(decode(&stream(&blocks)).text, "abc");
}

#[test]
fn a_plain_body_larger_than_any_honest_one_ends_the_answer() {
    let mut decoder = StreamDecoder::new(&WireFormat::Anthropic.into(), ToolNames::default());
    assert!(decoder.push(&vec![b'['; 64 << 20]).is_empty());
    let error = decoder.push(b"[").pop().unwrap().unwrap_err();
    assert_eq!((error.kind, error.retryable), (ModelErrorKind::Protocol, false));
    assert!(error.message.contains("larger than 67108864 bytes"), "{error}");
    assert!(decoder.push(b"]").is_empty() && decoder.finish().is_empty());
}

#[test]
fn an_event_larger_than_the_limit_ends_the_answer() {
    let block = r#"{"type":"content_block_start","content_block":{"type":"text","text":"a long word"}}"#;
    let check = |limit: usize, expect: Option<ModelErrorKind>| {
        let mut decoder =
            StreamDecoder::with_event_limit(&WireFormat::Anthropic.into(), ToolNames::default(), limit);
        let events = decoder.push(&stream(&[block, r#"{"type":"message_stop"}"#]));
        assert_eq!(events.last().unwrap().as_ref().err().map(|error| error.kind), expect);
        assert_eq!(decoder.is_complete(), expect.is_none());
    };
    check(200, None);
    check(50, Some(ModelErrorKind::Protocol));
}

#[test]
fn strange_fields_are_taken() {
    let check = |event: &str, expect: fn(&Decoded) -> bool| {
        let bytes = stream(&[
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":7,"name":"f","input":null}}"#,
            event,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"message_stop"}"#,
        ]);
        let decoded = decode(&bytes);
        assert!(decoded.error.is_none() && expect(&decoded), "{event}: {decoded:?}");
    };
    let input = |decoded: &Decoded| decoded.calls[0].input.as_str().to_owned();
    check(r#"{"type":"ping"}"#, |d| d.calls[0].id.as_str() == "7");
    check(
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":{"a":1.0}}}"#,
        |d| d.calls[0].input.as_str() == r#"{"a":1.0}"#,
    );
    check(
        r#"{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":null,"text":5}}"#,
        |d| d.calls[0].input.as_str() == "{}",
    );
    check(r#"{"type":"error_report","index":"zero","delta":[],"usage":7}"#, |d| d.calls.len() == 1);
    assert_eq!(
        input(&decode(&stream(&[
            r#"{"type":"content_block_start","content_block":{"type":"tool_use","name":"f","input":"{\"s\":1}"}}"#,
            r#"{"type":"message_stop"}"#
        ]))),
        r#"{"s":1}"#,
        "input given as text"
    );
}

#[test]
fn the_name_of_an_event_serves_when_its_data_has_no_type() {
    let bytes = b"event: content_block_start\ndata: {\"content_block\":{\"type\":\"text\",\"text\":\"hi\"}}\n\nevent: message_stop\ndata: {}\n\n";
    assert_eq!(decode(bytes).text, "hi");
}

#[test]
fn a_broken_order_is_a_protocol_error() {
    let check = |events: &[&str]| {
        let error = decode(&stream(events)).error.unwrap();
        assert_eq!(error.kind, ModelErrorKind::Protocol, "{error}");
        assert!(error.message.len() < 400, "{error}");
    };
    check(&[r#"{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"x"}}"#]);
    check(&["[1,2]"]);
    check(&[&"x".repeat(5000)]);
    check(&[r#"{"type":"content_block_start","content_block":"text"}"#]);
    check(&[r#"{"type":"content_block_start","content_block":["text","hi"]}"#]);
}

#[test]
fn nothing_follows_an_error_or_the_end() {
    let mut decoder = StreamDecoder::new(&WireFormat::Anthropic.into(), ToolNames::default());
    assert!(decoder.push(&stream(&["nonsense"])).pop().unwrap().is_err());
    assert!(decoder.push(&stream(&[r#"{"type":"message_stop"}"#])).is_empty() && decoder.finish().is_empty());
    let mut decoder = StreamDecoder::new(&WireFormat::Anthropic.into(), ToolNames::default());
    assert!(decoder.push(&stream(&[r#"{"type":"message_stop"}"#])).pop().unwrap().is_ok());
    assert!(decoder.push(&stream(&["nonsense"])).is_empty() && decoder.finish().is_empty());
    assert!(decoder.interrupt("reset").is_empty(), "a connection that fails after the end fails nobody");
}

#[test]
fn tools_are_called_by_their_real_names() {
    let names = ToolNames::default();
    let wire = names.wire("calendar.respond").into_owned();
    let block = format!(
        r#"{{"type":"content_block_start","content_block":{{"type":"tool_use","id":"c","name":"{wire}"}}}}"#
    );
    let mut decoder = StreamDecoder::new(&WireFormat::Anthropic.into(), names);
    let mut builder = ResponseBuilder::default();
    for event in decoder.push(&stream(&[&block, r#"{"type":"message_stop"}"#])) {
        builder.take(event.unwrap());
    }
    assert_eq!(builder.finish().unwrap().calls().next().unwrap().name, "calendar.respond");
}

#[test]
fn a_part_behind_an_unfinished_call_waits_for_the_stop_reason() {
    let call = |index: u32, json: &str| {
        [
            format!(
                r#"{{"type":"content_block_start","index":{index},"content_block":{{"type":"tool_use","id":"c{index}","name":"f"}}}}"#
            ),
            format!(
                r#"{{"type":"content_block_delta","index":{index},"delta":{{"type":"input_json_delta","partial_json":{json}}}}}"#
            ),
            format!(r#"{{"type":"content_block_stop","index":{index}}}"#),
        ]
    };
    let inputs = |calls: Vec<[String; 3]>, reason: &str| {
        let delta = format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}}}}"#);
        let mut all: Vec<&str> = calls.iter().flatten().map(String::as_str).collect();
        all.extend([delta.as_str(), r#"{"type":"message_stop"}"#]);
        decode(&stream(&all)).calls.into_iter().map(|call| call.input).collect::<Vec<_>>()
    };
    let json = ToolInput::finished;
    assert_eq!(
        inputs(vec![call(0, r#""""#), call(1, r#""{\"a\":1}""#)], "max_tokens"),
        [json("{}"), json(r#"{"a":1}"#)],
        "a complete last call was not cut, and no other can be"
    );
    assert_eq!(
        inputs(vec![call(0, r#""{x""#), call(1, r#""{\"a""#)], "max_tokens"),
        [json("{x"), ToolInput::cut("{\"a")]
    );
    assert_eq!(inputs(vec![call(0, r#""{\"a""#)], "end_turn"), [ToolInput::Invalid("{\"a".into())]);
}
