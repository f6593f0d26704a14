//! Settings, tools and choices: each is sent, or named with what was sent instead.

use std::collections::BTreeSet;

use agent_core::{
    Effort, ModelProfile, ProviderData, RawJson, RequestSettings, ServiceTier, Setting, Thinking, ToolCard,
    ToolChoice,
};
use agent_providers::{Catalog, Dialect, WireFormat, import_request};

use super::ask::{Ask, encoder_of, history, model, text, user};

/// What this request ends with, and what is told of it.
fn tail(profile: ModelProfile, ask: &Ask) -> (String, String) {
    let encoded = ask.encode(&mut *encoder_of(profile), &history(vec![user("go")]));
    let sent = text(&encoded.request.body);
    let (_, tail) = sent.split_once(r#""text":"go"}]}]"#).unwrap();
    let tail = tail.replace(r#","store":false,"include":["reasoning.encrypted_content"],"stream":true}"#, "");
    let told: Vec<String> = encoded.diagnostics.into_iter().map(|note| note.what).collect();
    (tail, told.join(" "))
}

/// With these settings the body has these fields, and these settings are told of.
#[track_caller]
fn check(settings: RequestSettings, expect: &str, told: &str) {
    let ask = Ask { settings, ..Ask::default() };
    assert_eq!(tail(model(), &ask), (expect.to_owned(), told.to_owned()));
}

/// The same for a model that refuses these.
#[track_caller]
fn check_refused(refuses: &[Setting], settings: RequestSettings, expect: &str, told: &str) {
    let refuses: BTreeSet<Setting> = refuses.iter().copied().collect();
    let ask = Ask { settings, ..Ask::default() };
    let (sent, notes) = tail(ModelProfile { refuses, ..model() }, &ask);
    let sent = sent.replace(r#","store":false,"stream":true}"#, "");
    assert_eq!((sent.as_str(), notes.as_str()), (expect, told));
}

fn none() -> RequestSettings {
    RequestSettings::default()
}

#[test]
fn settings_are_mapped() {
    check(none(), "", "");
    check(RequestSettings { max_output: Some(70), ..none() }, r#","max_output_tokens":70"#, "");
    check(
        RequestSettings { max_output: Some(70_000), ..none() },
        r#","max_output_tokens":9000"#,
        "settings.max_output",
    );
    check(
        RequestSettings { temperature: Some(0.7), top_p: Some(0.5), ..none() },
        r#","temperature":0.7,"top_p":0.5"#,
        "",
    );
    check(
        RequestSettings { temperature: Some(3.0), top_p: Some(f32::NAN), ..none() },
        r#","temperature":2.0"#,
        "settings.temperature settings.top_p",
    );
    for (effort, word, told) in [
        (Effort::Minimal, "minimal", ""),
        (Effort::Low, "low", ""),
        (Effort::Medium, "medium", ""),
        (Effort::High, "high", ""),
        (Effort::XHigh, "xhigh", ""),
        (Effort::Max, "xhigh", "settings.effort"),
    ] {
        let expect = format!(r#","reasoning":{{"effort":"{word}"}}"#);
        check(RequestSettings { effort: Some(effort), ..none() }, &expect, told);
    }
    let thinking = |thinking: Thinking| RequestSettings { thinking: Some(thinking), ..none() };
    check(thinking(Thinking::Disabled), r#","reasoning":{"effort":"none"}"#, "");
    check(thinking(Thinking::Adaptive), "", "");
    check(thinking(Thinking::Budget(2048)), "", "settings.thinking");
    check(
        RequestSettings { effort: Some(Effort::Low), ..thinking(Thinking::Disabled) },
        r#","reasoning":{"effort":"none"}"#,
        "settings.effort",
    );
    for (tier, word) in [
        (ServiceTier::Auto, "auto"),
        (ServiceTier::Standard, "default"),
        (ServiceTier::Priority, "priority"),
        (ServiceTier::Flex, "flex"),
        (ServiceTier::Other("night".into()), "night"),
    ] {
        let expect = format!(r#","service_tier":"{word}""#);
        check(RequestSettings { service_tier: Some(tier), ..none() }, &expect, "");
    }
    check(RequestSettings { fast: true, ..none() }, r#","service_tier":"priority""#, "");
    check(
        RequestSettings { fast: true, service_tier: Some(ServiceTier::Flex), ..none() },
        r#","service_tier":"flex""#,
        "settings.fast",
    );
    check(
        RequestSettings { parallel_tool_calls: Some(false), ..none() },
        r#","parallel_tool_calls":false"#,
        "",
    );
}

#[test]
fn settings_without_a_field_are_told_of() {
    let settings = RequestSettings {
        top_k: Some(4),
        presence_penalty: Some(0.5),
        frequency_penalty: Some(0.5),
        seed: Some(7),
        stop_sequences: vec!["x".into()],
        ..none()
    };
    check(
        settings,
        "",
        "settings.top_k settings.presence_penalty settings.frequency_penalty settings.seed settings.stop_sequences",
    );
    let bare = Ask { settings: RequestSettings { parallel_tool_calls: Some(true), ..none() }, ..Ask::bare() };
    assert_eq!(tail(model(), &bare), (String::new(), "settings.parallel_tool_calls".into()));
}

#[test]
fn what_a_model_refuses_is_not_sent() {
    let all = RequestSettings {
        temperature: Some(0.5),
        top_p: Some(0.5),
        effort: Some(Effort::XHigh),
        thinking: Some(Thinking::Disabled),
        parallel_tool_calls: Some(true),
        service_tier: Some(ServiceTier::Flex),
        ..none()
    };
    use Setting as S;
    check_refused(
        &[S::Sampling, S::Effort, S::ThinkingDisabled, S::ParallelToolCalls, S::ServiceTier],
        all,
        "",
        "settings.temperature settings.top_p settings.thinking settings.effort settings.parallel_tool_calls settings.service_tier",
    );
    let high = RequestSettings { effort: Some(Effort::XHigh), ..none() };
    check_refused(&[S::EffortAboveHigh], high, r#","reasoning":{"effort":"high"}"#, "settings.effort");
    let higher = RequestSettings { effort: Some(Effort::XHigh), ..none() };
    check_refused(&[S::EffortXHigh], higher, r#","reasoning":{"effort":"high"}"#, "settings.effort");
    let least = RequestSettings { effort: Some(Effort::Minimal), ..none() };
    check_refused(&[S::EffortMinimal], least, r#","reasoning":{"effort":"low"}"#, "settings.effort");
    let fast = RequestSettings { fast: true, ..none() };
    check_refused(&[S::Fast], fast, "", "settings.fast");
}

#[test]
fn no_state_is_kept_and_thinking_is_asked_for_sealed() {
    let sent = |model_name: &str| {
        let profile = ModelProfile { model: model_name.into(), ..model() };
        text(&Ask::bare().encode(&mut *encoder_of(profile), &history(vec![user("go")])).request.body)
    };
    assert!(
        sent("gpt-tea")
            .ends_with(r#","store":false,"include":["reasoning.encrypted_content"],"stream":true}"#)
    );
    assert!(sent("gpt-4o-mini").ends_with(r#"],"store":false,"stream":true}"#), "it would be refused");
    let known = |name: &str| {
        let profile = Catalog::builtin().profile("openai-responses", name);
        text(&Ask::bare().encode(&mut *encoder_of(profile), &history(vec![user("go")])).request.body)
    };
    assert!(known("gpt-5-pro").contains("encrypted_content"), "it thinks, and takes no effort");
    assert!(!known("gpt-5-chat-latest").contains("encrypted_content"), "it does not think");
    let json = r#"{"store":true,"include":["web_search_call.results"],"reasoning":{"summary":"auto"}}"#;
    let data = ProviderData { provider: "openai".into(), json: RawJson::parse(json).unwrap() };
    let settings = RequestSettings { extra: vec![data], effort: Some(Effort::Low), ..none() };
    let (sent, told) = tail(model(), &Ask { settings, ..Ask::bare() });
    assert_eq!(
        (sent.as_str(), told.as_str()),
        (
            r#","reasoning":{"effort":"low","summary":"auto"},"store":true,"include":["web_search_call.results"],"stream":true}"#,
            ""
        )
    );
}

fn hosted(json: &str, name: &str, provider: &str) -> ToolCard {
    let json = RawJson::parse(json).unwrap();
    ToolCard::hosted(name, ProviderData { provider: provider.into(), json }).unwrap()
}

#[test]
fn tools_are_entries_of_the_list() {
    let schema = RawJson::parse(r#"{"type":"object"}"#).unwrap();
    let json = RawJson::parse(r#"{"strict":true,"defer_loading":true}"#).unwrap();
    let strict = ToolCard::new("look", "Looks.", &schema).unwrap();
    let tools = vec![
        strict.clone().with_data(ProviderData { provider: "openai".into(), json: json.clone() }).unwrap(),
        strict.with_data(ProviderData { provider: "xai".into(), json }).unwrap(),
        hosted(r#"{"type":"web_search","n":1.0}"#, "web_search", "openai"),
        hosted(r#"{"type":"web_search_20250305"}"#, "search", "anthropic"),
    ];
    let encoded = Ask { tools, ..Ask::bare() }.fresh(&history(vec![user("go")]));
    let sent = text(&encoded.request.body);
    let (_, tools) = sent.split_once(r#""tools":"#).unwrap();
    insta::assert_snapshot!(tools.split_once(r#","input""#).unwrap().0.replace("},{", "},\n{"), @r#"
    [{"type":"function","name":"look","description":"Looks.","parameters":{"properties":{},"type":"object"},"strict":true,"defer_loading":true},
    {"type":"function","name":"look","description":"Looks.","parameters":{"properties":{},"type":"object"},"strict":false},
    {"type":"web_search","n":1.0}]
    "#);
    assert_eq!(encoded.diagnostics.len(), 2, "{:?}", encoded.diagnostics);
}

/// With this choice the body has this field, and so many things are told; sent and imported it is the same choice.
#[track_caller]
fn check_choice(choice: ToolChoice, expect: &str, notes: usize) {
    let mut tools = Ask::default().tools;
    tools.push(hosted(r#"{"type":"web_search","n":1}"#, "web_search", "openai"));
    tools.push(hosted(r#"{"type":"mcp","server_label":"tea"}"#, "mcp:tea", "openai"));
    let ask = Ask { choice: choice.clone(), tools, ..Ask::default() };
    let encoded = ask.fresh(&history(vec![user("go")]));
    let sent = text(&encoded.request.body);
    let (_, tail) = sent.split_once(r#""text":"go"}]}]"#).unwrap();
    assert_eq!((tail.split_once(r#","store""#).unwrap().0, encoded.diagnostics.len()), (expect, notes));
    if notes == 0 {
        let dialect = Dialect { provider: "openai".into(), ..WireFormat::OpenAiResponses.into() };
        let imported = import_request(&dialect, sent.as_bytes()).unwrap();
        let wire =
            |name: &str| if name == "notes.add" { "notes_add_e1253ccd".into() } else { name.to_owned() };
        let choice = match choice {
            ToolChoice::Tool(name) => ToolChoice::Tool(wire(&name)),
            ToolChoice::Allowed { tools, required } => {
                ToolChoice::Allowed { tools: tools.iter().map(|name| wire(name)).collect(), required }
            }
            ToolChoice::Auto | ToolChoice::Required | ToolChoice::None | _ => choice,
        };
        assert_eq!(imported.tool_choice, choice);
    }
}

#[test]
fn a_choice_narrows_the_tools_without_touching_their_list() {
    let allowed = |tools: &[&str], required: bool| ToolChoice::Allowed {
        tools: tools.iter().map(|name| (*name).to_owned()).collect(),
        required,
    };
    check_choice(ToolChoice::Auto, "", 0);
    check_choice(ToolChoice::None, r#","tool_choice":"none""#, 0);
    check_choice(ToolChoice::Required, r#","tool_choice":"required""#, 0);
    check_choice(
        ToolChoice::Tool("notes.add".into()),
        r#","tool_choice":{"type":"function","name":"notes_add_e1253ccd"}"#,
        0,
    );
    check_choice(
        ToolChoice::Tool("mcp:tea".into()),
        r#","tool_choice":{"type":"mcp","server_label":"tea"}"#,
        0,
    );
    check_choice(ToolChoice::Tool("gone".into()), "", 1);
    check_choice(
        allowed(&["look", "web_search"], false),
        r#","tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"look"},{"type":"web_search"}]}"#,
        0,
    );
    check_choice(
        allowed(&["notes.add"], true),
        r#","tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"notes_add_e1253ccd"}]}"#,
        0,
    );
    check_choice(
        allowed(&["look", "gone"], false),
        r#","tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"look"}]}"#,
        1,
    );
    check_choice(allowed(&["gone"], true), r#","tool_choice":"none""#, 1);
}

#[test]
fn a_model_that_cannot_be_narrowed_or_forced_is_told_of() {
    let choice = |required: bool| ToolChoice::Allowed { tools: vec!["look".into()], required };
    let wide = ModelProfile { allowed_tools: false, ..model() };
    let soft = ModelProfile { forced_tool_choice: false, ..model() };
    let check = |profile: &ModelProfile, choice: ToolChoice, expect: &str, notes: usize| {
        let (sent, told) = tail(profile.clone(), &Ask { choice, ..Ask::default() });
        assert_eq!((sent.as_str(), told.matches("tool_choice").count()), (expect, notes));
    };
    check(&wide, choice(false), "", 1);
    check(&wide, choice(true), r#","tool_choice":"required""#, 1);
    check(
        &soft,
        choice(true),
        r#","tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"look"}]}"#,
        1,
    );
    check(&soft, ToolChoice::Required, "", 1);
    let bare = Ask { choice: ToolChoice::Required, ..Ask::bare() };
    assert_eq!(tail(model(), &bare), (String::new(), "tool_choice".into()));
    let bare = Ask { choice: ToolChoice::None, ..Ask::bare() };
    assert_eq!(tail(model(), &bare), (String::new(), String::new()));
}
