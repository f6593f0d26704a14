//! What Ollama is sent.

use agent_core::{
    AssistantPart, ContentPart, Effort, Entry, EntryId, FilePart, FileSource, History, ModelProfile, Note,
    NoteKind, ProviderData, ProviderPart, Reasoning, RequestSettings, Rewrite, Seal, Setting, SystemBlock,
    Text, Thinking, ToolCard, ToolChoice, ToolOutput, UserMessage, UserPart,
};
use proptest::prelude::*;

use super::ask::{Ask, call, encoder, history, own, profile, raw, step, text, user, words};

/// The messages of a request that holds this conversation only.
#[track_caller]
fn messages(entries: Vec<Entry>, notes: &[&str]) -> String {
    let (body, given) = Ask::default().body(profile("m"), &history(entries));
    assert_eq!(given, notes);
    let body = body.strip_prefix(r#"{"model":"m","messages":["#).unwrap();
    body.strip_suffix(r#"],"stream":false}"#).unwrap().to_owned()
}

#[test]
fn a_request_holds_what_stays_first_and_streaming_changes_its_end_only() {
    let ask = Ask {
        system: vec![SystemBlock::new("Be brief.").unwrap(), SystemBlock::new("Be kind.").unwrap()],
        tools: vec![
            ToolCard::new("notes.add", "Adds.", &raw(r#"{"type":"object"}"#)).unwrap(),
            ToolCard::hosted("web", ProviderData { provider: "other".into(), json: raw("{}") }).unwrap(),
        ],
        settings: RequestSettings { max_output: Some(100), ..RequestSettings::default() },
        reminders: vec!["mind the step"],
        ..Ask::default()
    };
    let log = history(vec![user("go")]);
    let (body, notes) = ask.body(profile("leaf:4b"), &log);
    assert_eq!(notes, ["tools"]);
    insta::assert_snapshot!(body, @r#"{"model":"leaf:4b","tools":[{"type":"function","function":{"name":"notes_add_e1253ccd","description":"Adds.","parameters":{"properties":{},"type":"object"}}}],"messages":[{"role":"system","content":"Be brief.\n\nBe kind."},{"role":"user","content":"go"},{"role":"user","content":"mind the step"}],"options":{"num_predict":100},"stream":false}"#);
    let streamed = Ask { stream: true, ..ask };
    let (streamed, _) = streamed.body(profile("leaf:4b"), &log);
    assert_eq!(streamed.strip_suffix("true}"), body.strip_suffix("false}"));
    let alone = Ask { system: vec![SystemBlock::new("Be brief.").unwrap()], ..Ask::default() };
    let (alone, _) = alone.body(profile("m"), &History::new());
    assert_eq!(alone, r#"{"model":"m","messages":[{"role":"system","content":"Be brief."}],"stream":false}"#);
}

#[test]
fn one_message_holds_all_that_a_model_said() {
    let thought = |text: &str, seal| AssistantPart::Reasoning(Reasoning { text: text.into(), seal });
    let other = |provider: &str| {
        AssistantPart::Provider(ProviderPart { provider: provider.into(), kind: "x".into(), raw: raw("{}") })
    };
    let entries = vec![
        user("go"),
        step(
            vec![
                thought("hm", None),
                thought("theirs", Some(Seal::Signature { provider: "anthropic".into(), value: "s".into() })),
                words("I look."),
                call("call_0", "look", r#"{"z":1.0,"a":12345678901234567890}"#, None),
                call("own", "notes.add", "[1]", own(r#"{"id":"own"}"#)),
                other("ollama"),
                other("anthropic"),
            ],
            vec![ToolOutput::text("seen"), ToolOutput::error("no")],
        ),
        user("and then?"),
        step(vec![], vec![]),
    ];
    insta::assert_snapshot!(messages(entries, &["assistant.reasoning", "assistant.provider_part"]), @r#"{"role":"user","content":"go"},{"role":"assistant","content":"I look.","thinking":"hm","tool_calls":[{"type":"function","function":{"name":"look","arguments":{"z":1.0,"a":12345678901234567890}}},{"id":"own","type":"function","function":{"name":"notes_add_e1253ccd","arguments":{"invalid_json":"[1]"}}}]},{"role":"tool","tool_name":"look","content":"seen"},{"role":"tool","tool_name":"notes_add_e1253ccd","tool_call_id":"own","content":"no"},{"role":"user","content":"and then?"},{"role":"assistant","content":"(no content)"}"#);
}

#[test]
fn images_of_results_follow_all_results() {
    let png = |source| FilePart { media_type: "image/png".into(), source, name: Some("shot".into()) };
    let shot = ToolOutput::Content(vec![
        ContentPart::Text(Text::new("a shot").unwrap()),
        ContentPart::File(png(FileSource::Base64("iVBO".into()))),
    ]);
    let address = ToolOutput::Content(vec![ContentPart::File(png(FileSource::Url("https://a/b".into())))]);
    let calls = ["a", "b", "c"].map(|id| call(id, "look", "{}", None)).to_vec();
    let outputs = vec![shot, address, ToolOutput::Json(raw(r#"{ "n":1.0 }"#))];
    insta::assert_snapshot!(messages(vec![user("go"), step(calls, outputs)], &["file"]), @r#"{"role":"user","content":"go"},{"role":"assistant","content":"","tool_calls":[{"type":"function","function":{"name":"look","arguments":{}}},{"type":"function","function":{"name":"look","arguments":{}}},{"type":"function","function":{"name":"look","arguments":{}}}]},{"role":"tool","tool_name":"look","content":"a shot\n[shot (image/png): it follows the results]"},{"role":"tool","tool_name":"look","content":"[shot (image/png): not sent, this provider fetches no addresses; send the bytes]"},{"role":"tool","tool_name":"look","content":"{ \"n\":1.0 }"},{"role":"user","content":"Images that look gave:","images":["iVBO"]}"#);
}

#[test]
fn files_are_sent_or_named() {
    let check = |media: &str, source: FileSource, vision: bool, expect: &str| {
        let file = UserPart::File(FilePart { media_type: media.into(), source, name: None });
        let log = history(vec![Entry::User(UserMessage::new(vec![file]).unwrap())]);
        let (body, notes) = Ask::default().body(ModelProfile { vision, ..profile("m") }, &log);
        assert!(body.contains(expect), "{body}");
        assert_eq!(notes.len(), usize::from(expect.contains("not sent")));
    };
    let bytes = || FileSource::Base64("AA==".into());
    check("image/png", bytes(), true, r#"{"role":"user","content":"","images":["AA=="]}"#);
    check("image/png", bytes(), false, "not sent, the model does not see images");
    check("application/pdf", bytes(), true, "not sent, only images are taken");
    let words = FileSource::Base64("YSBjdXA=".into());
    check("text/plain", words, true, r#"{"role":"user","content":"a cup"}"#);
    check("text/plain", FileSource::Url("https://a/b".into()), true, "not sent, only images are taken");
    check(
        "image/png",
        FileSource::Url("https://a/b".into()),
        true,
        "not sent, this provider fetches no addresses",
    );
    let uploaded = FileSource::Reference { provider: "ollama".into(), id: "x".into() };
    check("image/png", uploaded, true, "not sent, nothing is uploaded");
}

/// These settings and this choice give this tail, and these notes.
#[track_caller]
fn check_tail(
    model: ModelProfile,
    settings: RequestSettings,
    choice: ToolChoice,
    expect: &str,
    notes: &[&str],
) {
    let tools = vec![ToolCard::new("look", "Looks.", &raw("{}")).unwrap()];
    let (body, given) =
        Ask { tools, settings, choice, ..Ask::default() }.body(model, &history(vec![user("go")]));
    let (_, tail) = body.split_once(r#""content":"go"}]"#).unwrap();
    assert_eq!(
        (tail.strip_suffix(r#","stream":false}"#).unwrap(), given),
        (expect, notes.iter().map(|note| (*note).to_owned()).collect())
    );
}

#[test]
fn settings_are_mapped_or_named() {
    let all = RequestSettings {
        max_output: Some(9_000),
        temperature: Some(0.7),
        top_p: Some(0.5),
        top_k: Some(40),
        seed: Some(1 << 40),
        presence_penalty: Some(0.5),
        frequency_penalty: Some(-0.5),
        stop_sequences: vec!["a\"".into()],
        parallel_tool_calls: Some(false),
        service_tier: Some(agent_core::ServiceTier::Flex),
        fast: true,
        extra: own(r#"{"format":"json","keep_alive":"5m","options":{"num_ctx":8192,"temperature":0.1}}"#)
            .into_iter()
            .collect(),
        ..RequestSettings::default()
    };
    check_tail(
        profile("m"),
        all.clone(),
        ToolChoice::Required,
        concat!(
            r#","options":{"num_predict":4096,"temperature":0.1,"top_p":0.5,"top_k":40,"seed":1099511627776,"#,
            r#""presence_penalty":0.5,"frequency_penalty":-0.5,"stop":["a\""],"num_ctx":8192},"#,
            r#""format":"json","keep_alive":"5m""#
        ),
        &[
            "settings.max_output",
            "tool_choice",
            "settings.parallel_tool_calls",
            "settings.service_tier",
            "settings.fast",
        ],
    );
    use Setting as S;
    let refuses = [S::Sampling, S::Penalties, S::Seed, S::StopSequences].into_iter().collect();
    let few = RequestSettings {
        max_output: None,
        extra: vec![],
        parallel_tool_calls: None,
        service_tier: None,
        fast: false,
        ..all
    };
    let model = ModelProfile { refuses, ..profile("m") };
    let (body, notes) = Ask { settings: few, ..Ask::default() }.body(model, &history(vec![user("go")]));
    assert!(!body.contains("options") && notes.len() == 7, "{notes:?}: {body}");
}

#[test]
fn thinking_is_a_flag_or_a_level() {
    let check = |thinking: Option<Thinking>, effort: Option<Effort>, expect: &str, notes: &[&str]| {
        let settings = RequestSettings { thinking, effort, ..RequestSettings::default() };
        check_tail(profile("m"), settings, ToolChoice::Auto, expect, notes);
    };
    let (adaptive, budget, off) =
        (Some(Thinking::Adaptive), Some(Thinking::Budget(9)), Some(Thinking::Disabled));
    check(None, None, "", &[]);
    check(adaptive, None, r#","think":true"#, &[]);
    check(off, None, r#","think":false"#, &[]);
    check(budget, None, r#","think":true"#, &["settings.thinking"]);
    check(None, Some(Effort::Medium), r#","think":"medium""#, &[]);
    check(adaptive, Some(Effort::High), r#","think":"high""#, &[]);
    check(None, Some(Effort::Minimal), r#","think":"low""#, &["settings.effort"]);
    check(None, Some(Effort::Max), r#","think":"high""#, &["settings.effort"]);
    check(off, Some(Effort::Low), r#","think":false"#, &["settings.effort"]);
    for (setting, thinking, effort) in [
        (Setting::ThinkingAdaptive, adaptive, None),
        (Setting::ThinkingBudget, budget, None),
        (Setting::ThinkingDisabled, off, None),
        (Setting::Effort, None, Some(Effort::Low)),
    ] {
        let model = ModelProfile { refuses: [setting].into_iter().collect(), ..profile("m") };
        let settings = RequestSettings { thinking, effort, ..RequestSettings::default() };
        let what = if effort.is_some() { "settings.effort" } else { "settings.thinking" };
        check_tail(model, settings, ToolChoice::Auto, "", &[what]);
    }
}

fn entry(kind: u8, n: usize) -> Entry {
    match kind {
        0 => user(&format!("u{n} \u{1F600}")),
        1 => Entry::Note(Note { kind: NoteKind::Reminder, text: Text::new(format!("n{n}")).unwrap() }),
        2 => step(vec![words(&format!("s{n}"))], vec![]),
        _ => step(
            vec![words(&format!("s{n}")), call(&format!("c{n}"), "look", &format!(r#"{{"n":{n}.0}}"#), None)],
            vec![ToolOutput::text(format!("r{n}"))],
        ),
    }
}

/// What a strict server asks of messages: no content is blank but beside calls, and each message with calls is
/// followed by as many results.
fn is_valid(body: &str) -> bool {
    let request: serde_json::Value = serde_json::from_str(body).unwrap();
    let mut open = 0;
    for message in request["messages"].as_array().unwrap() {
        let calls = message["tool_calls"].as_array().map_or(0, Vec::len);
        let is_blank = message["content"].as_str().is_none_or(|text| text.trim().is_empty());
        if (is_blank && calls == 0) || ((message["role"] == "tool") != (open > 0)) {
            return false;
        }
        open = if message["role"] == "tool" { open - 1 } else { calls };
    }
    open == 0
}

proptest! {
    /// With boundaries in it, a conversation that grew entry by entry has the bytes of one that is encoded at once,
    /// and every request is one that the provider takes.
    #[test]
    fn growing_gives_the_bytes_of_starting_anew(kinds in proptest::collection::vec((0u8..6, 0usize..3), 1..30)) {
        let (mut used, mut log) = (encoder(profile("m")), History::new());
        for (n, (kind, back)) in kinds.into_iter().enumerate() {
            let reach = EntryId::at(log.len().saturating_sub(back));
            let _refused = log.push(match kind {
                4 => Entry::Boundary(Rewrite::Summary {
                    text: Text::new(format!("sum{n}")).unwrap(),
                    kept_from: reach,
                    strip_reasoning: back > 0,
                }),
                5 => Entry::Boundary(Rewrite::Cleared { results_to: reach, keep_bytes: 1, strip_reasoning: false, offloaded: false }),
                kind => entry(kind, n),
            });
            let ask = Ask::default();
            let sent = text(&ask.encode(&mut *used, &log).request.body);
            prop_assert_eq!(&sent, &ask.body(profile("m"), &log).0);
            prop_assert!(is_valid(&sent), "{}", sent);
        }
    }
}
