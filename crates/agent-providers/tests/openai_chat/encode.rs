//! Requests of Chat Completions as bytes: in the words of each provider, and what was received goes back unchanged.

use agent_core::{
    AssistantPart, AssistantText, CacheProfile, ContentPart, Entry, EntryId, FilePart, FileSource, History,
    Mark, MarkPoint, ModelProfile, ProviderPart, RawJson, Rewrite, Text, ToolCall, ToolCard, ToolInput,
    ToolOutput, Ttl, UserMessage, UserPart,
};
use agent_providers::openai_chat::{CallIds, Quirks, SystemRole};
use agent_providers::{Catalog, Dialect, WireFormat, import_request};

use super::ask::{Ask, MARKED, call, data, history, item, messages, note, step, talk, thought, user, words};
use super::decode::response;

fn lines(text: &str) -> String {
    text.replace("},{\"role", "},\n{\"role").replace("],\"messages\"", "],\n\"messages\"")
}

#[test]
fn a_whole_request() {
    let ask = Ask { reminders: vec!["now"], ..Ask::full("openai-chat") };
    insta::assert_snapshot!(lines(&ask.text(&talk())), @r#"
    {"model":"oolong-2","tools":[{"type":"function","function":{"name":"look","description":"Looks.","parameters":{"properties":{},"type":"object"}}},{"type":"function","function":{"name":"notes_add_e1253ccd","parameters":{"properties":{},"type":"object"}}}],
    "messages":[{"role":"system","content":[{"type":"text","text":"Be brief."},{"type":"text","text":"Be kind."}]},
    {"role":"user","content":"go"},
    {"role":"assistant","content":"ok","tool_calls":[{"id":"call_a","type":"function","function":{"name":"look","arguments":"{}"}},{"id":"call_b","type":"function","function":{"name":"notes_add_e1253ccd","arguments":"{\"z\":12345678901234567890,\"a\":1.0}"}}]},
    {"role":"tool","tool_call_id":"call_a","content":"seen"},
    {"role":"tool","tool_call_id":"call_b","content":"no"},
    {"role":"user","content":"mind the step"},
    {"role":"user","content":"and then?"},
    {"role":"user","content":"now"}],"stream":true,"stream_options":{"include_usage":true}}
    "#);
}

#[test]
fn each_provider_is_written_to_in_its_words() {
    let said = |provider: &'static str| lines(&Ask { system: vec![], ..Ask::full(provider) }.text(&talk()));
    insta::assert_snapshot!(messages(&said("deepseek")), @r#"
    [{"role":"user","content":"go"},
    {"role":"assistant","content":"ok","reasoning_content":"Both.","tool_calls":[{"id":"call_a","type":"function","function":{"name":"look","arguments":"{}"}},{"id":"call_b","type":"function","function":{"name":"notes_add_e1253ccd","arguments":"{\"z\":12345678901234567890,\"a\":1.0}"}}]},
    {"role":"tool","tool_call_id":"call_a","content":"seen"},
    {"role":"tool","tool_call_id":"call_b","content":"no"},
    {"role":"user","content":"mind the step"},
    {"role":"user","content":"and then?"}]
    "#);
    insta::assert_snapshot!(messages(&said("mistral")), @r#"
    [{"role":"user","content":"go"},
    {"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"Both."}]},{"type":"text","text":"ok"}],"tool_calls":[{"id":"pC1IZw3T5","type":"function","function":{"name":"look","arguments":"{}"}},{"id":"2xdrO6OHs","type":"function","function":{"name":"notes_add_e1253ccd","arguments":"{\"z\":12345678901234567890,\"a\":1.0}"}}]},
    {"role":"tool","tool_call_id":"pC1IZw3T5","content":"seen"},
    {"role":"tool","tool_call_id":"2xdrO6OHs","content":"no"},
    {"role":"user","content":"mind the step"},
    {"role":"user","content":"and then?"}]
    "#);
    insta::assert_snapshot!(messages(&said("groq")), @r#"
    [{"role":"user","content":"go"},
    {"role":"assistant","content":"ok","reasoning":"Both.","tool_calls":[{"id":"call_a","type":"function","function":{"name":"look","arguments":"{}"}},{"id":"call_b","type":"function","function":{"name":"notes_add_e1253ccd","arguments":"{\"z\":12345678901234567890,\"a\":1.0}"}}]},
    {"role":"tool","tool_call_id":"call_a","content":"seen"},
    {"role":"tool","tool_call_id":"call_b","content":"no"},
    {"role":"user","content":"mind the step"},
    {"role":"user","content":"and then?"}]
    "#);
    insta::assert_snapshot!(messages(&said("llamacpp")), @r#"
    [{"role":"user","content":[{"type":"text","text":"go"}]},
    {"role":"assistant","content":"ok","reasoning_content":"Both.","tool_calls":[{"id":"call_a","type":"function","function":{"name":"look","arguments":"{}"}},{"id":"call_b","type":"function","function":{"name":"notes_add_e1253ccd","arguments":"{\"z\":12345678901234567890,\"a\":1.0}"}}]},
    {"role":"tool","tool_call_id":"call_a","content":"seen"},
    {"role":"tool","tool_call_id":"call_b","content":"no"},
    {"role":"user","content":[{"type":"text","text":"mind the step"},{"type":"text","text":"and then?"}]}]
    "#);
    insta::assert_snapshot!(messages(&said("openrouter")), @r#"
    [{"role":"user","content":[{"type":"text","text":"go"}]},
    {"role":"assistant","content":[{"type":"text","text":"ok"}],"reasoning":"Both.","tool_calls":[{"id":"call_a","type":"function","function":{"name":"look","arguments":"{}"}},{"id":"call_b","type":"function","function":{"name":"notes_add_e1253ccd","arguments":"{\"z\":12345678901234567890,\"a\":1.0}"}}]},
    {"role":"tool","tool_call_id":"call_a","content":[{"type":"text","text":"seen"}]},
    {"role":"tool","tool_call_id":"call_b","content":[{"type":"text","text":"no"}]},
    {"role":"user","content":[{"type":"text","text":"mind the step"}]},
    {"role":"user","content":[{"type":"text","text":"and then?"}]}]
    "#);
    insta::assert_snapshot!(messages(&said("unheard-of")), @r#"
    [{"role":"user","content":"go"},
    {"role":"assistant","content":"ok","tool_calls":[{"id":"call_a","type":"function","function":{"name":"look","arguments":"{}"}},{"id":"call_b","type":"function","function":{"name":"notes_add_e1253ccd","arguments":"{\"z\":12345678901234567890,\"a\":1.0}"}}]},
    {"role":"tool","tool_call_id":"call_a","content":"seen"},
    {"role":"tool","tool_call_id":"call_b","content":"no"},
    {"role":"user","content":"mind the step"},
    {"role":"user","content":"and then?"}]
    "#);
}

#[test]
fn the_system_prompt_has_the_role_and_the_form_the_provider_takes() {
    let check = |quirks: Quirks, expect: &str| {
        let sent = Ask { quirks, ..Ask::full("openai-chat") }.text(&history(vec![user("go")]));
        assert!(sent.contains(expect), "{sent}");
    };
    check(
        Quirks::default(),
        r#""messages":[{"role":"system","content":"Be brief.\n\nBe kind."},{"role":"user""#,
    );
    check(
        Quirks { text_lists: true, system: SystemRole::Developer, ..Quirks::default() },
        r#"{"role":"developer","content":[{"type":"text","text":"Be brief."},{"type":"text","text":"Be kind."}]},"#,
    );
    let alone = Ask::full("openai-chat").text(&History::new());
    assert!(alone.contains(r#""text":"Be kind."}]}],"stream""#), "{alone}");
}

#[test]
fn markers_stand_on_parts_where_the_provider_takes_them() {
    let mark = |at: MarkPoint| Mark { at, ttl: Ttl::FiveMinutes };
    let marks = vec![
        mark(MarkPoint::System(0)),
        mark(MarkPoint::Entry(EntryId::at(1))),
        mark(MarkPoint::Entry(EntryId::at(3))),
    ];
    let check = |provider: &'static str, marker: &str| {
        let full = || {
            let ask = Ask::full(provider);
            Ask { profile: ModelProfile { cache: MARKED, ..ask.profile.clone() }, ..ask }
        };
        let sent = Ask { marks: marks.clone(), ..full() }.text(&talk());
        let system = format!(r#""text":"Be brief."{marker}}},{{"type":"text","text":"Be kind."}}]"#);
        assert!(sent.contains(&system), "{sent}");
        assert_eq!(sent.matches(&format!("{marker}}}]")).count(), 2, "{sent}");
        assert_eq!(sent.replace(marker, ""), full().text(&talk()));
    };
    check("openrouter", r#","cache_control":{"type":"ephemeral"}"#);
    check("openai-chat", r#","prompt_cache_breakpoint":{"mode":"explicit"}"#);
    let (sent, notes) = Ask { marks, ..Ask::full("groq") }.told(&talk());
    assert!(!sent.contains("cache_control") && notes.len() == 3, "{notes:?}");
    let profile = ModelProfile { cache: CacheProfile::Automatic, ..Ask::bare("openrouter").profile };
    let ask = Ask { marks: vec![mark(MarkPoint::System(0))], profile, ..Ask::full("openrouter") };
    assert!(!ask.told(&talk()).0.contains("cache_control"));
}

#[test]
fn breakpoints_and_the_lists_they_need_are_sent_only_to_models_that_know_them() {
    let sent = |model: &str| {
        let profile = Catalog::builtin().profile("openai-chat", model);
        let marks = vec![Mark { at: MarkPoint::Entry(EntryId::at(0)), ttl: Ttl::OneHour }];
        let (sent, told) =
            Ask { profile, marks, ..Ask::bare("openai-chat") }.told(&history(vec![user("go")]));
        (
            sent.split_once(r#""messages":"#).unwrap().1.split_once(r#","stream""#).unwrap().0.to_owned(),
            told.len(),
        )
    };
    let list = r#"[{"role":"user","content":[{"type":"text","text":"go","prompt_cache_breakpoint":{"mode":"explicit"}}]}]"#;
    let plain = r#"[{"role":"user","content":"go"}]"#;
    for (model, expect) in [
        ("gpt-5.6-sol", (list, 0)),
        ("gpt-6-luna", (list, 0)),
        ("gpt-6.1-sol-2026-10-01", (list, 0)),
        ("gpt-5.5", (plain, 1)),
        ("gpt-4o", (plain, 1)),
    ] {
        let (words, told) = sent(model);
        assert_eq!((words.as_str(), told), expect, "{model}");
    }
}

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
fn nothing_blank_is_sent() {
    let log = history(vec![
        user("a"),
        step(vec![], vec![]),
        user("b"),
        step(vec![thought("hm")], vec![]),
        user("c"),
    ]);
    for provider in ["openai-chat", "mistral", "deepseek", "llamacpp", "openrouter", "unheard-of"] {
        let sent = Ask::bare(provider).text(&log);
        assert_eq!(sent.matches("(no content)").count(), 2, "{sent}");
        assert!(!sent.contains(r#""content":"""#) && !sent.contains(r#""content":[]"#), "{sent}");
    }
}

/// A call as a client sent it that never judged its input.
fn stored_null(id: &str) -> AssistantPart {
    let AssistantPart::ToolCall(call) = call(id, "look", "{}") else { panic!("{id} is a call") };
    AssistantPart::ToolCall(ToolCall { input: ToolInput::Json(RawJson::parse("null").unwrap()), ..call })
}

#[test]
fn names_and_ids_are_those_of_the_provider() {
    let log = history(vec![
        user("go"),
        step(
            vec![call("toolu_0123456789~2", "\u{65e5}\u{5386}", "{}"), stored_null("aB3dE6gH9")],
            vec![ToolOutput::text("a"), ToolOutput::text("b")],
        ),
    ]);
    let long = |provider: &'static str| Ask::bare(provider).text(&log);
    for (sent, grammar) in [(long("mistral"), CallIds::Nine), (long("openai-chat"), CallIds::Short)] {
        let body: serde_json::Value = serde_json::from_str(&sent).unwrap();
        let (said, first, second) = (&body["messages"][1], &body["messages"][2], &body["messages"][3]);
        let ids = [&said["tool_calls"][0]["id"], &said["tool_calls"][1]["id"]].map(|id| id.as_str().unwrap());
        assert_eq!(ids, [&first["tool_call_id"], &second["tool_call_id"]].map(|id| id.as_str().unwrap()));
        assert_eq!(ids[1], "aB3dE6gH9");
        let good = |c: char| c.is_ascii_alphanumeric() || grammar == CallIds::Short && matches!(c, '_' | '-');
        assert!(ids[0].chars().all(good) && ids[0].len() <= 40, "{ids:?}");
        assert_eq!(ids[0].len() == 9, grammar == CallIds::Nine, "{ids:?}");
        assert_eq!(said["tool_calls"][1]["function"]["arguments"], "null", "what was sent stays");
        assert_eq!(
            Ask::bare(if grammar == CallIds::Nine { "mistral" } else { "openai-chat" }).text(&log),
            sent
        );
    }
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

fn image(source: FileSource) -> FilePart {
    FilePart { media_type: "image/png".into(), source, name: None }
}

#[test]
fn images_of_results_follow_behind_all_results() {
    let shot = || {
        ToolOutput::Content(vec![
            ContentPart::Text(Text::new("screenshot").unwrap()),
            ContentPart::File(image(FileSource::Base64("AA==".into()))),
        ])
    };
    let log = history(vec![
        user("go"),
        step(
            vec![call("call_a", "look", "{}"), call("call_b", "look", "{}")],
            vec![shot(), ToolOutput::text("seen")],
        ),
        user("on"),
    ]);
    insta::assert_snapshot!(lines(messages(&Ask::bare("openai-chat").text(&log))), @r#"
    [{"role":"user","content":"go"},
    {"role":"assistant","content":null,"tool_calls":[{"id":"call_a","type":"function","function":{"name":"look","arguments":"{}"}},{"id":"call_b","type":"function","function":{"name":"look","arguments":"{}"}}]},
    {"role":"tool","tool_call_id":"call_a","content":[{"type":"text","text":"screenshot"},{"type":"text","text":"[image/png: shown in the next message]"}]},
    {"role":"tool","tool_call_id":"call_b","content":"seen"},
    {"role":"user","content":[{"type":"text","text":"[image/png of call_a]"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]},
    {"role":"user","content":"on"}]
    "#);
    let inside = Ask::bare("llamacpp").text(&log);
    assert!(inside.contains(r#"{"type":"text","text":"screenshot"},{"type":"image_url""#), "{inside}");
    let blind = ModelProfile { vision: false, ..Ask::bare("openai-chat").profile };
    let (sent, notes) = Ask { profile: blind, ..Ask::bare("openai-chat") }.told(&log);
    assert!(sent.contains("[image/png: not sent, the model does not see images]"), "{sent}");
    assert!(!sent.contains("image_url") && notes.len() == 1, "{notes:?}");
}

#[test]
fn files_of_users() {
    let with = |file: FilePart| {
        let parts = vec![UserPart::Text(Text::new("see").unwrap()), UserPart::File(file)];
        history(vec![Entry::User(UserMessage::new(parts).unwrap())])
    };
    let sent = Ask::bare("openai-chat").text(&with(image(FileSource::Url("https://a.example/b".into()))));
    assert!(
        sent.contains(r#""content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"https://a.example/b"}}]"#),
        "{sent}"
    );
    let (sent, notes) = Ask::bare("deepseek").told(&with(image(FileSource::Base64("AA==".into()))));
    assert!(sent.contains(r#""content":"see\n\n[image/png: not sent"#) && notes.len() == 1, "{sent}");
}

#[test]
fn tools_carry_what_their_provider_takes() {
    let schema = RawJson::parse(r#"{"type":"object"}"#).unwrap();
    let strict = |provider: &str| {
        let fields = data(provider, r#"{"function":{"strict":true},"defer":1.0}"#);
        ToolCard::new("look", "Looks.", &schema).unwrap().with_data(fields).unwrap()
    };
    let hosted =
        |provider: &str| ToolCard::hosted("web", data(provider, r#"{"type":"web","n":1.0}"#)).unwrap();
    let check = |provider: &'static str, tool: ToolCard, expect: &str, notes: usize| {
        let (sent, told) = Ask { tools: vec![tool], ..Ask::bare(provider) }.told(&talk());
        assert!(sent.contains(expect) && told.len() == notes, "{sent} {told:?}");
    };
    let entry = r#""tools":[{"type":"function","function":{"name":"look","description":"Looks.","parameters":{"properties":{},"type":"object"}"#;
    check("openai-chat", strict("openai-chat"), &format!(r#"{entry},"strict":true}},"defer":1.0}}],"#), 0);
    check("openai-chat", strict("else"), &format!("{entry}}}}}],"), 1);
    check("llamacpp", strict("llamacpp"), &format!(r#"{entry}}},"defer":1.0}}],"#), 1);
    check("groq", hosted("groq"), r#""tools":[{"type":"web","n":1.0}],"#, 0);
    check("groq", hosted("else"), r#"{"model":"oolong-2","messages":"#, 1);
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

#[test]
fn documents_of_text_are_sent_in_their_words() {
    let document = |data: &str, name: Option<&str>| {
        let (media_type, source) = ("text/csv".to_owned(), FileSource::Base64(data.into()));
        FilePart { media_type, source, name: name.map(str::to_owned) }
    };
    let said = vec![UserPart::File(document("YSxi", None)), UserPart::File(document("Yw==", Some("c.csv")))];
    let shown = ToolOutput::Content(vec![ContentPart::File(document("ZA==", None))]);
    let log = history(vec![
        Entry::User(UserMessage::new(said).unwrap()),
        step(vec![call("call_a", "look", "{}")], vec![shown]),
    ]);
    let sent = Ask::bare("deepseek").text(&log);
    assert!(sent.contains(r#"{"role":"user","content":"a,b\n\nc.csv:\nc"}"#), "{sent}");
    assert!(sent.contains(r#""tool_call_id":"call_a","content":"d"}"#), "{sent}");
}

#[test]
fn a_beginning_is_marked_where_the_provider_goes_on_with_it() {
    let check = |provider: &'static str, expect: &str| {
        let begun = AssistantText {
            text: Text::new("Dear").unwrap(),
            data: Some(data(provider, r#"{"prefix":true}"#)),
        };
        let log = history(vec![user("go"), step(vec![AssistantPart::Text(begun)], vec![])]);
        let (sent, _) = Ask::bare(provider).told(&log);
        assert!(sent.contains(expect), "{sent}");
    };
    check("mistral", r#"{"role":"assistant","content":"Dear","prefix":true}]"#);
    check("deepseek", r#"{"role":"assistant","content":"Dear","prefix":true}]"#);
    check("openai-chat", r#"{"role":"assistant","content":"Dear"}]"#);
}

#[test]
fn users_are_joined_where_templates_want_it() {
    let log = history(vec![user("a"), note("b"), step(vec![words("c")], vec![]), user("d")]);
    let sent = Ask { reminders: vec!["e"], ..Ask::bare("llamacpp") }.text(&log);
    insta::assert_snapshot!(lines(messages(&sent)), @r#"
    [{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
    {"role":"assistant","content":"c"},
    {"role":"user","content":[{"type":"text","text":"d"},{"type":"text","text":"e"}]}]
    "#);
    let sent = Ask { reminders: vec!["e"], ..Ask::bare("openai-chat") }.text(&log);
    assert_eq!(sent.matches(r#"{"role":"user","content":""#).count(), 4, "{sent}");
}
