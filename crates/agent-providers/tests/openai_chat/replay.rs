//! What was received goes back as it came to whom it came from, and of others only what they can read.

use agent_core::{
    AssistantPart, AssistantText, Entry, EntryId, History, ProviderPart, RawJson, Rewrite, Text, ToolCall,
    ToolInput, ToolOutput,
};
use agent_providers::openai_chat::Quirks;
use agent_providers::{Dialect, WireFormat, import_request};

use super::ask::{Ask, call, data, history, item, lines, messages, step, thought, user, words};
use super::decode::response;

#[test]
fn thinking_goes_back_to_the_provider_that_wants_it() {
    let check = |provider: &'static str, part: AssistantPart, expect: &str| {
        let log = history(vec![user("go"), step(vec![part, words("hi")], vec![]), user("on")]);
        let (sent, notes) = Ask::bare(provider).told(&log);
        let said = sent.split(r#"{"role":""#).nth(2).unwrap();
        assert_eq!(said, expect, "{provider}");
        assert!(notes.iter().all(|told| told.why.contains(" sealed means nothing")), "{notes:?}");
    };
    let plain = r#"assistant","content":"hi"},"#;
    check("openai-chat", thought("hm"), plain);
    check("unheard-of", thought("hm"), plain);
    check("deepseek", thought("hm"), r#"assistant","content":"hi","reasoning_content":"hm"},"#);
    check("groq", thought("hm"), r#"assistant","content":"hi","reasoning":"hm"},"#);
    check(
        "mistral",
        thought("hm"),
        r#"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"hi"}]},"#,
    );
    let raw = r#"{"type":"reasoning.text", "text":"hm","n":1.0,"signature":"s"}"#;
    let listed = r#"assistant","content":[{"type":"text","text":"hi"}]"#;
    check("openrouter", item("openrouter", raw), &format!(r#"{listed},"reasoning_details":[{raw}]}},"#));
    check("openrouter", item("else", raw), &format!("{listed}}},"));
    check("openrouter", thought("hm"), &format!(r#"{listed},"reasoning":"hm"}},"#));
    check("deepseek", item("openrouter", raw), plain);
    let others =
        step(vec![item("openrouter", raw), call("call_a", "look", "{}")], vec![ToolOutput::text("r")]);
    let log = history(vec![user("go"), others]);
    assert!(
        Ask::bare("deepseek").told(&log).0.contains(r#""content":"","reasoning_content":"","tool_calls""#)
    );
    assert!(!Ask::bare("llamacpp").told(&log).0.contains("reasoning_content"));
}

#[test]
fn a_rewrite_takes_thinking_and_long_results_out() {
    let long = "x".repeat(100);
    let mut log = history(vec![
        user("go"),
        step(vec![thought("hm"), call("call_a", "look", "{}")], vec![ToolOutput::text(long.as_str())]),
        user("on"),
    ]);
    log.push(Entry::Boundary(Rewrite::Cleared {
        results_to: EntryId::at(2),
        keep_bytes: 10,
        strip_reasoning: false,
        offloaded: false,
    }))
    .unwrap();
    log.push(Entry::Boundary(Rewrite::Summary {
        text: Text::new("We looked.").unwrap(),
        kept_from: EntryId::at(1),
        strip_reasoning: true,
    }))
    .unwrap();
    insta::assert_snapshot!(lines(messages(&Ask::bare("deepseek").text(&log))), @r#"
    [{"role":"user","content":"The conversation so far was summarised to save space. The summary follows."},
    {"role":"assistant","content":"We looked."},
    {"role":"assistant","content":"","reasoning_content":"","tool_calls":[{"id":"call_a","type":"function","function":{"name":"look","arguments":"{}"}}]},
    {"role":"tool","tool_call_id":"call_a","content":"xxxxx\n[90 bytes removed]\nxxxxx"},
    {"role":"user","content":"on"}]
    "#);
    let mut log = history(vec![user("go"), step(vec![words("hi")], vec![])]);
    log.push(Entry::Boundary(Rewrite::Summary {
        text: Text::new("We talked.").unwrap(),
        kept_from: EntryId::at(2),
        strip_reasoning: false,
    }))
    .unwrap();
    insta::assert_snapshot!(lines(messages(&Ask::bare("deepseek").text(&log))), @r#"
    [{"role":"user","content":"The conversation so far was summarised to save space. The summary follows."},
    {"role":"assistant","content":"We talked."},
    {"role":"user","content":"Continue."}]
    "#);
}

#[test]
fn inputs_go_back_as_they_came() {
    let check = |input: ToolInput, expect: &str| {
        let call = ToolCall { id: agent_core::CallId::positional(0), name: "f".into(), input, data: None };
        let log =
            history(vec![user("go"), step(vec![AssistantPart::ToolCall(call)], vec![ToolOutput::text("r")])]);
        let body: serde_json::Value = serde_json::from_str(&Ask::bare("openai-chat").text(&log)).unwrap();
        assert_eq!(body["messages"][1]["tool_calls"][0]["function"]["arguments"], expect);
    };
    check(
        ToolInput::finished(r#"{ "b":1.0,"a":12345678901234567890 }"#),
        r#"{ "b":1.0,"a":12345678901234567890 }"#,
    );
    check(ToolInput::finished("[1]"), "[1]");
    check(ToolInput::finished("{\"a"), r#"{"invalid_json":"{\"a"}"#);
    check(ToolInput::cut(""), r#"{"invalid_json":""}"#);
    check(ToolInput::finished(r#"{"a":"\ud83d"}"#), "{\"a\":\"\u{fffd}\"}");
}

/// The answer in this fixture, stored, loaded and sent again, holds exactly these bytes.
#[track_caller]
fn check_replay(provider: &'static str, name: &str, exact: &[&str]) {
    let mut said = response(name);
    said.parts.iter_mut().for_each(|part| rename(part, provider));
    let outputs = said.calls().map(|_| ToolOutput::text("r")).collect();
    let entries = vec![user("go"), step(said.parts, outputs), user("on")];
    let live = Ask::bare(provider).text(&history(entries.clone()));
    for bytes in exact {
        assert!(live.contains(bytes), "{bytes}\n{live}");
    }
    let stored: Vec<RawJson> = entries.iter().map(|entry| RawJson::of(entry).unwrap()).collect();
    let (loaded, repairs) = History::load(&stored).unwrap();
    assert_eq!((Ask::bare(provider).text(&loaded), repairs.len()), (live.clone(), 0), "stored and loaded");
    let dialect =
        Dialect { format: WireFormat::OpenAiChat, provider: provider.into(), quirks: Quirks::of(provider) };
    let imported = import_request(&dialect, live.as_bytes()).unwrap();
    assert_eq!(Ask::bare(provider).text(&imported.history), live, "recorded and imported");
}

/// Fixtures are decoded under the name of the format.
fn rename(part: &mut AssistantPart, provider: &str) {
    let text = serde_json::to_string(part).unwrap();
    *part = serde_json::from_str(&text.replace(r#""openai-chat""#, &format!("{provider:?}"))).unwrap();
}

#[test]
fn what_was_received_goes_back_byte_for_byte() {
    check_replay(
        "openai-chat",
        "calls.sse",
        &[r#""arguments":"{\"z\":12345678901234567890,\"a\":1.0,\"u\":\"\\u00e9\"}""#],
    );
    check_replay(
        "openai-chat",
        "call_fields.sse",
        &[r#""extra_content":{"google":{"thought_signature":"c2ln"}}"#],
    );
    check_replay(
        "openai-chat",
        "call_custom.sse",
        &[r#""type":"custom","custom":{"name":"recipe","input":"Boil \"water\", then wait."}"#],
    );
    check_replay("openai-chat", "audio.sse", &[r#""audio":{"id":"audio_f1"}"#]);
    check_replay("openai-chat", "refusal.sse", &[r#""refusal":"I cannot brew that.""#]);
    check_replay("deepseek", "reasoning_content.sse", &[r#""reasoning_content":"Two cups and two.""#]);
    check_replay(
        "openrouter",
        "reasoning_details.sse",
        &[
            r#""reasoning_details":[{"type":"reasoning.text","text":"Warm the pot.","format":"f-1","index":0,"signature":"c2lnbmVk"},{"type":"reasoning.encrypted","data":"c2VhbGVk","id":"rs_f1","index":1}]"#,
        ],
    );
    check_replay(
        "mistral",
        "thinking_parts.sse",
        &[
            r#"[{"type":"thinking","thinking":[{"type":"text","text":"Count the leaves."}]},{"type":"text","text":"Seven leaves in all"},{"type":"reference","reference_ids":[1,2]},{"type":"text","text":"."}]"#,
        ],
    );
}

#[test]
fn parts_of_others_are_left_out_with_a_word() {
    let block = ProviderPart {
        provider: "anthropic".into(),
        kind: "server_tool_use".into(),
        raw: RawJson::parse("{}").unwrap(),
    };
    let cited =
        AssistantText { text: Text::new("hi").unwrap(), data: Some(data("anthropic", r#"[{"url":"a"}]"#)) };
    let log = history(vec![
        user("go"),
        step(vec![AssistantPart::Text(cited), AssistantPart::Provider(block)], vec![]),
        user("on"),
    ]);
    let (sent, notes) = Ask::bare("openai-chat").told(&log);
    assert!(sent.contains(r#"{"role":"assistant","content":"hi"}"#), "{sent}");
    let what: Vec<&str> = notes.iter().map(|told| told.what.as_str()).collect();
    assert_eq!(what, ["assistant.words", "assistant.provider_part"]);
    assert!(notes.iter().all(|told| told.why.contains("means nothing to this provider")), "{notes:?}");
}

#[test]
fn parts_that_our_types_do_not_have_go_back_as_they_came() {
    let parts = concat!(
        r#"{"type":"image_url","image_url":{"url":"https://a.example/b","detail":"high"}},"#,
        r#"{"type":"file","file":{"file_id":"f","filename":"a.pdf"}},"#,
        r#"{"type":"hologram","n":1.0,"deep":12345678901234567890}"#
    );
    let calls = r#"[{"id":"call_a","type":"function","function":{"name":"look","arguments":"{}"}}]"#;
    let body = format!(
        r#"{{"model":"m","messages":[{{"role":"user","content":[{parts}]}},{{"role":"assistant","content":null,"tool_calls":{calls}}},{{"role":"tool","tool_call_id":"call_a","content":[{parts}]}}]}}"#
    );
    let imported = import_request(&WireFormat::OpenAiChat.into(), body.as_bytes()).unwrap();
    assert_eq!(imported.diagnostics, []);
    let mut log = imported.history;
    assert_eq!(Ask::bare("openai-chat").text(&log).matches(parts).count(), 2, "as they came, in both places");
    let (sent, notes) = Ask::bare("groq").told(&log);
    assert!(!sent.contains("hologram"), "{sent}");
    let notes: Vec<&str> = notes.iter().map(|note| note.what.as_str()).collect();
    assert_eq!(notes, [["message.part"; 3], ["tool_result.part"; 3]].concat());
    log.push(user("on")).unwrap();
    let cleared = Rewrite::Cleared {
        results_to: EntryId::at(2),
        keep_bytes: 60,
        strip_reasoning: false,
        offloaded: false,
    };
    log.push(Entry::Boundary(cleared)).unwrap();
    let (sent, _) = Ask::bare("openai-chat").told(&log);
    assert!(sent.contains("[image_url, 78 bytes removed]") && sent.contains(parts), "{sent}");
}
