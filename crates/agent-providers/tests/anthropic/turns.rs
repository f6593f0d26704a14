//! Turns that the provider has a part in: its own tools, pauses, summaries, and where the system may speak.

use agent_core::{
    AssistantPart, ContentPart, Encoded, Entry, EntryId, FilePart, FileSource, Finish, FinishKind, History,
    Mark, MarkPoint, ModelProfile, ProviderData, ProviderPart, RawJson, RequestSettings, Response,
    StepRecord, Text, ToolOutput, ToolResult, Ttl, UserMessage, UserPart,
};
use proptest::prelude::*;
use serde_json::Value;

use super::ask::{Ask, call, encoder, encoder_of, history, messages, note, profile, step, text, user, words};
use crate::support::{fixtures, response};

/// The answer of a fixture, with a result for each call.
fn answer(name: &str) -> Entry {
    let (_, bytes) = fixtures(".sse").into_iter().find(|(file, _)| file == name).unwrap();
    finished(response(&bytes))
}

fn finished(said: Response) -> Entry {
    let results =
        said.calls().map(|call| ToolResult { call: call.id.clone(), output: ToolOutput::text("r") });
    let results = results.collect();
    Entry::Step(StepRecord::new(said, results).unwrap())
}

fn block(kind: &str, raw: &str) -> ProviderPart {
    ProviderPart { provider: "anthropic".into(), kind: kind.into(), raw: RawJson::parse(raw).unwrap() }
}

/// A model whose conversations the system may speak in.
fn speaking() -> ModelProfile {
    profile("claude-opus-5")
}

/// Roles with the kinds of their blocks, as `u:t a:s,c`.
fn shape(body: &str) -> String {
    let all: Value = serde_json::from_str(messages(body)).unwrap();
    let of = |message: &Value| {
        let kinds =
            message["content"].as_array().unwrap().iter().map(|block| block["type"].as_str().unwrap());
        let kinds: Vec<&str> = kinds.collect();
        format!("{}:{}", &message["role"].as_str().unwrap()[..1], kinds.join(","))
    };
    all.as_array().unwrap().iter().map(of).collect::<Vec<_>>().join(" ")
}

fn sent(profile: ModelProfile, entries: Vec<Entry>) -> String {
    text(&Ask::bare().encode(&mut *encoder_of(profile), &history(entries)).request.body)
}

