//! Requests of Chat Completions as bytes, in the words of each provider.

use agent_core::{
    AssistantPart, AssistantText, CacheProfile, EntryId, History, Mark, MarkPoint, ModelProfile, RawJson,
    Text, ToolCall, ToolCard, ToolInput, ToolOutput, Ttl,
};
use agent_providers::Catalog;
use agent_providers::openai_chat::{CallIds, Quirks, SystemRole};

use super::ask::{Ask, MARKED, call, data, history, lines, messages, note, step, talk, thought, user, words};

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
