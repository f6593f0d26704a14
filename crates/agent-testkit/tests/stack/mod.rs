//! Every fault through the real client: what our own stack makes of it, on every wire, streamed and not.

use std::time::Duration;

use agent_core::{
    Cancel, Entry, History, LanguageModel, ModelError, ModelErrorKind, ModelRequest, RequestSettings,
    Response, ResponseBuilder, ToolChoice, UserMessage,
};
use agent_providers::{ApiKey, HttpConfig, HttpModel, Vendor};
use agent_testkit::{Fault, RawReply, Reply, RetryHint, Script, SimProvider, Wording};
use futures_util::StreamExt;
use serde_json::Value;

/// Vendor and model on each wire.
const WIRES: [(&str, &str); 3] =
    [("anthropic", "claude-sonnet-4-6"), ("openai-chat", "gpt-5.6"), ("openai", "gpt-5.6")];

async fn ask(sim: &SimProvider, (vendor, name): (&str, &str), stream: bool) -> Result<Response, ModelError> {
    let model = HttpModel::new(HttpConfig {
        vendor: Vendor::named(vendor).unwrap(),
        base_url: Some(sim.base_url()),
        api_key: ApiKey::new("any"),
        model: name.into(),
        idle_timeout: Duration::from_millis(400),
        response_timeout: Duration::from_secs(5),
        ..HttpConfig::default()
    })
    .unwrap();
    let mut history = History::new();
    history.push(Entry::User(UserMessage::text("go").unwrap())).unwrap();
    let encoded = model.encoder().encode(&ModelRequest {
        system: &[],
        tools: &[],
        draft: &history.draft(),
        settings: &RequestSettings::default(),
        tool_choice: &ToolChoice::Auto,
        marks: &[],
        stream,
    });
    let mut events = model.stream(encoded.request, &Cancel::new()).await?;
    let mut fold = ResponseBuilder::default();
    while let Some(event) = events.next().await {
        fold.take(event?);
    }
    fold.finish().ok_or_else(|| ModelError::new(ModelErrorKind::Protocol, "no end"))
}

