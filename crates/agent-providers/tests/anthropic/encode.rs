//! Requests as bytes: one form for everything, and what is received goes back unchanged.

use agent_core::{
    AssistantPart, ContentPart, Entry, EntryId, FilePart, FileSource, History, Mark, MarkPoint, ModelProfile,
    Note, NoteKind, ProviderPart, RawJson, Reasoning, Rewrite, Seal, Text, ToolOutput, Ttl, UserMessage,
    UserPart,
};
use agent_providers::{WireFormat, import_request};

use super::ask::{
    Ask, call, encoder, encoder_of, history, messages, note, profile, step, talk, text, user, words,
};
use crate::support::{fixtures, response};

#[test]
fn a_whole_request() {
    let ask = Ask {
        marks: vec![
            Mark { at: MarkPoint::Tools, ttl: Ttl::OneHour },
            Mark { at: MarkPoint::System(0), ttl: Ttl::OneHour },
            Mark { at: MarkPoint::Entry(EntryId::at(1)), ttl: Ttl::FiveMinutes },
            Mark { at: MarkPoint::Entry(EntryId::at(3)), ttl: Ttl::FiveMinutes },
        ],
        reminders: vec!["now"],
        ..Ask::default()
    };
    let encoded = ask.fresh(&talk());
    assert_eq!(encoded.diagnostics, []);
    insta::assert_snapshot!(text(&encoded.request.body).replace("},{", "},\n{"), @r#"
    {"model":"claude-sonnet-4-6","system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral","ttl":"1h"}},
    {"type":"text","text":"Be kind."}],"tools":[{"name":"look","description":"Looks.","input_schema":{"type":"object"}},
    {"name":"notes_add_e1253ccd","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral","ttl":"1h"}}],"messages":[{"role":"user","content":[{"type":"text","text":"go"}]},
    {"role":"assistant","content":[{"type":"text","text":"ok"},
    {"type":"tool_use","id":"a","name":"look","input":{}},
    {"type":"tool_use","id":"b","name":"notes_add_e1253ccd","input":{"z":1.0,"a":2}}]},
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"seen"},
    {"type":"tool_result","tool_use_id":"b","content":"no","is_error":true,"cache_control":{"type":"ephemeral"}},
    {"type":"text","text":"mind the step"},
    {"type":"text","text":"and then?","cache_control":{"type":"ephemeral"}},
    {"type":"text","text":"now"}]}],"max_tokens":100,"stream":true}
    "#);
}