#[test]
fn while_the_provider_runs_a_tool_it_gets_results_only() {
    let ask = Ask { reminders: vec!["now"], ..Ask::bare() };
    let (mut used, mut log) = (encoder(), history(vec![user("go"), answer("deferred.sse"), user("hurry")]));
    let Encoded { request, diagnostics } = ask.encode(&mut *used, &log);
    let first = text(&request.body);
    assert_eq!(shape(&first), "u:text a:text,server_tool_use,tool_use u:tool_result");
    assert!(first.contains(
        r#"{"type":"server_tool_use","id":"srvtoolu_d1","name":"web_search","input":{"query":"kettles"}}"#
    ));
    assert!(first.contains(r#""input":{"item":"kettle"},"caller":{"type":"direct"}}"#), "{first}");
    let told: Vec<&str> = diagnostics.iter().map(|note| note.what.as_str()).collect();
    assert_eq!(told, ["messages", "reminders"], "what waits and what is left out is said: {diagnostics:?}");
    log.push(answer("deferred_result.sse")).unwrap();
    let encoded = ask.encode(&mut *used, &log);
    let second = text(&encoded.request.body);
    assert_eq!(
        shape(&second),
        "u:text a:text,server_tool_use,tool_use u:tool_result a:web_search_tool_result,text u:text,text"
    );
    let (before, _) = first.rsplit_once("]}],\"max_tokens\"").unwrap();
    assert!(second.starts_with(before) && encoded.diagnostics.is_empty(), "{second}");
    assert_eq!(second, ask.text(&log), "anew as step by step");
}

#[test]
fn a_tool_of_the_provider_may_call_ours_again_and_again() {
    let again = answer("caller.sse");
    let Entry::Step(first) = &again else { panic!() };
    let second = Response::of(vec![call("toolu_k2", "brew", "{}")]);
    let done = Response::of(vec![AssistantPart::Provider(block(
        "code_execution_tool_result",
        r#"{"type":"code_execution_tool_result","tool_use_id":"srvtoolu_k1","content":{}}"#,
    ))]);
    assert_eq!(first.finish().kind, FinishKind::ToolCalls);
    let log = vec![user("go"), again, note("n1"), finished(second), note("n2"), finished(done), user("on")];
    assert_eq!(
        shape(&sent(profile("claude-sonnet-4-6"), log)),
        "u:text a:server_tool_use,tool_use u:tool_result a:tool_use u:tool_result a:code_execution_tool_result u:text,text,text"
    );
}

#[test]
fn a_tool_of_the_provider_that_was_cut_short_is_left_out() {
    let part =
        block("server_tool_use", r#"{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}"#);
    let mut said = Response::of(vec![words("Let me see."), AssistantPart::Provider(part)]);
    said.finish = Finish { kind: FinishKind::Length, raw: "max_tokens".into() };
    let log = history(vec![user("go"), finished(said), user("on")]);
    let encoded = Ask::bare().fresh(&log);
    assert_eq!(shape(&text(&encoded.request.body)), "u:text a:text u:text");
    assert_eq!(encoded.diagnostics[0].why, "the result of a \"server_tool_use\" block never came");
}

#[test]
fn a_paused_answer_goes_back_unchanged_and_last() {
    let log = history(vec![user("go"), answer("pause.sse")]);
    let encoded = Ask { reminders: vec!["now"], ..Ask::bare() }.fresh(&log);
    let body = text(&encoded.request.body);
    assert!(
        body.contains(r#"{"role":"assistant","content":[{"type":"thinking","thinking":"Search first.","signature":"cGF1c2U="},{"type":"server_tool_use","id":"srvtoolu_p1","name":"web_search","input":{"query":"tea"}}]}],"max_tokens""#),
        "{body}"
    );
    let told: Vec<&str> = encoded.diagnostics.iter().map(|note| note.what.as_str()).collect();
    assert_eq!(told, ["reminders"]);
}

#[test]
fn a_signed_summary_stands_first_and_alone() {
    let log = vec![user("a"), step(vec![words("b")], vec![]), answer("compaction_signed.sse"), user("on")];
    let encoded = Ask::bare().fresh(&history(log.clone()));
    assert_eq!(
        messages(&text(&encoded.request.body)),
        r#"[{"role":"assistant","content":[{"type":"compaction","content":"We bought two kettles.","signature":"c2lnbmVk"}]},{"role":"user","content":[{"type":"text","text":"on"}]}]"#
    );
    assert_eq!(encoded.request.headers, [("anthropic-beta".to_owned(), "compact-2026-09-04".to_owned())]);
    let mut used = encoder();
    for end in 1..=log.len() {
        let grown = history(log[..end].to_vec());
        assert_eq!(text(&Ask::bare().encode(&mut *used, &grown).request.body), Ask::bare().text(&grown));
    }
    let unsigned = vec![user("a"), answer("compaction.sse"), user("on")];
    let encoded = Ask::bare().fresh(&history(unsigned));
    assert_eq!(shape(&text(&encoded.request.body)), "u:text a:compaction,text u:text");
    assert_eq!(encoded.request.headers[0].1, "compact-2026-01-12");
}

#[test]
fn the_system_speaks_where_it_may() {
    let check = |entries: Vec<Entry>, expect: &str| {
        let body = sent(speaking(), entries);
        assert_eq!(shape(&body), expect, "{body}");
    };
    let calls = |id: &str| step(vec![call(id, "look", "{}")], vec![ToolOutput::text("r")]);
    let says = || step(vec![words("s")], vec![]);
    check(vec![note("n")], "u:text");
    check(vec![user("a"), note("n")], "u:text s:text");
    check(vec![user("a"), note("n"), note("m")], "u:text s:text,text");
    check(vec![user("a"), note("n"), says(), user("b")], "u:text s:text a:text u:text");
    check(vec![user("a"), note("n"), user("b")], "u:text,text,text");
    check(
        vec![user("a"), calls("x"), note("n"), calls("y")],
        "u:text a:tool_use u:tool_result s:text a:tool_use u:tool_result",
    );
    check(vec![user("a"), says(), note("n"), user("b")], "u:text a:text u:text,text");
    let reminded = Ask { reminders: vec!["now"], ..Ask::bare() };
    let body = text(&reminded.encode(&mut *encoder_of(speaking()), &history(vec![user("a")])).request.body);
    assert_eq!(shape(&body), "u:text s:text");
}

#[test]
fn what_only_this_provider_takes_goes_back_as_it_is() {
    let found = r#"{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"w"}],"citations":{"enabled":true}}"#;
    let document =
        |source, media: &str| FilePart { media_type: media.into(), source, name: Some("n".into()) };
    let parts = vec![
        UserPart::Provider(block("search_result", found)),
        UserPart::File(document(FileSource::Base64("dGVh".into()), "text/markdown")),
        UserPart::Provider(ProviderPart { provider: "other".into(), ..block("odd", "{}") }),
    ];
    let output = ToolOutput::Content(vec![
        ContentPart::Text(Text::new("see").unwrap()),
        ContentPart::Provider(block("search_result", found)),
        ContentPart::File(document(FileSource::Url("https://a.example/b.pdf".into()), "application/pdf")),
        ContentPart::File(document(FileSource::Base64("//8=".into()), "text/plain")),
    ]);
    let log = history(vec![
        Entry::User(UserMessage::new(parts).unwrap()),
        step(vec![call("x", "look", "{}")], vec![output]),
    ]);
    let encoded = Ask::bare().fresh(&log);
    let body = text(&encoded.request.body);
    assert_eq!(body.matches(found).count(), 2, "{body}");
    assert!(body.contains(
        r#"{"type":"document","source":{"type":"text","media_type":"text/plain","data":"tea"},"title":"n"}"#
    ));
    assert!(body.contains(
        r#"{"type":"document","source":{"type":"url","url":"https://a.example/b.pdf"},"title":"n"}"#
    ));
    assert!(body.contains("[n (text/plain): not sent, it is no text in base64]"), "{body}");
    assert_eq!(encoded.diagnostics.len(), 2, "{:?}", encoded.diagnostics);
}

#[test]
fn headers_name_the_features_of_the_body() {
    let check = |entry: Entry, settings: RequestSettings, expect: &str| {
        let ask = Ask { settings, ..Ask::bare() };
        let headers = ask.encode(&mut *encoder_of(speaking()), &history(vec![entry])).request.headers;
        let expect: Vec<(String, String)> = expect
            .split(' ')
            .filter(|beta| !beta.is_empty())
            .map(|beta| ("anthropic-beta".into(), beta.into()))
            .collect();
        assert_eq!(headers, expect);
    };
    let plain = RequestSettings::default;
    let file = FilePart {
        media_type: "application/pdf".into(),
        source: FileSource::Reference { provider: "anthropic".into(), id: "file_1".into() },
        name: None,
    };
    let extra = |json: &str| RequestSettings {
        extra: vec![ProviderData { provider: "anthropic".into(), json: RawJson::parse(json).unwrap() }],
        ..plain()
    };
    check(user("a"), plain(), "");
    check(
        Entry::User(UserMessage::new(vec![UserPart::File(file.clone())]).unwrap()),
        plain(),
        "files-api-2025-04-14",
    );
    check(
        Entry::User(UserMessage::new(vec![UserPart::File(file)]).unwrap()),
        RequestSettings { fast: true, ..plain() },
        "fast-mode-2026-02-01,files-api-2025-04-14",
    );
    check(
        user("a"),
        extra(r#"{"context_management":{"edits":[{"type":"compact_20260112"}]}}"#),
        "compact-2026-01-12,context-management-2025-06-27",
    );
    check(user("a"), extra(r#"{"compaction":{"type":"summarize"}}"#), "compact-2026-09-04");
}

/// What the provider demands of messages.
fn refused(body: &str) -> Option<String> {
    let all: Value = serde_json::from_str(messages(body)).unwrap();
    let all = all.as_array().unwrap();
    let role = |at: usize| all.get(at).map(|message| message["role"].as_str().unwrap());
    let ids = |at: usize, kind: &str, key: &str| -> Vec<String> {
        let blocks = all.get(at).and_then(|message| message["content"].as_array()).into_iter().flatten();
        let kept = blocks.filter(|block| block["type"] == kind);
        kept.map(|block| block[key].as_str().unwrap().to_owned()).collect()
    };
    let mut pending: Vec<String> = Vec::new();
    for (at, message) in all.iter().enumerate() {
        let blocks = message["content"].as_array().unwrap();
        if blocks.is_empty()
            || blocks
                .iter()
                .any(|block| block["type"] == "text" && block["text"].as_str().unwrap().trim().is_empty())
        {
            return Some(format!("message {at} is blank"));
        }
        let before = at.checked_sub(1).and_then(role);
        match (before, role(at).unwrap()) {
            (None, "user") | (Some("assistant"), "user") | (Some("user" | "system"), "assistant") => {}
            (Some("user"), "system") if matches!(role(at + 1), None | Some("assistant")) => {}
            (before, role) => return Some(format!("{role} after {before:?}")),
        }
        if role(at) == Some("assistant")
            && ids(at, "tool_use", "id") != ids(at + 1, "tool_result", "tool_use_id")
        {
            return Some(format!("calls of message {at} are not answered"));
        }
        if role(at) != Some("assistant")
            && !pending.is_empty()
            && blocks.iter().any(|block| block["type"] != "tool_result")
        {
            return Some(format!("message {at} holds more than results"));
        }
        pending.extend(ids(at, "server_tool_use", "id"));
        let done = ids(at, "web_search_tool_result", "tool_use_id");
        pending.retain(|id| !done.contains(id));
    }
    None
}

/// A word of a conversation: of the user, the harness or the model, whose server tools end in a later step or never.
fn entry(kind: u8, n: usize, open: &mut Vec<usize>) -> Entry {
    let server = |n: usize| {
        AssistantPart::Provider(block(
            "server_tool_use",
            &format!(r#"{{"type":"server_tool_use","id":"v{n}","name":"web_search","input":{{}}}}"#),
        ))
    };
    let is_model = kind > 1;
    let ended = open.pop_if(|_| is_model).map(|n| {
        AssistantPart::Provider(block(
            "web_search_tool_result",
            &format!(r#"{{"type":"web_search_tool_result","tool_use_id":"v{n}","content":[]}}"#),
        ))
    });
    let parts = |more: Vec<AssistantPart>| ended.clone().into_iter().chain(more).collect::<Vec<_>>();
    let ours = || call(&format!("c{n}"), "look", "{}");
    match kind {
        0 => user("u"),
        1 => note("n"),
        2 => finished(Response::of(parts(vec![words("s")]))),
        3 => finished(Response::of(parts(vec![ours()]))),
        4 => {
            open.push(n);
            finished(Response::of(parts(vec![server(n), ours()])))
        }
        _ => {
            let mut said = Response::of(parts(vec![words("cut"), server(n)]));
            said.finish = Finish { kind: FinishKind::Length, raw: "max_tokens".into() };
            finished(said)
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Every conversation becomes messages that the provider takes, growing or at once; what was sent stays, as long
    /// as no word of the user follows one of the harness.
    #[test]
    fn every_conversation_is_taken(kinds in proptest::collection::vec(0u8..6, 1..20)) {
        let (mut used, mut log, mut open) = (encoder_of(speaking()), History::new(), Vec::new());
        let mut before: Option<String> = None;
        for (n, kind) in kinds.into_iter().enumerate() {
            log.push(entry(kind, n, &mut open)).unwrap();
            let body = text(&Ask::bare().encode(&mut *used, &log).request.body);
            prop_assert_eq!(&body, &text(&Ask::bare().encode(&mut *encoder_of(speaking()), &log).request.body));
            prop_assert_eq!(refused(&body), None, "{}", body);
            let (prefix, _) = body.rsplit_once("]}],\"max_tokens\"").unwrap();
            if let Some(before) = before {
                let is_open = before.rfind(r#"{"role":"#).is_some_and(|at| before[at..].starts_with(r#"{"role":"system""#));
                prop_assert!(body.starts_with(&before) || is_open && kind == 0, "{}\n{}", before, body);
            }
            before = Some(prefix.to_owned());
        }
    }
}

/// Case M06: white space at the end is taken from what the model said last, and from nothing before it; a marker on
/// the same block stays.
#[test]
fn the_last_words_of_a_model_end_without_white_space() {
    let said = |text: &str| step(vec![words(text)], vec![]);
    let log = |after: &[&str]| {
        let mut all = vec![user(" go \n"), said("one \n"), user("on"), said("two: \"x\" \n\u{a0}")];
        all.extend(after.iter().map(|text| user(text)));
        history(all)
    };
    let one = r#"{"type":"text","text":"one \n"}"#;
    let ended = Ask::bare().text(&log(&[]));
    assert!(ended.contains(one) && ended.contains(r#"{"type":"text","text":" go \n"}"#), "{ended}");
    assert!(ended.contains(r#"{"type":"text","text":"two: \"x\""}]}]"#), "{ended}");
    let went_on = Ask::bare().text(&log(&["more"]));
    assert!(went_on.contains("{\"type\":\"text\",\"text\":\"two: \\\"x\\\" \\n\u{a0}\"}]}"), "{went_on}");

    let marks = vec![Mark { at: MarkPoint::Entry(EntryId::at(3)), ttl: Ttl::FiveMinutes }];
    let marked = Ask { marks, ..Ask::bare() }.text(&log(&[]));
    let block = r#"{"type":"text","text":"two: \"x\"","cache_control":{"type":"ephemeral"}}]}]"#;
    assert!(marked.contains(block), "{marked}");

    let paused = Response {
        finish: Finish { kind: FinishKind::Pause, raw: "pause_turn".into() },
        ..Response::of(vec![words("hm \n")])
    };
    let paused = history(vec![user("go"), Entry::Step(StepRecord::new(paused, vec![]).unwrap())]);
    assert!(
        Ask::bare().text(&paused).contains(r#""text":"hm \n"}]}]"#),
        "a paused turn goes back as it came"
    );
}
