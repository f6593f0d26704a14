//! Requests as bytes: one form for everything, and what is received goes back unchanged.

use agent_core::{
    AssistantPart, AssistantText, CacheProfile, ContentPart, Entry, EntryId, FilePart, FileSource, History,
    Mark, MarkPoint, ModelProfile, ProviderData, ProviderPart, RawJson, Reasoning, Rewrite, Seal, Text,
    ToolOutput, Ttl, UserMessage, UserPart,
};
use agent_providers::{Dialect, WireFormat, import_request};

use super::ask::{Ask, call, encoder_of, history, input, model, note, step, text, user, words};
use super::decode::response;
use super::fixture;

fn talk() -> History {
    history(vec![
        user("go"),
        step(
            vec![words("ok"), call("a", "look", "{}"), call("b", "notes.add", r#"{"z":1.0,"a":2}"#)],
            vec![ToolOutput::text("seen"), ToolOutput::error("no")],
        ),
        note("mind the step"),
        user("and then?"),
    ])
}

fn openai() -> Dialect {
    Dialect { provider: "openai".into(), ..WireFormat::OpenAiResponses.into() }
}

/// Parts of an answer as `openai` gives them, in this fixture.
fn said(name: &str) -> Vec<AssistantPart> {
    let tagged = serde_json::to_string(&response(&fixture(name)).parts).unwrap();
    serde_json::from_str(&tagged.replace(r#""provider":"openai-responses""#, r#""provider":"openai""#))
        .unwrap()
}

#[test]
fn a_whole_request() {
    let encoded = Ask { reminders: vec!["now"], ..Ask::default() }.fresh(&talk());
    assert_eq!(encoded.diagnostics, []);
    insta::assert_snapshot!(text(&encoded.request.body).replace("},{", "},\n{"), @r#"
    {"model":"gpt-tea","tools":[{"type":"function","name":"look","description":"Looks.","parameters":{"properties":{},"type":"object"},"strict":false},
    {"type":"function","name":"notes_add_e1253ccd","parameters":{"properties":{},"type":"object"},"strict":false}],"input":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"Be brief."},
    {"type":"input_text","text":"Be kind."}]},
    {"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]},
    {"type":"message","role":"assistant","content":"ok"},
    {"type":"function_call","call_id":"a","name":"look","arguments":"{}"},
    {"type":"function_call","call_id":"b","name":"notes_add_e1253ccd","arguments":"{\"z\":1.0,\"a\":2}"},
    {"type":"function_call_output","call_id":"a","output":"seen"},
    {"type":"function_call_output","call_id":"b","output":"no"},
    {"type":"message","role":"user","content":[{"type":"input_text","text":"mind the step"}]},
    {"type":"message","role":"user","content":[{"type":"input_text","text":"and then?"}]},
    {"type":"message","role":"user","content":[{"type":"input_text","text":"now"}]}],"store":false,"include":["reasoning.encrypted_content"],"stream":true}
    "#);
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
    insta::assert_snapshot!(Ask::bare().input(&log).replace("},{", "},\n{"), @r#"
    [{"type":"message","role":"user","content":[{"type":"input_text","text":"The conversation so far was summarised to save space. The summary follows."}]},
    {"type":"message","role":"assistant","content":"We looked."},
    {"type":"message","role":"user","content":[{"type":"input_text","text":"Continue."}]}]
    "#);
}

#[test]
fn words_of_the_harness_are_the_systems_where_that_may_stand() {
    let log = history(vec![user("go"), note("mind the step")]);
    let may = ModelProfile { mid_conversation_system: true, ..model() };
    let ask = Ask { reminders: vec!["now"], ..Ask::bare() };
    let sent = input(&text(&ask.encode(&mut *encoder_of(may.clone()), &log).request.body));
    assert_eq!(sent.matches(r#""role":"developer""#).count(), 2, "{sent}");
    let xai = ModelProfile { provider: "xai".into(), ..may };
    let sent = input(&text(&ask.encode(&mut *encoder_of(xai), &log).request.body));
    assert_eq!(sent.matches(r#""role":"system""#).count(), 2, "{sent}");
    assert_eq!(ask.input(&log).matches(r#""role":"user""#).count(), 3);
}

#[test]
fn streaming_changes_one_word_and_the_next_body_begins_with_this_one() {
    let mut log = talk();
    let mut encoder = encoder_of(model());
    let streamed = text(&Ask::default().encode(&mut *encoder, &log).request.body);
    let whole = Ask { stream: false, ..Ask::default() };
    assert_eq!(
        streamed.replace(r#""stream":true"#, r#""stream":false"#),
        text(&whole.encode(&mut *encoder, &log).request.body)
    );
    log.push(step(vec![words("this")], vec![])).unwrap();
    log.push(user("more")).unwrap();
    let next = text(&Ask::default().encode(&mut *encoder, &log).request.body);
    let (kept, _) = streamed.rsplit_once(r#"],"store""#).unwrap();
    assert!(next.starts_with(kept), "{kept}\n{next}");
    assert_eq!(next, Ask::default().text(&log), "a fresh encoder writes the same bytes");
}

/// The answer in this fixture, stored, loaded and sent again, holds exactly these bytes.
#[track_caller]
fn check_replay(name: &str, exact: &[&str]) {
    let parts = said(name);
    let calls = parts.iter().filter(|part| part.as_call().is_some()).count();
    let entries = vec![user("go"), step(parts, vec![ToolOutput::text("r"); calls]), user("on")];
    let live = Ask::bare().text(&history(entries.clone()));
    for bytes in exact {
        assert!(live.contains(bytes), "{bytes}\n{live}");
    }
    let stored: Vec<RawJson> = entries.iter().map(|entry| RawJson::of(entry).unwrap()).collect();
    let (loaded, repairs) = History::load(&stored).unwrap();
    assert_eq!((Ask::bare().text(&loaded), repairs.len()), (live.clone(), 0), "stored and loaded");
    let imported = import_request(&openai(), live.as_bytes()).unwrap();
    assert_eq!((&imported.repairs[..], &imported.diagnostics[..]), (&[][..], &[][..]));
    let history = imported.history.clone();
    assert_eq!(Ask::of(imported).text(&history), live, "recorded and imported");
}

#[test]
fn what_was_received_goes_back_byte_for_byte() {
    check_replay(
        "calls.sse",
        &[
            r#"[{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]},{"id":"rs_1","type":"reasoning","encrypted_content":"c2VhbGVk","summary":[]},{"type":"function_call","call_id":"call_1","name":"brew","arguments":"{\"z\":12345678901234567890,\"a\":1.0,\"u\":\"\\u00e9\"}","id":"fc_1","status":"completed"},"#,
            r#"{"type":"function_call_output","call_id":"call_1","output":"r"},{"type":"function_call_output","call_id":"call_2","output":"r"}"#,
        ],
    );
    check_replay(
        "reasoning.sse",
        &[
            r#"{"id":"rs_1","type":"reasoning","encrypted_content":"bGF0ZQ==","#,
            r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Four."}],"id":"msg_1","status":"completed","phase":"final_answer"}"#,
        ],
    );
    check_replay(
        "hosted.sse",
        &[
            r#"{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"tea prices","n":1.0}}"#,
            r#"{"type":"brand_new_item","zeta":1.0,"alpha":2}"#,
            r#""text":"Tea costs 3.50.","annotations":[{"type":"url_citation","start_index":0,"#,
            r#""output":"r","caller":{"type":"program","caller_id":"call_p"}}"#,
        ],
    );
    check_replay("refusal.sse", &[r#"[{"type":"refusal","refusal":"I cannot pour that."}],"id":"msg_1""#]);
    check_replay("thought.sse", &[r#""content":[{"type":"reasoning_text","text":"Boil, then wait."}]}"#]);
}

fn item(provider: &str, raw: &str) -> AssistantPart {
    let seal = Seal::Item { provider: provider.into(), raw: RawJson::parse(raw).unwrap() };
    AssistantPart::Reasoning(Reasoning { text: String::new(), seal: Some(seal) })
}

fn sealed(id: &str) -> AssistantPart {
    item("openai", &format!(r#"{{"id":"{id}","type":"reasoning","encrypted_content":"e","summary":[]}}"#))
}

fn with_id(id: &str, text: &str) -> AssistantPart {
    let json = RawJson::parse(format!(r#"{{"id":"{id}","phase":"final_answer"}}"#)).unwrap();
    let data = Some(ProviderData { provider: "openai".into(), json });
    AssistantPart::Text(AssistantText { text: Text::new(text).unwrap(), data })
}

fn search(id: &str) -> AssistantPart {
    let raw = RawJson::parse(format!(r#"{{"id":"{id}","type":"web_search_call","status":"completed"}}"#));
    AssistantPart::Provider(ProviderPart {
        provider: "openai".into(),
        kind: "web_search_call".into(),
        raw: raw.unwrap(),
    })
}

/// These parts are sent as items of these ids; `-` is an item without one.
#[track_caller]
fn check_ids(provider: &str, parts: Vec<AssistantPart>, strip: bool, expect: &str) {
    let mut log = history(vec![user("go"), step(parts, vec![]), user("on")]);
    if strip {
        let text = Text::new("s").unwrap();
        let kept_from = EntryId::at(1);
        log.push(Entry::Boundary(Rewrite::Summary { text, kept_from, strip_reasoning: true })).unwrap();
    }
    let profile = ModelProfile { provider: provider.into(), ..model() };
    let sent = input(&text(&Ask::bare().encode(&mut *encoder_of(profile), &log).request.body));
    let items: Vec<serde_json::Value> = serde_json::from_str(&sent).unwrap();
    let is_said = |item: &&serde_json::Value| item["role"] != "user" && item["content"] != "s";
    let ids = items.iter().filter(is_said).map(|item| item["id"].as_str().unwrap_or("-"));
    assert_eq!(ids.collect::<Vec<_>>().join(" "), expect, "{sent}");
    assert_eq!(sent.matches("final_answer").count(), sent.matches("said").count(), "the phase stays");
}

#[test]
fn thinking_and_what_follows_it_live_or_die_together() {
    let parts = || vec![sealed("rs_1"), with_id("msg_1", "said"), sealed("rs_2"), search("ws_1")];
    check_ids("openai", parts(), false, "rs_1 msg_1 rs_2 ws_1");
    check_ids("openai", parts(), true, "- -");
    check_ids("openai", vec![with_id("msg_1", "said")], false, "msg_1");
    check_ids("openai", vec![sealed("rs_1"), with_id("msg_1", "said"), sealed("rs_2")], false, "rs_1 msg_1");
    check_ids("openai", vec![sealed("rs_1")], false, "");
    let foreign = item("anthropic", r#"{"id":"rs_9","encrypted_content":"e"}"#);
    check_ids("openai", vec![foreign, with_id("msg_1", "said")], false, "-");
    let bare = AssistantPart::Reasoning(Reasoning { text: "hm".into(), seal: None });
    check_ids("openai", vec![bare, with_id("msg_1", "said"), search("ws_1")], false, "- -");
}

#[test]
fn thinking_that_only_points_is_not_sent() {
    let pointing = r#"{"id":"rs_1","type":"reasoning","encrypted_content":null,"summary":[{"type":"summary_text","text":"t"}]}"#;
    check_ids("openai", vec![item("openai", pointing), with_id("msg_1", "said")], false, "-");
    check_ids("xai", vec![item("xai", pointing), words("hi")], false, "rs_1 -");
    let open =
        r#"{"id":"rs_1","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"t"}]}"#;
    check_ids("openai", vec![item("openai", open), with_id("msg_1", "said")], false, "rs_1 msg_1");
}

#[test]
fn parts_of_one_message_are_one_item_again() {
    let log = history(vec![
        user("go"),
        step(vec![with_id("m_1", "a"), with_id("m_1", "b"), with_id("m_2", "c"), words("d")], vec![]),
    ]);
    insta::assert_snapshot!(Ask::bare().input(&log).replace("},{", "},\n{"), @r#"
    [{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]},
    {"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"},
    {"type":"output_text","text":"b"}],"id":"m_1","phase":"final_answer"},
    {"type":"message","role":"assistant","content":[{"type":"output_text","text":"c"}],"id":"m_2","phase":"final_answer"},
    {"type":"message","role":"assistant","content":"d"}]
    "#);
}

#[test]
fn what_belongs_to_others_is_not_sent() {
    let raw = RawJson::parse(r#"{"type":"server_tool_use"}"#).unwrap();
    let block = ProviderPart { provider: "anthropic".into(), kind: "server_tool_use".into(), raw };
    let log = history(vec![user("go"), step(vec![AssistantPart::Provider(block), words("hi")], vec![])]);
    let encoded = Ask::bare().fresh(&log);
    assert!(!text(&encoded.request.body).contains("server_tool_use"));
    assert_eq!(encoded.diagnostics.len(), 1, "{:?}", encoded.diagnostics);
}

#[test]
fn parts_that_our_types_do_not_have_go_back_as_they_came() {
    let parts = concat!(
        r#"{"type":"input_image","image_url":"https://a.example/b","detail":"high"},"#,
        r#"{"type":"hologram","n":1.0,"deep":12345678901234567890}"#
    );
    let call = r#"{"type":"function_call","call_id":"a","name":"look","arguments":"{}"}"#;
    let body = format!(
        r#"{{"input":[{{"role":"user","content":[{parts}]}},{call},{{"type":"function_call_output","call_id":"a","output":[{parts}]}}]}}"#
    );
    let log = import_request(&openai(), body.as_bytes()).unwrap().history;
    let encoded = Ask::bare().fresh(&log);
    assert_eq!((text(&encoded.request.body).matches(parts).count(), encoded.diagnostics), (2, vec![]));
    let other = ModelProfile { provider: "xai".into(), ..model() };
    let encoded = Ask::bare().encode(&mut *encoder_of(other), &log);
    assert!(!text(&encoded.request.body).contains("hologram"));
    let notes: Vec<&str> = encoded.diagnostics.iter().map(|note| note.what.as_str()).collect();
    assert_eq!(notes, ["message.part", "message.part", "tool_result.part", "tool_result.part"]);
}

fn file(media: &str, source: FileSource, name: Option<&str>) -> FilePart {
    FilePart { media_type: media.into(), source, name: name.map(str::to_owned) }
}

#[test]
fn files_go_by_where_their_bytes_are() {
    let of = |id: &str, provider: &str| FileSource::Reference { provider: provider.into(), id: id.into() };
    let bytes = || FileSource::Base64("AA+/==".into());
    let files = vec![
        file("image/png", bytes(), None),
        file("image/*", FileSource::Url("https://a.example/x.png".into()), None),
        file("image/png", of("file_1", "openai"), None),
        file("application/pdf", bytes(), Some("plan.pdf")),
        file("text/plain", bytes(), None),
        file("application/pdf", FileSource::Url("https://a.example/x.pdf".into()), None),
        file("application/pdf", of("file_2", "openai"), None),
        file("application/pdf", of("file_3", "anthropic"), None),
        file("audio/wav", bytes(), Some("song")),
    ];
    let message = UserMessage::new(files.into_iter().map(UserPart::File).collect()).unwrap();
    let log = history(vec![Entry::User(message)]);
    insta::assert_snapshot!(Ask::bare().input(&log).replace("},{", "},\n{"), @r#"
    [{"type":"message","role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AA+/=="},
    {"type":"input_image","image_url":"https://a.example/x.png"},
    {"type":"input_image","file_id":"file_1"},
    {"type":"input_file","filename":"plan.pdf","file_data":"data:application/pdf;base64,AA+/=="},
    {"type":"input_file","filename":"file.txt","file_data":"data:text/plain;base64,AA+/=="},
    {"type":"input_file","file_url":"https://a.example/x.pdf"},
    {"type":"input_file","file_id":"file_2"},
    {"type":"input_text","text":"[application/pdf: not sent, it was uploaded to another provider]"},
    {"type":"input_text","text":"[song (audio/wav): not sent, only images and documents are taken]"}]}]
    "#);
    let blind = ModelProfile { vision: false, ..model() };
    let encoded = Ask::bare().encode(&mut *encoder_of(blind), &log);
    let sent = text(&encoded.request.body);
    assert!(!sent.contains("input_image") && sent.contains("[image/png: not sent, the model does not see"));
    assert_eq!(encoded.diagnostics.len(), 5);
}

#[test]
fn results_take_every_form() {
    let picture = || file("image/png", FileSource::Base64("A".repeat(60)), Some("shot"));
    let outputs = vec![
        ToolOutput::Json(RawJson::parse(r#"{"b":1.0}"#).unwrap()),
        ToolOutput::denied("never"),
        ToolOutput::Content(vec![
            ContentPart::Text(Text::new("see").unwrap()),
            ContentPart::File(picture()),
            ContentPart::File(file("application/pdf", FileSource::Base64("BB==".into()), None)),
        ]),
        ToolOutput::Content(vec![]),
    ];
    let calls = (0..outputs.len()).map(|n| call(&format!("c{n}"), "look", "{}")).collect();
    let mut log = history(vec![user("go"), step(calls, outputs), user("on")]);
    let outputs = |log: &History| {
        let sent = Ask::bare().input(log);
        sent[sent.find(r#"{"type":"function_call_output""#).unwrap()..].replace("},{", "},\n{")
    };
    insta::assert_snapshot!(outputs(&log), @r#"
    {"type":"function_call_output","call_id":"c0","output":"{\"b\":1.0}"},
    {"type":"function_call_output","call_id":"c1","output":"never"},
    {"type":"function_call_output","call_id":"c2","output":[{"type":"input_text","text":"see"},
    {"type":"input_image","image_url":"data:image/png;base64,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"},
    {"type":"input_file","filename":"file.pdf","file_data":"data:application/pdf;base64,BB=="}]},
    {"type":"function_call_output","call_id":"c3","output":[{"type":"input_text","text":"(no content)"}]},
    {"type":"message","role":"user","content":[{"type":"input_text","text":"on"}]}]
    "#);
    log.push(Entry::Boundary(Rewrite::Cleared {
        results_to: EntryId::at(2),
        keep_bytes: 6,
        strip_reasoning: false,
        offloaded: false,
    }))
    .unwrap();
    insta::assert_snapshot!(outputs(&log), @r#"
    {"type":"function_call_output","call_id":"c0","output":"{\"b\n[3 bytes removed]\n.0}"},
    {"type":"function_call_output","call_id":"c1","output":"never"},
    {"type":"function_call_output","call_id":"c2","output":[{"type":"input_text","text":"see"},
    {"type":"input_text","text":"[shot (image/png), 60 bytes removed]"},
    {"type":"input_file","filename":"file.pdf","file_data":"data:application/pdf;base64,BB=="}]},
    {"type":"function_call_output","call_id":"c3","output":[{"type":"input_text","text":"(no content)"}]},
    {"type":"message","role":"user","content":[{"type":"input_text","text":"on"}]}]
    "#);
}

#[test]
fn markers_stand_on_parts_of_the_content() {
    let cache = CacheProfile::Marked { max_marks: 4, min_tokens: 1024, lookback: 20, collapse_runs: true };
    let marked = ModelProfile { cache, ..model() };
    let mark = |at: MarkPoint| Mark { at, ttl: Ttl::FiveMinutes };
    let marks = vec![
        mark(MarkPoint::System(0)),
        mark(MarkPoint::Entry(EntryId::at(1))),
        mark(MarkPoint::Entry(EntryId::at(3))),
    ];
    let ask = Ask { marks: marks.clone(), ..Ask::default() };
    let encoded = ask.encode(&mut *encoder_of(marked.clone()), &talk());
    assert_eq!(encoded.diagnostics, []);
    let sent = input(&text(&encoded.request.body));
    insta::assert_snapshot!(sent.replace("},{", "},\n{"), @r#"
    [{"type":"message","role":"developer","content":[{"type":"input_text","text":"Be brief.","prompt_cache_breakpoint":{"mode":"explicit"}},
    {"type":"input_text","text":"Be kind."}]},
    {"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]},
    {"type":"message","role":"assistant","content":"ok"},
    {"type":"function_call","call_id":"a","name":"look","arguments":"{}"},
    {"type":"function_call","call_id":"b","name":"notes_add_e1253ccd","arguments":"{\"z\":1.0,\"a\":2}"},
    {"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"seen"}]},
    {"type":"function_call_output","call_id":"b","output":[{"type":"input_text","text":"no","prompt_cache_breakpoint":{"mode":"explicit"}}]},
    {"type":"message","role":"user","content":[{"type":"input_text","text":"mind the step"}]},
    {"type":"message","role":"user","content":[{"type":"input_text","text":"and then?","prompt_cache_breakpoint":{"mode":"explicit"}}]}]
    "#);
    let plain = Ask::default().encode(&mut *encoder_of(marked.clone()), &talk());
    let without = sent.replace(r#","prompt_cache_breakpoint":{"mode":"explicit"}"#, "");
    assert_eq!(input(&text(&plain.request.body)), without, "a marker changes no byte but its own");
    let tools = Ask { marks: vec![mark(MarkPoint::Tools)], ..Ask::default() };
    assert_eq!(tools.encode(&mut *encoder_of(marked.clone()), &talk()).diagnostics.len(), 1);
    let covered = Ask { marks: vec![mark(MarkPoint::Tools), mark(MarkPoint::System(0))], ..Ask::default() };
    assert_eq!(covered.encode(&mut *encoder_of(marked.clone()), &talk()).diagnostics, []);
    for (block, expect) in [(0, r#"brief.","prompt"#), (1, r#"kind.","prompt"#), (2, "")] {
        let one = Ask { marks: vec![mark(MarkPoint::System(block))], ..Ask::default() };
        let encoded = one.encode(&mut *encoder_of(marked.clone()), &talk());
        let sent = text(&encoded.request.body);
        assert!(sent.contains(expect) && sent.contains("breakpoint") != expect.is_empty(), "{sent}");
        assert_eq!(encoded.diagnostics.is_empty(), !expect.is_empty());
    }
    let unmarked = ask.fresh(&talk());
    assert!(!text(&unmarked.request.body).contains("prompt_cache_breakpoint"));
}

#[test]
fn ids_and_inputs_are_what_the_provider_takes() {
    let long = "x".repeat(70);
    let parts =
        vec![call("functions.look:3", "look", "[1]"), call(&long, "look", "{\"a"), call("ok", "look", "")];
    let sent = Ask::bare().input(&history(vec![
        user("go"),
        step(parts, vec![ToolOutput::text("1"), ToolOutput::text("2"), ToolOutput::text("3")]),
    ]));
    assert!(sent.contains(r#""arguments":"{\"invalid_json\":\"[1]\"}""#), "{sent}");
    assert!(sent.contains(r#""arguments":"{\"invalid_json\":\"{\\\"a\"}""#), "{sent}");
    assert!(sent.contains(r#""call_id":"ok","name":"look","arguments":"{}""#), "{sent}");
    let items: Vec<serde_json::Value> = serde_json::from_str(&sent).unwrap();
    let ids: Vec<&str> = items.iter().filter_map(|item| item["call_id"].as_str()).collect();
    assert_eq!(ids[..3], ids[3..]);
    assert!(ids.iter().all(|id| id.len() <= 64 && !id.contains([':', '.'])), "{ids:?}");
}
