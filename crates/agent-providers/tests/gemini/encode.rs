//! What Gemini is sent.

use agent_core::{
    AssistantPart, AssistantText, ContentPart, Entry, EntryId, FilePart, FileSource, History, ModelProfile,
    Note, NoteKind, ProviderData, ProviderPart, Reasoning, RequestSettings, Rewrite, Seal, SystemBlock, Text,
    ToolCard, ToolOutput, UserMessage, UserPart,
};
use proptest::prelude::*;

use super::ask::{Ask, call, encoder, history, own, profile, raw, step, text, user, words};

/// The contents of a request that holds this conversation only.
#[track_caller]
fn contents(model: &str, entries: Vec<Entry>, notes: &[&str]) -> String {
    let (body, given) = Ask::default().body(profile(model), &history(entries));
    assert_eq!(given, notes);
    body.strip_prefix(r#"{"contents":["#).unwrap().strip_suffix("]}").unwrap().to_owned()
}

#[test]
fn a_request_holds_what_stays_first_and_is_the_same_for_streams() {
    let schema =
        raw(r#"{"type":"object","properties":{"at":{"type":"string"}},"additionalProperties":false}"#);
    let ask = Ask {
        system: vec![SystemBlock::new("Be brief.").unwrap(), SystemBlock::new("Be kind.").unwrap()],
        tools: vec![
            ToolCard::new("look", "Looks.", &schema).unwrap(),
            ToolCard::new("notes.add", "", &raw(r#"{"type":"object"}"#)).unwrap(),
            ToolCard::hosted("search", own(r#"{"googleSearch":{}}"#).unwrap()).unwrap(),
            ToolCard::hosted("web", ProviderData { provider: "other".into(), json: raw("{}") }).unwrap(),
        ],
        settings: RequestSettings { max_output: Some(100), ..RequestSettings::default() },
        reminders: vec!["mind the step"],
        ..Ask::default()
    };
    let log = history(vec![user("go")]);
    let (body, notes) = ask.body(profile("gemini-3-flash"), &log);
    assert_eq!(notes, ["tools"]);
    insta::assert_snapshot!(body, @r#"{"systemInstruction":{"parts":[{"text":"Be brief."},{"text":"Be kind."}]},"tools":[{"functionDeclarations":[{"name":"look","description":"Looks.","parameters":{"properties":{"at":{"type":"string"}},"type":"object"}},{"name":"notes_add_e1253ccd","description":""}]},{"googleSearch":{}}],"contents":[{"role":"user","parts":[{"text":"go"},{"text":"mind the step"}]}],"generationConfig":{"maxOutputTokens":100}}"#);
    let streamed = Ask { stream: true, ..ask };
    let encoded = streamed.encode(&mut *encoder(profile("gemini-3-flash")), &log);
    assert_eq!((text(&encoded.request.body), encoded.request.stream), (body, true));
}

#[test]
fn calls_of_one_answer_stand_in_one_content_with_their_signatures() {
    let thought = Reasoning {
        text: "hm".into(),
        seal: Some(Seal::Signature { provider: "gemini".into(), value: "dGg=".into() }),
    };
    let said =
        AssistantText { text: Text::new("I look.").unwrap(), data: own(r#"{"thoughtSignature":"dHg="}"#) };
    let entries = vec![
        user("go"),
        step(
            vec![
                AssistantPart::Reasoning(thought),
                AssistantPart::Text(said),
                call(
                    "call_0",
                    "look",
                    r#"{"z":1.0,"a":12345678901234567890}"#,
                    own(r#"{"thoughtSignature":"c2ln"}"#),
                ),
                call("fc_7", "notes.add", "{}", own(r#"{"id":"fc_7"}"#)),
            ],
            vec![ToolOutput::text("seen"), ToolOutput::error("no")],
        ),
        user("and then?"),
    ];
    insta::assert_snapshot!(contents("gemini-3-flash", entries, &[]), @r#"{"role":"user","parts":[{"text":"go"}]},{"role":"model","parts":[{"text":"hm","thought":true,"thoughtSignature":"dGg="},{"text":"I look.","thoughtSignature":"dHg="},{"functionCall":{"name":"look","args":{"z":1.0,"a":12345678901234567890}},"thoughtSignature":"c2ln"},{"functionCall":{"id":"fc_7","name":"notes_add_e1253ccd","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"look","response":{"result":"seen"}}},{"functionResponse":{"id":"fc_7","name":"notes_add_e1253ccd","response":{"error":"no"}}},{"text":"and then?"}]}"#);
}

#[test]
fn the_first_call_of_another_model_says_that_it_is_not_signed() {
    let foreign =
        || Some(ProviderData { provider: "anthropic".into(), json: raw(r#"{"thoughtSignature":"theirs"}"#) });
    let entries = || {
        vec![
            user("go"),
            step(
                vec![call("a", "look", "{}", foreign()), call("b", "look", "{}", None)],
                vec![ToolOutput::text("1"), ToolOutput::text("2")],
            ),
        ]
    };
    let sent = contents("gemini-3-flash", entries(), &["assistant.calls"]);
    let (first, second) = sent.split_once(r#"{"functionCall":{"name":"look","args":{}}}"#).unwrap();
    assert!(first.ends_with(
        r#"{"functionCall":{"name":"look","args":{}},"thoughtSignature":"skip_thought_signature_validator"},"#
    ));
    assert!(!second.contains("Signature") && !sent.contains("theirs") && !sent.contains(r#""id""#), "{sent}");
    assert!(
        !contents("gemini-2.5-flash", entries(), &["assistant.calls"]).contains("Signature"),
        "older models check nothing"
    );
}

#[test]
fn what_others_sealed_or_said_in_their_own_way_is_not_sent() {
    let sealed = |seal| AssistantPart::Reasoning(Reasoning { text: "hm".into(), seal });
    let other = |provider: &str, kind: &str, json: &str| {
        AssistantPart::Provider(ProviderPart { provider: provider.into(), kind: kind.into(), raw: raw(json) })
    };
    let parts = vec![
        sealed(None),
        sealed(Some(Seal::Signature { provider: "anthropic".into(), value: "s".into() })),
        sealed(Some(Seal::Redacted { provider: "gemini".into(), data: "d".into() })),
        sealed(Some(Seal::Item { provider: "gemini".into(), raw: raw(r#"{"text":"own","thought":true}"#) })),
        other("gemini", "executableCode", r#"{"executableCode":{"code":"1.0"},"thoughtSignature":"c"}"#),
        other("gemini", "groundingMetadata", r#"{"groundingMetadata":{"a":1}}"#),
        other("anthropic", "server_tool_use", r#"{"type":"server_tool_use"}"#),
    ];
    let sent = contents(
        "gemini-3-flash",
        vec![user("go"), step(parts, vec![])],
        &["assistant.reasoning", "assistant.provider_part", "messages"],
    );
    assert_eq!(
        sent.split_once(r#"{"role":"model","parts":["#).unwrap().1,
        r#"{"text":"own","thought":true},{"executableCode":{"code":"1.0"},"thoughtSignature":"c"}]}"#
    );
}

#[test]
fn results_are_objects() {
    let png =
        || FilePart { media_type: "image/png".into(), source: FileSource::Base64("iVBO".into()), name: None };
    let check = |output: ToolOutput, expect: &str| {
        let sent = contents(
            "gemini-2.5-flash",
            vec![user("go"), step(vec![call("a", "look", "[1]", None)], vec![output])],
            &[],
        );
        let (before, results) = sent.split_once(r#"{"functionResponse":{"name":"look","response":"#).unwrap();
        assert!(before.contains(r#""args":{"invalid_json":"[1]"}"#), "{before}");
        assert_eq!(results.strip_suffix("]}").unwrap(), expect);
    };
    check(ToolOutput::text("seen"), r#"{"result":"seen"}}}"#);
    check(ToolOutput::error("no"), r#"{"error":"no"}}}"#);
    check(ToolOutput::denied("never"), r#"{"error":"never"}}}"#);
    check(ToolOutput::Json(raw(r#"{ "n":1.0 }"#)), r#"{ "n":1.0 }}}"#);
    check(ToolOutput::Json(raw("[1.0]")), r#"{"result":[1.0]}}}"#);
    let shot = vec![ContentPart::Text(Text::new("a shot").unwrap()), ContentPart::File(png())];
    check(
        ToolOutput::Content(shot),
        concat!(
            r#"{"result":"a shot\n[image/png: it follows the results]"}}},"#,
            r#"{"text":"Files that look gave:"},{"inlineData":{"mimeType":"image/png","data":"iVBO"}}"#
        ),
    );
}

#[test]
fn results_are_clipped_as_the_view_says() {
    let long = || "x".repeat(400);
    let file = FilePart { media_type: "image/png".into(), source: FileSource::Base64(long()), name: None };
    let outputs = vec![
        ToolOutput::text(long()),
        ToolOutput::Json(raw(&format!("{{\"a\":\"{}\"}}", long()))),
        ToolOutput::Content(vec![ContentPart::File(file)]),
    ];
    let calls = ["a", "b", "c"].map(|id| call(id, "look", "{}", None)).to_vec();
    let mut log = history(vec![user("go"), step(calls, outputs), user("on")]);
    log.push(Entry::Boundary(Rewrite::Cleared {
        results_to: EntryId::at(2),
        keep_bytes: 20,
        strip_reasoning: false,
        offloaded: false,
    }))
    .unwrap();
    let (sent, _) = Ask::default().body(profile("gemini-2.5-flash"), &log);
    assert_eq!(sent.matches("bytes removed]").count(), 3, "{sent}");
    assert!(sent.len() < 1_000 && !sent.contains("inlineData"), "{sent}");
}

#[test]
fn files_are_sent_or_named() {
    let file = |media: &str, source: FileSource| {
        UserPart::File(FilePart { media_type: media.into(), source, name: Some("f".into()) })
    };
    let check = |model: ModelProfile, part: UserPart, expect: &str, notes: usize| {
        let log = history(vec![Entry::User(UserMessage::new(vec![part]).unwrap())]);
        let (sent, given) = Ask::default().body(model, &log);
        assert_eq!(
            (sent.as_str(), given.len()),
            (format!(r#"{{"contents":[{{"role":"user","parts":[{expect}]}}]}}"#).as_str(), notes)
        );
    };
    let bytes = || FileSource::Base64("AA==".into());
    let sees = || profile("gemini-3-flash");
    check(sees(), file("image/png", bytes()), r#"{"inlineData":{"mimeType":"image/png","data":"AA=="}}"#, 0);
    check(
        sees(),
        file("audio/mpeg", bytes()),
        r#"{"inlineData":{"mimeType":"audio/mpeg","data":"AA=="}}"#,
        0,
    );
    let url = || FileSource::Url("https://a/b".into());
    check(
        sees(),
        file("video/mp4", url()),
        r#"{"fileData":{"mimeType":"video/mp4","fileUri":"https://a/b"}}"#,
        0,
    );
    check(sees(), file("image/*", url()), r#"{"fileData":{"fileUri":"https://a/b"}}"#, 0);
    let uploaded = |provider: &str| FileSource::Reference { provider: provider.into(), id: "files/1".into() };
    check(
        sees(),
        file("image/png", uploaded("gemini")),
        r#"{"fileData":{"mimeType":"image/png","fileUri":"files/1"}}"#,
        0,
    );
    check(
        sees(),
        file("image/png", uploaded("openai")),
        r#"{"text":"[f (image/png): not sent, it was uploaded to another provider]"}"#,
        1,
    );
    let blind = ModelProfile { vision: false, ..sees() };
    check(
        blind,
        file("image/png", bytes()),
        r#"{"text":"[f (image/png): not sent, the model does not see images]"}"#,
        1,
    );
}

#[test]
fn every_conversation_begins_with_the_user() {
    let sent = contents("gemini-3-flash", vec![step(vec![words("hi")], vec![]), user("yes?")], &[]);
    insta::assert_snapshot!(sent, @r#"{"role":"user","parts":[{"text":"(no content)"}]},{"role":"model","parts":[{"text":"hi"}]},{"role":"user","parts":[{"text":"yes?"}]}"#);
    let sent = contents("gemini-3-flash", vec![user("a"), user("b"), step(vec![], vec![])], &["messages"]);
    insta::assert_snapshot!(sent, @r#"{"role":"user","parts":[{"text":"a"},{"text":"b"}]},{"role":"model","parts":[{"text":"(no content)"}]}"#);
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

/// What a strict server asks of contents: roles take turns from the user on, no text is blank, and a content with
/// calls is followed by as many results, which come first.
fn is_valid(body: &str) -> bool {
    let request: serde_json::Value = serde_json::from_str(body).unwrap();
    let mut open = 0;
    let mut next = "user";
    for content in request["contents"].as_array().unwrap() {
        let parts = content["parts"].as_array().unwrap();
        let results = parts.iter().take_while(|part| part.get("functionResponse").is_some()).count();
        let all = parts.iter().filter(|part| part.get("functionResponse").is_some()).count();
        let is_blank =
            |part: &serde_json::Value| part["text"].as_str().is_some_and(|text| text.trim().is_empty());
        if content["role"] != next
            || parts.is_empty()
            || parts.iter().any(is_blank)
            || (results, all) != (open, open)
        {
            return false;
        }
        open = parts.iter().filter(|part| part.get("functionCall").is_some()).count();
        next = if next == "user" { "model" } else { "user" };
    }
    open == 0
}

proptest! {
    /// With boundaries in it, a conversation that grew entry by entry has the bytes of one that is encoded at once,
    /// and every request is one that the provider takes.
    #[test]
    fn growing_gives_the_bytes_of_starting_anew(kinds in proptest::collection::vec((0u8..6, 0usize..3), 1..30)) {
        let (mut used, mut log) = (encoder(profile("gemini-3-flash")), History::new());
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
            prop_assert_eq!(&sent, &ask.body(profile("gemini-3-flash"), &log).0);
            prop_assert!(is_valid(&sent), "{}", sent);
        }
    }
}
