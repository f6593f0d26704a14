//! Settings: each is sent in the provider's words, or named with what was sent instead.

use std::collections::BTreeSet;

use agent_core::{
    Effort, ModelProfile, RequestSettings, ServiceTier, Setting, Thinking, ToolCard, ToolChoice,
};

use super::ask::{Ask, history, own, profile, raw, user};

/// What stands behind the contents, and what was noted.
fn tail(model: ModelProfile, settings: RequestSettings, choice: ToolChoice) -> (String, Vec<String>) {
    let tools = vec![ToolCard::new("notes.add", "Adds.", &raw(r#"{"type":"object"}"#)).unwrap()];
    let (body, notes) =
        Ask { tools, settings, choice, ..Ask::default() }.body(model, &history(vec![user("go")]));
    let (_, tail) = body.split_once(r#""parts":[{"text":"go"}]}]"#).unwrap();
    (tail.strip_suffix('}').unwrap().trim_start_matches(',').to_owned(), notes)
}

#[track_caller]
fn check(model: &str, settings: RequestSettings, expect: &str, notes: &[&str]) {
    let given = tail(profile(model), settings, ToolChoice::Auto);
    assert_eq!((given.0.as_str(), given.1), (expect, notes.iter().map(|note| (*note).to_owned()).collect()));
}

const OLD: &str = "gemini-2.5-flash";
const NEW: &str = "gemini-3-flash";

#[test]
fn limits_and_sampling() {
    let all = RequestSettings {
        max_output: Some(50),
        temperature: Some(0.7),
        top_p: Some(0.5),
        top_k: Some(40),
        seed: Some(-7),
        presence_penalty: Some(0.5),
        frequency_penalty: Some(-0.5),
        stop_sequences: vec!["a\"".into()],
        service_tier: Some(ServiceTier::Flex),
        parallel_tool_calls: Some(true),
        ..RequestSettings::default()
    };
    check(
        NEW,
        all.clone(),
        concat!(
            r#""generationConfig":{"maxOutputTokens":50,"temperature":0.7,"topP":0.5,"topK":40,"seed":-7,"#,
            r#""presencePenalty":0.5,"frequencyPenalty":-0.5,"stopSequences":["a\""]},"serviceTier":"flex""#
        ),
        &[],
    );
    use Setting as S;
    let refuses = BTreeSet::from([S::Sampling, S::Penalties, S::Seed, S::StopSequences, S::ServiceTier]);
    let (sent, notes) = tail(ModelProfile { refuses, ..profile(NEW) }, all, ToolChoice::Auto);
    assert_eq!(
        (sent.as_str(), notes.len()),
        (r#""generationConfig":{"maxOutputTokens":50}"#, 8),
        "{notes:?}"
    );
    let extreme = RequestSettings {
        max_output: Some(1_000_000),
        temperature: Some(9.0),
        top_p: Some(f32::NAN),
        seed: Some(1 << 40),
        frequency_penalty: Some(-3.0),
        stop_sequences: (0..7).map(|n| n.to_string()).collect(),
        parallel_tool_calls: Some(false),
        fast: true,
        ..RequestSettings::default()
    };
    check(
        NEW,
        extreme,
        concat!(
            r#""generationConfig":{"maxOutputTokens":65536,"temperature":2.0,"frequencyPenalty":-2.0,"#,
            r#""stopSequences":["0","1","2","3","4"]}"#
        ),
        &[
            "settings.max_output",
            "settings.temperature",
            "settings.top_p",
            "settings.seed",
            "settings.frequency_penalty",
            "settings.stop_sequences",
            "settings.parallel_tool_calls",
            "settings.fast",
        ],
    );
}

#[test]
fn thinking_is_told_by_a_budget_or_by_a_level() {
    let set = |thinking: Option<Thinking>, effort: Option<Effort>| RequestSettings {
        thinking,
        effort,
        ..RequestSettings::default()
    };
    let think = |inner: &str| format!(r#""generationConfig":{{"thinkingConfig":{{{inner}}}}}"#);
    let budget = Some(Thinking::Budget(512));
    for model in [OLD, NEW] {
        check(model, set(None, None), "", &[]);
        check(model, set(budget, None), &think(r#""thinkingBudget":512,"includeThoughts":true"#), &[]);
    }
    let adaptive = Some(Thinking::Adaptive);
    check(OLD, set(adaptive, None), &think(r#""thinkingBudget":-1,"includeThoughts":true"#), &[]);
    check(NEW, set(adaptive, None), &think(r#""includeThoughts":true"#), &[]);
    check(OLD, set(Some(Thinking::Disabled), None), &think(r#""thinkingBudget":0"#), &[]);
    let off = Some(Thinking::Disabled);
    check(NEW, set(off, None), &think(r#""thinkingLevel":"minimal""#), &["settings.thinking"]);
    check("gemini-3-pro", set(off, None), &think(r#""thinkingLevel":"low""#), &["settings.thinking"]);
    check(OLD, set(None, Some(Effort::Low)), "", &["settings.effort"]);
    check(NEW, set(None, Some(Effort::Low)), &think(r#""thinkingLevel":"low""#), &[]);
    check(NEW, set(None, Some(Effort::Max)), &think(r#""thinkingLevel":"xhigh""#), &["settings.effort"]);
    check(
        NEW,
        set(adaptive, Some(Effort::High)),
        &think(r#""thinkingLevel":"high","includeThoughts":true"#),
        &[],
    );
    check(
        NEW,
        set(budget, Some(Effort::High)),
        &think(r#""thinkingBudget":512,"includeThoughts":true"#),
        &["settings.effort"],
    );
    let refuses = |setting: Setting| ModelProfile { refuses: BTreeSet::from([setting]), ..profile(NEW) };
    for (setting, thinking) in [
        (Setting::ThinkingAdaptive, adaptive),
        (Setting::ThinkingBudget, budget),
        (Setting::ThinkingDisabled, off),
    ] {
        let given = tail(refuses(setting), set(thinking, None), ToolChoice::Auto);
        assert_eq!(given, (String::new(), vec!["settings.thinking".to_owned()]));
    }
    let given = tail(refuses(Setting::Effort), set(None, Some(Effort::Low)), ToolChoice::Auto);
    assert_eq!(given, (String::new(), vec!["settings.effort".to_owned()]));
    let (sent, _) = tail(refuses(Setting::EffortAboveHigh), set(None, Some(Effort::Max)), ToolChoice::Auto);
    assert_eq!(sent, think(r#""thinkingLevel":"high""#));
}

#[test]
fn choices_of_tools() {
    let calling = |inner: &str| format!(r#""toolConfig":{{"functionCallingConfig":{{{inner}}}}}"#);
    let check = |model: ModelProfile, choice: ToolChoice, expect: &str, notes: usize| {
        let (sent, given) = tail(model, RequestSettings::default(), choice);
        assert_eq!((sent.as_str(), given.len()), (expect, notes));
    };
    let named = |name: &str| ToolChoice::Tool(name.into());
    check(profile(NEW), ToolChoice::Auto, "", 0);
    check(profile(NEW), ToolChoice::Required, &calling(r#""mode":"ANY""#), 0);
    check(profile(NEW), ToolChoice::None, &calling(r#""mode":"NONE""#), 0);
    let (sent, notes) = tail(profile(NEW), RequestSettings::default(), named("notes.add"));
    assert!(sent.starts_with(
        r#""toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["notes_add_"#
    ));
    assert!(notes.is_empty(), "{notes:?}");
    check(profile(NEW), named("gone"), "", 1);
    let narrow =
        |required: bool| ToolChoice::Allowed { tools: vec!["notes.add".into(), "gone".into()], required };
    check(profile(NEW), narrow(false), "", 1);
    let narrows = ModelProfile { allowed_tools: true, ..profile(NEW) };
    for (required, mode) in [(false, "VALIDATED"), (true, "ANY")] {
        let (sent, notes) = tail(narrows.clone(), RequestSettings::default(), narrow(required));
        let expect = format!(r#"{{"mode":"{mode}","allowedFunctionNames":["notes_add_"#);
        assert!(sent.contains(&expect) && !sent.contains("gone") && notes.is_empty(), "{sent}: {notes:?}");
    }
    check(ModelProfile { forced_tool_choice: false, ..profile(NEW) }, ToolChoice::Required, "", 1);
}

#[test]
fn own_fields_are_laid_over_ours() {
    let extra = own(
        r#"{"generationConfig":{"responseMimeType":"application/json","temperature":0.1,"candidateCount":2,
            "thinkingConfig":{"includeThoughts":false}},"safetySettings":[{"category":"c"}],"cachedContent":"cachedContents/1"}"#,
    );
    let settings = RequestSettings {
        temperature: Some(0.5),
        thinking: Some(Thinking::Budget(9)),
        extra: extra.into_iter().collect(),
        ..RequestSettings::default()
    };
    check(
        NEW,
        settings,
        concat!(
            r#""generationConfig":{"temperature":0.1,"thinkingConfig":{"thinkingBudget":9,"includeThoughts":false},"#,
            r#""responseMimeType":"application/json","candidateCount":2},"safetySettings":[{"category":"c"}],"#,
            r#""cachedContent":"cachedContents/1""#
        ),
        &["settings.extra"],
    );
}
