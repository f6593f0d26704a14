//! Settings that a model cannot take are changed with a note, and never refused by the provider (requirement M12).

use agent_core::{Effort, RequestSettings, ServiceTier, Thinking, ToolChoice};

use super::ask::{Ask, encoder_of, profile, talk, text};

const OLD: &str = "claude-haiku-4-5";
const MID: &str = "claude-sonnet-4-6";
const NEW: &str = "claude-opus-5-5";
const BIG: &str = "claude-opus-5";

/// With these settings on this model these fields stand behind the messages, and these settings are told of.
#[track_caller]
fn check_tail(model: &str, ask: &Ask, fields: &str, told: &str) {
    let encoded = ask.encode(&mut *encoder_of(profile(model)), &talk());
    let sent = text(&encoded.request.body);
    let (_, tail) = sent.split_once("],\"max_tokens\":9000").unwrap();
    let tail = tail.strip_suffix(",\"stream\":true}").unwrap().trim_start_matches(',');
    let notes: Vec<&str> =
        encoded.diagnostics.iter().map(|note| note.what.trim_start_matches("settings.")).collect();
    assert_eq!((tail, notes.join(" ").as_str()), (fields, told), "{model} {:?}", encoded.diagnostics);
}

/// The same with this change to settings that are all absent.
#[track_caller]
fn check(model: &str, set: impl FnOnce(&mut RequestSettings), fields: &str, told: &str) {
    let mut settings = RequestSettings { max_output: Some(9000), ..RequestSettings::default() };
    set(&mut settings);
    check_tail(model, &Ask { settings, ..Ask::default() }, fields, told);
}

