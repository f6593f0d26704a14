//! Settings that a model cannot take are changed with a note, and never refused by the provider.

use agent_core::{RequestSettings, Thinking, ToolChoice};

use super::ask::{Ask, encoder_of, profile, talk, text};

/// With these settings on this model the tail of the body is this, with this many notes.
#[track_caller]
fn check_tail(model: &str, ask: &Ask, expect: &str, notes: usize) {
    let encoded = ask.encode(&mut *encoder_of(profile(model)), &talk());
    let sent = text(&encoded.request.body);
    let (_, tail) = sent.split_once("],\"max_tokens\":").unwrap();
    assert_eq!((tail, encoded.diagnostics.len()), (expect, notes), "{:?}", encoded.diagnostics);
}

#[test]
fn settings_are_mapped_by_model() {
    let set = |thinking: Option<Thinking>, temperature: Option<f32>, choice: ToolChoice| Ask {
        settings: RequestSettings {
            max_output: Some(9000),
            thinking,
            temperature,
            ..RequestSettings::default()
        },
        choice,
        ..Ask::default()
    };
    let (old, mid, new) = ("claude-haiku-4-5", "claude-sonnet-4-6", "claude-opus-5-5");
    let auto = || ToolChoice::Auto;
    check_tail(mid, &set(None, Some(0.7), auto()), r#"9000,"temperature":0.7,"stream":true}"#, 0);
    check_tail(mid, &set(None, Some(1.5), auto()), r#"9000,"temperature":1.0,"stream":true}"#, 1);
    check_tail(new, &set(None, Some(0.7), auto()), r#"9000,"stream":true}"#, 1);
    let budget = |n| Some(Thinking::Budget(n));
    check_tail(
        mid,
        &set(budget(2048), Some(0.7), auto()),
        r#"9000,"thinking":{"type":"enabled","budget_tokens":2048},"stream":true}"#,
        1,
    );
    check_tail(
        mid,
        &set(budget(9999), None, auto()),
        r#"9000,"thinking":{"type":"enabled","budget_tokens":8999},"stream":true}"#,
        1,
    );
    check_tail(
        mid,
        &set(budget(1), None, auto()),
        r#"9000,"thinking":{"type":"enabled","budget_tokens":1024},"stream":true}"#,
        1,
    );
    check_tail(
        new,
        &set(budget(2048), None, auto()),
        r#"9000,"thinking":{"type":"adaptive"},"stream":true}"#,
        1,
    );
    check_tail(old, &set(Some(Thinking::Adaptive), None, auto()), r#"9000,"stream":true}"#, 1);
    check_tail(
        old,
        &set(Some(Thinking::Disabled), Some(0.0), auto()),
        r#"9000,"temperature":0.0,"thinking":{"type":"disabled"},"stream":true}"#,
        0,
    );
    check_tail(new, &set(Some(Thinking::Disabled), None, auto()), r#"9000,"stream":true}"#, 1);
    check_tail(
        mid,
        &set(None, None, ToolChoice::Required),
        r#"9000,"tool_choice":{"type":"any"},"stream":true}"#,
        0,
    );
    check_tail(
        mid,
        &set(None, None, ToolChoice::None),
        r#"9000,"tool_choice":{"type":"none"},"stream":true}"#,
        0,
    );
    let look = || ToolChoice::Tool("look".into());
    check_tail(
        mid,
        &set(None, None, look()),
        r#"9000,"tool_choice":{"type":"tool","name":"look"},"stream":true}"#,
        0,
    );
    check_tail(new, &set(None, None, look()), r#"9000,"stream":true}"#, 1);
    check_tail(
        mid,
        &set(budget(2048), None, look()),
        r#"9000,"thinking":{"type":"enabled","budget_tokens":2048},"stream":true}"#,
        1,
    );
    check_tail(mid, &set(None, None, ToolChoice::Tool("gone".into())), r#"9000,"stream":true}"#, 1);
    let bounds = Ask {
        settings: RequestSettings {
            max_output: Some(1_000_000),
            stop_sequences: vec!["a\"".into()],
            ..Default::default()
        },
        ..Ask::default()
    };
    check_tail(old, &bounds, r#"64000,"stop_sequences":["a\""],"stream":true}"#, 1);
}