#[test]
fn roles_alternate_and_results_come_first() {
    let check = |entries: Vec<Entry>, expect: &str| {
        let sent = Ask::bare().text(&history(entries));
        let roles: Vec<&str> = messages(&sent).split(r#"{"role":""#).skip(1).map(|part| &part[..1]).collect();
        assert_eq!(roles.concat(), expect, "{sent}");
    };
    check(vec![user("a"), user("b"), note("c")], "u");
    check(vec![user("a"), step(vec![words("b")], vec![]), step(vec![words("c")], vec![]), user("d")], "uau");
    check(vec![step(vec![words("b")], vec![]), user("d")], "uau");
    check(
        vec![
            user("a"),
            step(vec![call("x", "look", "{}")], vec![ToolOutput::text("r")]),
            note("n"),
            step(vec![], vec![]),
        ],
        "uaua",
    );
}

#[test]
fn a_summary_stands_for_what_it_covers() {
    let mut log = talk();
    log.push(Entry::Boundary(Rewrite::Summary {
        text: Text::new("We looked.").unwrap(),
        kept_from: EntryId::at(4),
        strip_reasoning: true,
    }))
    .unwrap();
    insta::assert_snapshot!(messages(&Ask::bare().text(&log)).replace("]},", "]},\n"), @r#"
    [{"role":"user","content":[{"type":"text","text":"The conversation so far was summarised to save space. The summary follows."}]},
    {"role":"assistant","content":[{"type":"text","text":"We looked."}]},
    {"role":"user","content":[{"type":"text","text":"Continue."}]}]
    "#);
}

/// Who speaks in which message: `s` the system, `t` the system for this turn.
#[test]
fn a_note_for_the_turn_is_a_system_message_that_is_cleared() {
    let turn =
        |words: &str| Entry::Note(Note { kind: NoteKind::TurnScoped, text: Text::new(words).unwrap() });
    let said = || step(vec![words("b")], vec![]);
    let looked = || step(vec![call("x", "look", "{}")], vec![ToolOutput::text("r")]);
    let header = ("anthropic-beta".to_owned(), "mid-conversation-system-clear-at-2026-08-21".to_owned());
    let check = |entries: Vec<Entry>, reminders: &[&'static str], expect: &str, is_lost: bool| {
        let ask = Ask { reminders: reminders.to_vec(), ..Ask::bare() };
        let encoded = ask.encode(&mut *encoder_of(profile("claude-opus-5-5")), &history(entries));
        let sent = text(&encoded.request.body);
        let cleared = r#"{"role":"system","clear_at":"next_user_message","content":["#;
        let roles = messages(&sent).replace(cleared, r#"{"role":"t"#);
        let roles: Vec<&str> = roles.split(r#"{"role":""#).skip(1).map(|part| &part[..1]).collect();
        assert_eq!(roles.concat(), expect, "{sent}");
        assert_eq!(encoded.request.headers.contains(&header), expect.contains('t'), "{expect}");
        let told = encoded.diagnostics.iter().any(|told| told.what == "note");
        assert_eq!(told, is_lost, "{expect}: {:?}", encoded.diagnostics);
    };
    check(vec![user("a"), turn("n")], &[], "ut", false);
    check(vec![user("a"), turn("n"), turn("m")], &["now"], "ut", false);
    check(vec![user("a"), turn("n"), said(), user("c")], &[], "utau", false);
    check(vec![user("a"), looked(), turn("n"), said(), user("c")], &["now"], "uautaus", false);
    // Where it cannot stand, or beside words that stay, it stays too.
    check(vec![user("a"), said(), turn("n")], &[], "uau", true);
    check(vec![user("a"), turn("n"), user("b")], &[], "u", true);
    check(vec![user("a"), note("m"), turn("n"), said()], &[], "usa", true);
    check(vec![user("a"), turn("n"), note("m")], &["now"], "us", true);
    check(vec![user("a"), note("m")], &["now"], "us", false);
    check(vec![turn("n")], &[], "u", true);
    // What a summary covers is in the request no more.
    let rewrite = |at| Rewrite::Summary {
        text: Text::new("s").unwrap(),
        kept_from: EntryId::at(at),
        strip_reasoning: true,
    };
    check(vec![user("a"), turn("n"), said(), Entry::Boundary(rewrite(3)), user("b")], &[], "uau", false);
}

#[test]
fn a_model_without_such_messages_is_sent_an_ordinary_note() {
    let turn = Entry::Note(Note { kind: NoteKind::TurnScoped, text: Text::new("n").unwrap() });
    let check = |profile: ModelProfile, expect: &str| {
        let log = history(vec![user("a"), turn.clone()]);
        let encoded = Ask::bare().encode(&mut *encoder_of(profile), &log);
        assert!(text(&encoded.request.body).contains(expect), "{}", text(&encoded.request.body));
        assert_eq!(encoded.request.headers, []);
        let told: Vec<_> = encoded.diagnostics.iter().filter(|told| told.what == "note").collect();
        assert!(matches!(told[..], [told] if told.why.contains("ephemeral reminder")), "{told:?}");
    };
    check(profile("claude-sonnet-4-6"), r#"{"type":"text","text":"a"},{"type":"text","text":"n"}]}]"#);
    let lasting = ModelProfile { turn_scoped_system: false, ..profile("claude-opus-5-5") };
    check(lasting, r#"{"role":"system","content":[{"type":"text","text":"n"}]}]"#);
}

#[test]
fn nothing_blank_is_sent() {
    let sent = Ask::bare().text(&history(vec![user("a"), step(vec![], vec![]), user("b")]));
    assert!(
        sent.contains(r#"{"role":"assistant","content":[{"type":"text","text":"(no content)"}]}"#),
        "{sent}"
    );
    let unsigned = AssistantPart::Reasoning(Reasoning { text: "hm".into(), seal: None });
    let sent = Ask::bare().text(&history(vec![user("a"), step(vec![unsigned], vec![]), user("b")]));
    assert!(sent.contains("(no content)") && !sent.contains("hm"), "{sent}");
}

#[test]
fn streaming_changes_one_word_and_equal_requests_equal_bytes() {
    let (streamed, whole) = (Ask::default(), Ask { stream: false, ..Ask::default() });
    let log = talk();
    assert_eq!(streamed.text(&log).replace(r#""stream":true"#, r#""stream":false"#), whole.text(&log));
    assert_eq!(streamed.text(&log), streamed.text(&log));
}

/// The answer in this fixture, stored, loaded and sent again, holds exactly these bytes.
#[track_caller]
fn check_replay(name: &str, exact: &[&str]) {
    let (_, bytes) = fixtures(".sse").into_iter().find(|(file, _)| file == name).unwrap();
    let said = response(&bytes);
    let outputs = said.calls().map(|_| ToolOutput::text("r")).collect();
    let entries = vec![user("go"), step(said.parts, outputs), user("on")];
    let live = Ask::bare().text(&history(entries.clone()));
    for bytes in exact {
        assert!(live.contains(bytes), "{bytes}\n{live}");
    }
    let stored: Vec<RawJson> = entries.iter().map(|entry| RawJson::of(entry).unwrap()).collect();
    let (loaded, repairs) = History::load(&stored).unwrap();
    assert_eq!((Ask::bare().text(&loaded), repairs.len()), (live.clone(), 0), "stored and loaded");
    let imported = import_request(&WireFormat::Anthropic.into(), live.as_bytes()).unwrap();
    assert_eq!(Ask::bare().text(&imported.history), live, "recorded and imported");
}

#[test]
fn what_was_received_goes_back_byte_for_byte() {
    check_replay("calls.sse", &[r#""input":{"z":12345678901234567890,"a":1.0,"u":"\u00e9"}"#]);
    check_replay(
        "thinking.sse",
        &[
            r#"{"type":"thinking","thinking":"Two cups make four.","signature":"bmV3LXNpZ25hdHVyZQ=="}"#,
            r#"{"type":"redacted_thinking","data":"c2VhbGVk"}"#,
        ],
    );
    check_replay(
        "server_tools.sse",
        &[
            r#""input":{"query": "tea prices"}"#,
            r#"{"type":"brand_new_block","zeta":1.0,"alpha":2}"#,
            r#""citations":[{"type":"web_search_result_location","url":"https://tea.example/1","cited_text":"3.50"}]"#,
        ],
    );
    check_replay("compaction.sse", &[r#"{"type":"compaction","content":"So far: tea."}"#]);
    check_replay(
        "caller.sse",
        &[r#""input":{"cups": 2.0},"caller":{"type":"code_execution_20260120","tool_id":"srvtoolu_k1"}}"#],
    );
    check_replay("deferred.sse", &[r#""input":{"item":"kettle"},"caller":{"type":"direct"}}"#]);
    check_replay("pause.sse", &[r#""signature":"cGF1c2U=""#]);
}

#[test]
fn a_long_signature_and_strange_input_survive() {
    let signature = "s+/=".repeat(1280);
    let input = r#"{ "z":12345678901234567890,"a":1.0,"m":{"y":1e2,"x":-0.0} }"#;
    let seal = Seal::Signature { provider: "anthropic".into(), value: signature.clone() };
    let thought =
        AssistantPart::Reasoning(Reasoning { text: "tr\u{fc}b \u{1F600}".into(), seal: Some(seal) });
    let entry = step(vec![thought, call("a", "look", input)], vec![ToolOutput::text("r")]);
    let again: Entry = serde_json::from_str(&serde_json::to_string(&entry).unwrap()).unwrap();
    let sent = Ask::bare().text(&history(vec![user("go"), again]));
    assert!(sent.contains(&format!(r#""thinking":"trüb 😀","signature":"{signature}""#)), "{sent}");
    assert!(sent.contains(&format!(r#""input":{}"#, input)), "{sent}");
}

#[test]
fn what_belongs_to_others_is_not_sent() {
    let foreign = Seal::Signature { provider: "gemini".into(), value: "sig".into() };
    let block = ProviderPart {
        provider: "openai".into(),
        kind: "item".into(),
        raw: RawJson::parse(r#"{"type":"item"}"#).unwrap(),
    };
    let entry = step(
        vec![
            AssistantPart::Reasoning(Reasoning { text: "secret".into(), seal: Some(foreign) }),
            AssistantPart::Provider(block),
            words("hi"),
        ],
        vec![],
    );
    let mut encoder = encoder();
    let log = history(vec![user("go"), entry, user("on")]);
    let encoded = Ask::bare().encode(&mut *encoder, &log);
    let sent = text(&encoded.request.body);
    assert!(!sent.contains("secret") && !sent.contains("item"), "{sent}");
    let what: Vec<&str> = encoded.diagnostics.iter().map(|told| told.what.as_str()).collect();
    assert_eq!(what, ["assistant.reasoning", "assistant.provider_part"]);
    assert_eq!(Ask::bare().encode(&mut *encoder, &log).diagnostics, [], "it is said once");
}

#[test]
fn thinking_can_be_stripped_and_never_ends_a_message() {
    let sealed = |text: &str| {
        let seal = Seal::Signature { provider: "anthropic".into(), value: "sig".into() };
        AssistantPart::Reasoning(Reasoning { text: text.into(), seal: Some(seal) })
    };
    let mut log = history(vec![
        user("go"),
        step(
            vec![sealed("one"), words("a"), sealed("two"), call("x", "look", "{}")],
            vec![ToolOutput::text("r")],
        ),
        step(vec![words("b"), sealed("three")], vec![]),
        user("on"),
    ]);
    let sent = Ask::bare().text(&log);
    let order: Vec<usize> =
        ["one", r#""a""#, "two", "tool_use"].iter().map(|word| sent.find(word).unwrap()).collect();
    assert!(order.is_sorted() && !sent.contains("three"), "{sent}");
    let summary =
        Rewrite::Summary { text: Text::new("s").unwrap(), kept_from: EntryId::at(1), strip_reasoning: true };
    log.push(Entry::Boundary(summary)).unwrap();
    assert!(!Ask::bare().text(&log).contains("thinking"));
}

#[test]
fn results_take_every_form() {
    let png = |data: &str| FilePart {
        media_type: "image/png".into(),
        source: FileSource::Base64(data.into()),
        name: None,
    };
    let pdf = FilePart {
        media_type: "application/pdf".into(),
        source: FileSource::Reference { provider: "anthropic".into(), id: "file_1".into() },
        name: Some("plan".into()),
    };
    let outputs = vec![
        ToolOutput::Json(RawJson::parse(r#"{"b":1.0}"#).unwrap()),
        ToolOutput::denied("never"),
        ToolOutput::Content(vec![
            ContentPart::Text(Text::new("see").unwrap()),
            ContentPart::File(png("AA+/==")),
        ]),
        ToolOutput::Content(vec![ContentPart::File(pdf)]),
        ToolOutput::Content(vec![]),
    ];
    let calls = (0..outputs.len()).map(|n| call(&format!("c{n}"), "look", "{}")).collect();
    let sent = Ask::bare().text(&history(vec![user("go"), step(calls, outputs)]));
    let (_, results) = sent.split_once(r#""role":"user","content":[{"type":"tool_result""#).unwrap();
    let (results, _) = results.split_once("}],\"max").unwrap();
    insta::assert_snapshot!(results.replace(r#"},{"type":"tool_result"#, "},\n"), @r#"
    ,"tool_use_id":"c0","content":"{\"b\":1.0}"},
    ","tool_use_id":"c1","content":"never","is_error":true},
    ","tool_use_id":"c2","content":[{"type":"text","text":"see"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA+/=="}}]},
    ","tool_use_id":"c3","content":[{"type":"document","source":{"type":"file","file_id":"file_1"},"title":"plan"}]},
    ","tool_use_id":"c4","content":[{"type":"text","text":"(no content)"}]}]
    "#);
}

#[test]
fn old_results_are_clipped_when_they_are_cleared() {
    let picture = FilePart {
        media_type: "image/png".into(),
        source: FileSource::Base64("A".repeat(500)),
        name: Some("shot".into()),
    };
    let mut log = history(vec![
        user("go"),
        step(
            vec![call("a", "look", "{}"), call("b", "look", "{}")],
            vec![
                ToolOutput::text(format!("{}{}", "h".repeat(300), "t".repeat(300))),
                ToolOutput::Content(vec![ContentPart::File(picture)]),
            ],
        ),
        user("on"),
    ]);
    let mut encoder = encoder();
    let before = text(&Ask::bare().encode(&mut *encoder, &log).request.body);
    log.push(Entry::Boundary(Rewrite::Cleared {
        results_to: EntryId::at(2),
        keep_bytes: 20,
        strip_reasoning: false,
        offloaded: false,
    }))
    .unwrap();
    let after = text(&Ask::bare().encode(&mut *encoder, &log).request.body);
    assert!(before.contains(&"h".repeat(300)));
    assert!(after.contains(r#""content":"hhhhhhhhhh\n[580 bytes removed]\ntttttttttt""#), "{after}");
    assert!(after.contains("[shot (image/png), 500 bytes removed]") && !after.contains("AAAA"), "{after}");
}

#[test]
fn files_the_model_cannot_take_are_named() {
    let file = |media: &str, source: FileSource| {
        UserPart::File(FilePart { media_type: media.into(), source, name: Some("f".into()) })
    };
    let message = UserMessage::new(vec![
        file("image/png", FileSource::Url("https://a.example/x.png".into())),
        file("audio/wav", FileSource::Base64("QQ==".into())),
        file("application/pdf", FileSource::Reference { provider: "openai".into(), id: "f1".into() }),
    ]);
    let log = history(vec![Entry::User(message.unwrap())]);
    let blind = ModelProfile { vision: false, ..profile("claude-sonnet-4-6") };
    let encoded = Ask::bare().encode(&mut *encoder_of(blind), &log);
    let sent = text(&encoded.request.body);
    assert_eq!(
        (sent.matches(r#"{"type":"text","text":"[f ("#).count(), encoded.diagnostics.len()),
        (3, 3),
        "{sent}"
    );
    let seeing = Ask::bare().text(&log);
    assert!(
        seeing.contains(r#"{"type":"image","source":{"type":"url","url":"https://a.example/x.png"}}"#),
        "{seeing}"
    );
}

#[test]
fn a_conversation_that_ends_with_the_model_is_pointed_out() {
    let log = history(vec![user("go"), step(vec![words("Answer: ")], vec![])]);
    assert_eq!(Ask::bare().fresh(&log).diagnostics.len(), 1);
    let reminded = Ask { reminders: vec!["go on"], ..Ask::bare() };
    assert_eq!(reminded.fresh(&log).diagnostics, []);
}