#[test]
fn sampling() {
    check(MID, |s| s.temperature = Some(0.7), r#""temperature":0.7"#, "");
    check(MID, |s| s.temperature = Some(1.5), r#""temperature":1.0"#, "temperature");
    check(MID, |s| s.temperature = Some(f32::NAN), "", "temperature");
    check(MID, |s| s.top_p = Some(0.5), r#""top_p":0.5"#, "");
    check(MID, |s| s.top_k = Some(40), r#""top_k":40"#, "");
    check(MID, |s| (s.temperature, s.top_p) = (Some(0.7), Some(0.5)), r#""temperature":0.7"#, "top_p");
    check(
        NEW,
        |s| (s.temperature, s.top_p, s.top_k) = (Some(0.7), Some(0.5), Some(4)),
        "",
        "temperature top_p top_k",
    );
    let thinks = r#""thinking":{"type":"enabled","budget_tokens":2048}"#;
    let budget = Some(Thinking::Budget(2048));
    check(MID, |s| (s.thinking, s.temperature) = (budget, Some(0.7)), thinks, "temperature");
    check(MID, |s| (s.thinking, s.top_k) = (budget, Some(4)), thinks, "top_k");
    check(MID, |s| s.presence_penalty = Some(0.5), "", "presence_penalty");
    check(MID, |s| s.frequency_penalty = Some(0.5), "", "frequency_penalty");
    check(MID, |s| s.seed = Some(7), "", "seed");
}

#[test]
fn thinking() {
    let (adaptive, disabled) = (r#""thinking":{"type":"adaptive"}"#, r#""thinking":{"type":"disabled"}"#);
    let enabled = |n: u32| format!(r#""thinking":{{"type":"enabled","budget_tokens":{n}}}"#);
    let budget = |n| move |s: &mut RequestSettings| s.thinking = Some(Thinking::Budget(n));
    check(MID, budget(2048), &enabled(2048), "");
    check(MID, budget(9999), &enabled(8999), "thinking");
    check(MID, budget(1), &enabled(1024), "thinking");
    check(NEW, budget(2048), adaptive, "thinking");
    check(MID, |s| s.thinking = Some(Thinking::Adaptive), adaptive, "");
    check(OLD, |s| s.thinking = Some(Thinking::Adaptive), "", "thinking");
    check(MID, |s| s.thinking = Some(Thinking::Disabled), disabled, "");
    check(NEW, |s| s.thinking = Some(Thinking::Disabled), "", "thinking");
    check(
        OLD,
        |s| (s.thinking, s.temperature) = (Some(Thinking::Disabled), Some(0.0)),
        &format!(r#""temperature":0.0,{disabled}"#),
        "",
    );
}

#[test]
fn effort() {
    let effort = |effort| move |s: &mut RequestSettings| s.effort = Some(effort);
    let sent = |word: &str| format!(r#""output_config":{{"effort":"{word}"}}"#);
    check(NEW, effort(Effort::Minimal), &sent("low"), "effort");
    check(NEW, effort(Effort::Low), &sent("low"), "");
    check(NEW, effort(Effort::Medium), &sent("medium"), "");
    check(NEW, effort(Effort::High), &sent("high"), "");
    check(NEW, effort(Effort::XHigh), &sent("xhigh"), "");
    check(NEW, effort(Effort::Max), &sent("max"), "");
    check(MID, effort(Effort::XHigh), &sent("high"), "effort");
    check(MID, effort(Effort::Max), &sent("max"), "");
    check("claude-opus-4-5", effort(Effort::Max), &sent("high"), "effort");
    check(OLD, effort(Effort::Low), "", "effort");
    let off = format!(r#""thinking":{{"type":"disabled"}},{}"#, sent("high"));
    check(BIG, |s| (s.thinking, s.effort) = (Some(Thinking::Disabled), Some(Effort::XHigh)), &off, "effort");
}

#[test]
fn limits_tiers_and_speed() {
    check(MID, |s| s.stop_sequences = vec!["a\"".into()], r#""stop_sequences":["a\""]"#, "");
    check(
        MID,
        |s| s.stop_sequences = vec![" ".into(), "b".into()],
        r#""stop_sequences":["b"]"#,
        "stop_sequences",
    );
    let tier = |tier| move |s: &mut RequestSettings| s.service_tier = Some(tier);
    check(MID, tier(ServiceTier::Auto), r#""service_tier":"auto""#, "");
    check(MID, tier(ServiceTier::Standard), r#""service_tier":"standard_only""#, "");
    check(MID, tier(ServiceTier::Priority), r#""service_tier":"auto""#, "service_tier");
    check(MID, tier(ServiceTier::Flex), "", "service_tier");
    check(MID, tier(ServiceTier::Other("batch".into())), r#""service_tier":"batch""#, "");
    check(BIG, |s| s.fast = true, r#""speed":"fast""#, "");
    check(NEW, |s| s.fast = true, r#""speed":"fast""#, "");
    for model in [OLD, MID, "claude-opus-4-8", "claude-sonnet-5-5"] {
        check(model, |s| s.fast = true, "", "fast");
    }
    let settings = RequestSettings { max_output: Some(1_000_000), ..Default::default() };
    let encoded = Ask { settings, ..Ask::default() }.encode(&mut *encoder_of(profile(OLD)), &talk());
    assert!(text(&encoded.request.body).contains(r#""max_tokens":64000"#));
    assert_eq!(encoded.diagnostics[0].what, "settings.max_output");
}

#[test]
fn choices_of_tools() {
    let choose = |choice: ToolChoice, parallel: Option<bool>, thinking: Option<Thinking>| Ask {
        settings: RequestSettings {
            max_output: Some(9000),
            parallel_tool_calls: parallel,
            thinking,
            ..RequestSettings::default()
        },
        choice,
        ..Ask::default()
    };
    let look = || ToolChoice::Tool("look".into());
    check_tail(MID, &choose(ToolChoice::Required, None, None), r#""tool_choice":{"type":"any"}"#, "");
    check_tail(MID, &choose(ToolChoice::None, None, None), r#""tool_choice":{"type":"none"}"#, "");
    check_tail(MID, &choose(look(), None, None), r#""tool_choice":{"type":"tool","name":"look"}"#, "");
    check_tail(NEW, &choose(look(), None, None), "", "tool_choice");
    let thinks = r#""thinking":{"type":"enabled","budget_tokens":2048}"#;
    check_tail(MID, &choose(look(), None, Some(Thinking::Budget(2048))), thinks, "tool_choice");
    check_tail(MID, &choose(ToolChoice::Tool("gone".into()), None, None), "", "tool_choice");
    let one = Some(false);
    check_tail(
        MID,
        &choose(ToolChoice::Auto, one, None),
        r#""tool_choice":{"type":"auto","disable_parallel_tool_use":true}"#,
        "",
    );
    check_tail(
        MID,
        &choose(look(), one, None),
        r#""tool_choice":{"type":"tool","name":"look","disable_parallel_tool_use":true}"#,
        "",
    );
    check_tail(
        MID,
        &choose(ToolChoice::None, one, None),
        r#""tool_choice":{"type":"none"}"#,
        "parallel_tool_calls",
    );
    check_tail(MID, &choose(ToolChoice::Auto, Some(true), None), "", "");
    let bare = Ask { tools: Vec::new(), ..choose(ToolChoice::Auto, one, None) };
    check_tail(MID, &bare, "", "parallel_tool_calls");
}
