//! The list of tools: every tool in a form the provider takes, or left out by name (case M13).

use agent_core::{Mark, MarkPoint, ModelProfile, ProviderData, RawJson, ToolCard, ToolChoice, Ttl};
use agent_providers::{Transcript, WireFormat, import_request};
use serde_json::Value;

use super::ask::{Ask, talk, text};
use crate::support::{corpus, read};

fn card(name: &str, schema: &str) -> ToolCard {
    ToolCard::new(name, "", &RawJson::parse(schema).unwrap()).unwrap()
}

fn data(provider: &str, json: &str) -> ProviderData {
    ProviderData { provider: provider.into(), json: RawJson::parse(json).unwrap() }
}

/// The list of tools of a request, and what was said of it.
fn list(ask: &Ask) -> (String, Vec<String>) {
    let encoded = ask.fresh(&talk());
    let body = text(&encoded.request.body);
    let tools =
        body.split_once(r#""tools":"#).map_or("", |(_, rest)| rest.split_once(r#","messages""#).unwrap().0);
    (tools.to_owned(), encoded.diagnostics.into_iter().map(|note| note.why).collect())
}

#[test]
fn entries_hold_what_this_provider_is_told_besides() {
    let search = r#"{"type":"web_search_20260318","name":"web_search","max_uses":3,"cache_control":{"type":"ephemeral"}}"#;
    let strict = data(
        "anthropic",
        r#"{"strict":true,"input_examples":[{"n":1.0}],"name":"other","cache_control":null}"#,
    );
    let tools = vec![
        card("look", r#"{"type":"object"}"#).with_data(strict).unwrap(),
        card("rare", r#"{"type":"object"}"#)
            .with_data(data("anthropic", r#"{"defer_loading":true}"#))
            .unwrap(),
        card("theirs", r#"{"type":"object"}"#).with_data(data("openai-chat", r#"{"strict":true}"#)).unwrap(),
        ToolCard::hosted("web_search", data("anthropic", search)).unwrap(),
        ToolCard::hosted("code", data("openai-responses", r#"{"type":"code_interpreter"}"#)).unwrap(),
    ];
    let (sent, notes) = list(&Ask { tools, ..Ask::default() });
    insta::assert_snapshot!(sent.replace("},{\"", "},\n{\""), @r#"
    [{"name":"look","input_schema":{"type":"object"},"strict":true,"input_examples":[{"n":1.0}]},
    {"name":"rare","input_schema":{"type":"object"},"defer_loading":true},
    {"name":"theirs","input_schema":{"type":"object"}},
    {"type":"web_search_20260318","name":"web_search","max_uses":3}]
    "#);
    assert_eq!(
        notes,
        [
            "\"theirs\": strict is for openai-chat only; left out",
            "the tool \"code\" is run by another provider; left out"
        ]
    );
    let again =
        import_request(&WireFormat::Anthropic.into(), format!(r#"{{"tools":{sent}}}"#).as_bytes()).unwrap();
    assert_eq!(
        list(&Ask { tools: again.tools, ..Ask::default() }),
        (sent, Vec::new()),
        "read and written again"
    );
}

#[test]
fn a_marker_stands_on_the_last_tool_of_the_prefix() {
    let deferred = || {
        card("rare", r#"{"type":"object"}"#)
            .with_data(data("anthropic", r#"{"defer_loading":true}"#))
            .unwrap()
    };
    let marks = || vec![Mark { at: MarkPoint::Tools, ttl: Ttl::FiveMinutes }];
    let tools = vec![card("look", r#"{"type":"object"}"#), deferred()];
    let (sent, notes) = list(&Ask { tools, marks: marks(), ..Ask::default() });
    assert!(
        sent.starts_with(r#"[{"name":"look","input_schema":{"type":"object"},"cache_control":"#),
        "{sent}"
    );
    assert_eq!(notes.len(), 0);
    let (sent, notes) = list(&Ask { tools: vec![deferred()], marks: marks(), ..Ask::default() });
    assert!(!sent.contains("cache_control") && notes.len() == 1, "{notes:?}");
}

#[test]
fn a_tool_that_cannot_be_sent_costs_no_other() {
    let bad = || card("bad", r##"{"type":"object","properties":{"x":{"$ref":"#/$defs/Nope"}}}"##);
    let union = card(
        "either",
        r#"{"anyOf":[{"type":"object","properties":{"a":{}}},{"type":"object","properties":{"b":{}}}]}"#,
    );
    let (sent, notes) = list(&Ask { tools: vec![bad(), union], ..Ask::default() });
    assert_eq!(sent, r#"[{"name":"either","input_schema":{"properties":{"a":{},"b":{}},"type":"object"}}]"#);
    assert!(
        notes[0].starts_with(r##"the tool "bad" was left out: its schema refers to "#/$defs/Nope""##),
        "{notes:?}"
    );
    assert!(notes[1].starts_with(r#""either": the union"#), "{notes:?}");
    let only = Ask { tools: vec![bad()], choice: ToolChoice::Tool("bad".into()), ..Ask::default() };
    let (sent, notes) = list(&only);
    assert!(sent.is_empty() && !only.text(&talk()).contains("tool_choice"));
    assert_eq!(notes[1], "the tool is not among the tools that are sent; the model decides");
}

#[test]
fn the_schemas_of_the_case_are_all_sent_but_the_dangling_one() {
    let Some(corpus) = corpus("the_schemas_of_the_case_are_all_sent_but_the_dangling_one") else { return };
    let all: Vec<Value> =
        serde_json::from_slice(&read(&corpus.join("cases/fixtures/M13_tools.json"))).unwrap();
    let tools: Vec<ToolCard> = all
        .iter()
        .map(|tool| card(tool["name"].as_str().unwrap(), &tool["inputSchema"].to_string()))
        .collect();
    let ask = Ask { tools, ..Ask::default() };
    let (sent, notes) = list(&ask);
    let sent: Vec<Value> = serde_json::from_str(&sent).unwrap();
    let names: Vec<&str> = sent.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["flat_ok", "top_anyof", "pure_anyof", "ref_sibling", "nested_defs", "circular", "bool_and_none"]
    );
    for tool in &sent {
        let schema = tool["input_schema"].as_object().unwrap();
        assert_eq!(schema["type"], "object");
        assert!(["anyOf", "oneOf", "allOf", "$ref"].iter().all(|word| !schema.contains_key(*word)), "{tool}");
    }
    assert_eq!(
        notes.iter().filter(|note| note.contains("\"dangling\" was left out")).count(),
        1,
        "{notes:?}"
    );
    assert_eq!(list(&ask), list(&ask), "the same twice");
}

/// Case M13: a request without tools must not choose among them either; no provider takes that.
#[test]
fn what_is_left_out_is_not_chosen() {
    let read = || {
        let bare =
            br#"{"model":"m","settings":{"parallel_tool_calls":false},"history":[{"user":[{"text":"go"}]}]}"#;
        Transcript::read(bare).unwrap().0
    };
    let gone = [
        card("list", r#"{"type":"array"}"#),
        ToolCard::hosted("code", data("nobody", r#"{"type":"code_interpreter"}"#)).unwrap(),
    ];
    for (format, tool) in
        WireFormat::ALL.into_iter().flat_map(|format| gone.iter().map(move |tool| (format, tool)))
    {
        let name = tool.name().to_owned();
        let allowed = |required| ToolChoice::Allowed { tools: vec![name.clone()], required };
        let choices = [
            ToolChoice::Tool(name.clone()),
            ToolChoice::Required,
            ToolChoice::None,
            allowed(true),
            allowed(false),
        ];
        for tool_choice in choices {
            let profile = ModelProfile {
                forced_tool_choice: true,
                allowed_tools: true,
                ..ModelProfile::conservative(format.as_str(), "m")
            };
            let given = Transcript { tools: vec![tool.clone()], tool_choice, ..read() };
            let encoded = given.encode(&format.into(), profile);
            let body = text(&encoded.request.body);
            assert!(!body.to_lowercase().contains("tool"), "{format:?}: {body}");
            assert!(encoded.diagnostics.iter().any(|note| note.what == "tools"), "{format:?}");
        }
    }
}