fn reply() -> Reply {
    Reply::text("Let me look at it again.")
        .thinking("Where was it?")
        .call("grep", r#"{"pattern":"x","n":1.0}"#)
}

fn is_whole(answer: &Response) -> bool {
    let told = content(answer).to_string();
    told.contains("Let me look at it again.") && answer.calls().count() == 1
}

/// The error of the first request on each wire; the second must be the reply.
async fn errors(fault: &Fault, stream: bool) -> Vec<ModelError> {
    let mut errors = Vec::new();
    for wire in WIRES {
        let sim = SimProvider::start(vec![reply().fault(fault.clone())]).unwrap();
        let failed = ask(&sim, wire, stream).await;
        errors.push(failed.map(|answer| (wire, fault, answer)).unwrap_err());
        assert!(is_whole(&ask(&sim, wire, stream).await.unwrap()));
        assert_eq!(sim.refusals(), []);
    }
    errors
}

/// How a fault is classified, and the wait in milliseconds.
async fn check(fault: &Fault, kind: ModelErrorKind, wait: Option<u64>) {
    for stream in [false, true] {
        for error in errors(fault, stream).await {
            assert_eq!((error.kind, error.retry_after_ms), (kind, wait), "{fault:?} {error:?}");
            assert_eq!(error.retryable, kind.retryable(), "{fault:?} {error:?}");
        }
    }
}

#[tokio::test]
async fn statuses() {
    check(&Fault::status(413), ModelErrorKind::ContextOverflow, None).await;
    check(&Fault::status(429), ModelErrorKind::RateLimited, None).await;
    check(&Fault::rate_limited(7), ModelErrorKind::RateLimited, Some(7_000)).await;
    check(&Fault::status(500), ModelErrorKind::Transport, None).await;
    check(&Fault::status(503), ModelErrorKind::Overloaded, None).await;
    check(&Fault::status(529), ModelErrorKind::Overloaded, None).await;
    check(&Fault::status(401), ModelErrorKind::Authentication, None).await;
    check(&Fault::status(400), ModelErrorKind::InvalidRequest, None).await;
}

#[tokio::test]
async fn every_overflow_wording_is_an_overflow() {
    for wording in Wording::all() {
        check(&Fault::Overflow { wording }, ModelErrorKind::ContextOverflow, None).await;
    }
}

#[tokio::test]
async fn every_form_of_a_wait_is_read() {
    let limited = |told, wait_ms| Fault::RateLimited { wait_ms, told, status: 429 };
    for (told, expect) in [
        (RetryHint::RetryAfter, 8_000),
        (RetryHint::RetryAfterMs, 7_660),
        (RetryHint::Words, 7_660),
        (RetryHint::Detail, 7_660),
    ] {
        check(&limited(told, 7_660), ModelErrorKind::RateLimited, Some(expect)).await;
    }
    // Dates have whole seconds, and some of the wait is over when they arrive.
    for told in [RetryHint::HttpDate, RetryHint::Reset] {
        for error in errors(&limited(told, 60_000), true).await {
            let wait = error.retry_after_ms.unwrap();
            assert!(
                error.kind == ModelErrorKind::RateLimited && (55_000..=61_000).contains(&wait),
                "{error:?}"
            );
        }
    }
    let busy = Fault::RateLimited { wait_ms: 250, told: RetryHint::RetryAfterMs, status: 529 };
    check(&busy, ModelErrorKind::Overloaded, Some(250)).await;
}

#[tokio::test]
async fn broken_answers() {
    check(&Fault::Hangup, ModelErrorKind::Transport, None).await;
    check(&Fault::Raw(RawReply::json("<html>")), ModelErrorKind::Protocol, None).await;
    let event = |kind: &str| Fault::ErrorEvent { after: 3, kind: kind.into(), message: "no".into() };
    for (kind, expect) in [
        ("overloaded_error", ModelErrorKind::Overloaded),
        ("rate_limit_exceeded", ModelErrorKind::RateLimited),
        ("context_length_exceeded", ModelErrorKind::ContextOverflow),
        ("server_error", ModelErrorKind::Transport),
    ] {
        for error in errors(&event(kind), true).await {
            assert_eq!(error.kind, expect, "{error:?}");
        }
    }
    for error in errors(&Fault::Cut { after: 3 }, true).await {
        assert_eq!((error.kind, error.retryable), (ModelErrorKind::Interrupted, true), "{error:?}");
    }
    for error in errors(&Fault::Cut { after: 3 }, false).await {
        assert!(error.retryable, "{error:?}");
    }
    for error in errors(&Fault::Stall { after: 3 }, true).await {
        assert_eq!((error.kind, error.retryable), (ModelErrorKind::Interrupted, true), "{error:?}");
        assert!(error.message.contains("idle_timeout"), "{error:?}");
    }
}

#[tokio::test]
async fn a_slow_answer_is_a_whole_one_and_is_given_once() {
    for wire in WIRES {
        for stream in [false, true] {
            let slow = Fault::Slow { delay_ms: 5 };
            let sim = SimProvider::start(vec![reply().fault(slow)]).unwrap();
            assert!(is_whole(&ask(&sim, wire, stream).await.unwrap()));
            sim.check_complete().unwrap();
        }
    }
}

/// What an answer holds, as JSON.
fn content(response: &Response) -> Value {
    serde_json::to_value(&response.parts).unwrap()
}

/// Whether each event may come twice and leaves the answer as it is; the ones that do not are listed by number.
async fn doubled_by(wire: (&str, &str)) -> (bool, Vec<usize>) {
    let sim = SimProvider::start(vec![reply()]).unwrap();
    let expect = content(&ask(&sim, wire, true).await.unwrap());
    let same = async |fault: Fault| {
        let sim = SimProvider::start(vec![reply().fault(fault)]).unwrap();
        let answer = ask(&sim, wire, true).await.unwrap();
        sim.check_complete().unwrap();
        content(&answer) == expect
    };
    let mut doubled = Vec::new();
    for event in 0..30 {
        if !same(Fault::Duplicate { event: Some(event) }).await {
            doubled.push(event);
        }
    }
    (same(Fault::duplicates()).await, doubled)
}

#[tokio::test]
async fn events_that_come_twice_never_double_an_answer_where_the_wire_can_tell() {
    // Responses numbers its events.
    assert_eq!(doubled_by(WIRES[2]).await, (true, vec![]));
    // Deltas have no number on the other wires, so the thinking, the words and the input come twice; nothing else does,
    // and what is said twice in a call's input is no longer JSON, so that no call is made of it.
    assert_eq!(doubled_by(WIRES[0]).await, (false, vec![3, 7, 11]));
    assert_eq!(doubled_by(WIRES[1]).await, (false, vec![1, 2, 4]));
}

#[tokio::test]
async fn events_that_come_twice_make_no_second_call() {
    for wire in WIRES {
        for event in 0..30 {
            let sim =
                SimProvider::start(vec![reply().fault(Fault::Duplicate { event: Some(event) })]).unwrap();
            let answer = ask(&sim, wire, true).await.unwrap();
            assert_eq!(answer.calls().count(), 1, "{wire:?} {event}");
        }
    }
}

#[test]
fn faults_are_written_in_scripts_as_the_guide_says() {
    let written = |fault: Fault| serde_json::to_string(&fault).unwrap();
    let all = [
        Fault::overflow(),
        Fault::Overflow { wording: Wording::LlamaCpp },
        Fault::RateLimited { wait_ms: 7_660, told: RetryHint::HttpDate, status: 429 },
        Fault::Slow { delay_ms: 50 },
        Fault::duplicates(),
        Fault::Duplicate { event: Some(3) },
    ];
    insta::assert_snapshot!(all.clone().map(written).join("\n"), @r#"
    {"overflow":{"wording":"own"}}
    {"overflow":{"wording":"llama_cpp"}}
    {"rate_limited":{"wait_ms":7660,"told":"http_date","status":429}}
    {"slow":{"delay_ms":50}}
    {"duplicate":{}}
    {"duplicate":{"event":3}}
    "#);
    for text in [
        r#"{"overflow":{}}"#,
        r#"{"rate_limited":{"wait_ms":7660}}"#,
        r#"{"rate_limited":{"wait_ms":250,"told":"retry_after_ms","status":529}}"#,
        r#"{"duplicate":{}}"#,
        r#"{"status":{"status":413}}"#,
    ] {
        Script::parse(&format!(r#"[{{"text":"a","faults":[{text}]}}]"#)).unwrap();
    }
    let refused =
        |fault: &str| Script::parse(&format!(r#"[{{"faults":[{fault}]}}]"#)).unwrap_err().to_string();
    insta::assert_snapshot!(refused(r#"{"explode":{}}"#), @"reply 1 of the script is not understood: unknown variant `explode`, expected one of `status`, `rate_limited`, `overflow`, `error_event`, `cut`, `stall`, `slow`, `duplicate`, `hangup`, `raw` at line 1 column 21; a reply has the fields reasoning, text, calls, stop_reason, usage, delay_ms, hold and faults");
    insta::assert_snapshot!(refused(r#"{"rate_limited":{"wait_ms":1,"told":"smoke"}}"#), @"reply 1 of the script is not understood: unknown variant `smoke`, expected one of `retry_after`, `retry_after_ms`, `http_date`, `reset`, `words`, `detail` at line 1 column 54; a reply has the fields reasoning, text, calls, stop_reason, usage, delay_ms, hold and faults");
    insta::assert_snapshot!(refused(r#"{"slow":{"delay":1}}"#), @"reply 1 of the script is not understood: unknown field `delay`, expected `delay_ms` at line 1 column 27; a reply has the fields reasoning, text, calls, stop_reason, usage, delay_ms, hold and faults");
}
