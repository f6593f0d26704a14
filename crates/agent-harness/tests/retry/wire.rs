//! Attempts over a real wire: what was streamed and is void, streams that break, and no retries below (cases S06, S07).

use std::sync::Arc;
use std::time::Duration;

use agent_core::{Entry, Event, EventBody, ModelErrorKind, TerminalReason};
use agent_harness::{Harness, HarnessConfig, RetryPolicy, TurnEnd};
use agent_providers::{ApiKey, HttpConfig, HttpModel};
use agent_store::MemoryStore;
use agent_testkit::{Fault, RawReply, Reply, SimProvider};

use crate::support::{Effects, Half, id, log, tools, watch};

/// A runtime with sockets and paused time.
fn block<F: Future>(future: F) -> F::Output {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().start_paused(true).build().unwrap().block_on(future)
}

/// What an agent made of a simulated provider.
struct Outcome {
    events: Vec<Event>,
    end: TurnEnd,
    effects: Effects,
    /// Whether each request asked for a stream.
    streamed: Vec<bool>,
    /// Each entry's calls and words.
    said: Vec<String>,
}

async fn ask(sim: &SimProvider, retry: RetryPolicy) -> Outcome {
    let model = HttpModel::new(HttpConfig {
        base_url: Some(sim.base_url()),
        api_key: ApiKey::new("any"),
        model: "claude-opus-5-5".into(),
        ..HttpConfig::default()
    });
    let effects = Effects::default();
    let mut config = HarnessConfig::new(Arc::new(model.unwrap()), Arc::new(MemoryStore::new()));
    config.tools = tools(&effects);
    config.permissions.mode = agent_tools::PermissionMode::Bypass;
    config.retry = retry;
    config.jitter = Arc::new(Half);
    let store = config.store.clone();
    let run = Harness::new(config).session(id()).send("go").await.unwrap();
    let (events, end) = watch(run).await;
    let record = store.load(&id()).await.unwrap().unwrap();
    let (history, _) = agent_core::History::load(&record.entries).unwrap();
    let said = history.entries().iter().filter_map(|entry| match entry {
        Entry::Step(step) => Some(format!("{} {:?}", step.text(), step.pairs().count())),
        Entry::User(_) | Entry::Note(_) | Entry::Boundary(_) => None,
    });
    let said = said.collect();
    let is_streamed =
        |body: &[u8]| serde_json::from_slice::<serde_json::Value>(body).unwrap()["stream"] == true;
    let streamed = sim.requests().iter().map(|request| is_streamed(&request.body)).collect();
    Outcome { events, end, effects, streamed, said }
}

fn sse(events: &[&str]) -> RawReply {
    let lines = events.iter().map(|data| format!("data: {data}\n\n"));
    RawReply::sse(lines.collect::<String>())
}

const START: &str = r#"{"type":"message_start","message":{"id":"msg_7","type":"message","role":"assistant","content":[],"model":"m","usage":{"input_tokens":25,"output_tokens":1}}}"#;
const FULL: &str = r#"{"type":"error","error":{"type":"overloaded_error","message":"Full"}}"#;

/// Words, half a call, and an error on a status of 200.
fn half_an_answer() -> RawReply {
    sse(&[
        START,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"My plan is"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_7","name":"put","input":{}}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"what\":\"x\"}"}}"#,
        FULL,
    ])
}

fn whole_answer() -> RawReply {
    sse(&[
        START,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"My plan is done."}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":15}}"#,
        r#"{"type":"message_stop"}"#,
    ])
}

#[test]
fn a_retry_does_not_double_the_text() {
    block(async {
        let sim = SimProvider::replaying(vec![half_an_answer(), whole_answer()]).unwrap();
        let outcome = ask(&sim, RetryPolicy::default()).await;
        insta::assert_snapshot!(log(&outcome.events), @r#"
        1 [] session.started
        2 [turn_1] turn.started
        3 [turn_1] message.received go
        4 [turn_1/0] step.started
        5 [turn_1/0] cache.system_hash
        - [turn_1/0] text.delta My plan is
        - [turn_1/0] tool_input.delta
        - [turn_1/0] tool_input.delta {"what":"x"}
        6 [turn_1/0] tombstone overloaded
        7 [turn_1/0] step.retrying overloaded
        - [turn_1/0] text.delta My plan is done.
        8 [turn_1/0] step.completed
        9 [turn_1] turn.completed done
        10 [] session.waiting
        "#);
        let void = outcome.events.iter().find_map(|event| {
            let EventBody::Tombstone { attempt, message, .. } = &event.body else { return None };
            Some((*attempt, message.clone()))
        });
        assert_eq!(void, Some((0, Some("msg_7".into()))));
        let numbers: Vec<_> = outcome
            .events
            .iter()
            .filter_map(|event| {
                let (EventBody::TextDelta { attempt, .. } | EventBody::ToolInputDelta { attempt, .. }) =
                    &event.body
                else {
                    return None;
                };
                Some(*attempt)
            })
            .collect();
        assert!(
            numbers.is_sorted() && numbers.first() == Some(&0) && numbers.last() == Some(&1),
            "{numbers:?}"
        );
        assert_eq!(outcome.said, ["My plan is done. 0"]);
        assert_eq!((outcome.end.text.as_str(), outcome.effects.all().len()), ("My plan is done.", 0));
        assert_eq!((outcome.end.usage.input, outcome.end.usage.output), (50, 16));
    });
}

#[test]
fn an_error_before_any_delta_voids_nothing() {
    block(async {
        let sim = SimProvider::replaying(vec![sse(&[START, FULL]), whole_answer()]).unwrap();
        let outcome = ask(&sim, RetryPolicy::default()).await;
        let told = log(&outcome.events);
        assert!(told.contains("step.retrying overloaded") && !told.contains("tombstone"), "{told}");
        assert_eq!(outcome.said, ["My plan is done. 0"]);
    });
}

#[test]
fn recorded_attempts_when_the_corpus_is_at_hand() {
    let Some(folder) = agent_testkit::corpus_dir() else { return };
    let body = |name: &str| {
        #[expect(clippy::disallowed_methods, reason = "tests read fixtures")]
        let text = std::fs::read_to_string(folder.join("cases/fixtures").join(name)).unwrap();
        let case: serde_json::Value = serde_json::from_str(&text).unwrap();
        let hex: String =
            case["chunks_hex"].as_array().unwrap().iter().map(|hex| hex.as_str().unwrap()).collect();
        let bytes = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap());
        RawReply::sse(bytes.collect::<Vec<u8>>())
    };
    for (first, voids) in
        [("S06_attempt1_error_after_text_and_tool.json", 1), ("S06_error_before_any_delta.json", 0)]
    {
        block(async {
            let replies = vec![body(first), body("S06_attempt2_ok.json")];
            let outcome = ask(&SimProvider::replaying(replies).unwrap(), RetryPolicy::default()).await;
            assert_eq!(outcome.said, ["Here is the plan: done. 0"]);
            assert_eq!(log(&outcome.events).matches("tombstone").count(), voids);
            assert_eq!(outcome.effects.all().len(), 0);
            assert_eq!((outcome.end.usage.input, outcome.streamed.len()), (50, 2));
        });
    }
}

/// A provider with these faults gives a good answer after this many requests, streamed or not.
#[track_caller]
fn check(faults: Vec<Fault>, policy: RetryPolicy, streamed: &[bool], reasons: &[&str]) {
    block(async {
        let reply = faults.into_iter().fold(Reply::text("A long answer."), Reply::fault);
        let outcome = ask(&SimProvider::start(vec![reply]).unwrap(), policy).await;
        assert_eq!(outcome.streamed, streamed, "{}", log(&outcome.events));
        let voids: Vec<_> = outcome
            .events
            .iter()
            .filter_map(|event| {
                let EventBody::Tombstone { reason, .. } = &event.body else { return None };
                Some(reason.as_str())
            })
            .collect();
        assert_eq!(voids, reasons);
        assert_eq!(outcome.said, ["A long answer. 0"]);
        let last = outcome.events.iter().filter_map(|event| {
            let EventBody::TextDelta { attempt, text, .. } = &event.body else { return None };
            (*attempt + 1 == streamed.len() as u32).then_some(text.as_str())
        });
        assert_eq!(last.collect::<String>(), "A long answer.", "the words are told, streamed or not");
    });
}

#[test]
fn after_broken_streams_one_attempt_is_made_without_streaming() {
    let cut = || Fault::Cut { after: 4 };
    let policy = RetryPolicy::default();
    check(vec![cut()], policy, &[true, true], &["interrupted"]);
    check(vec![cut(), cut()], policy, &[true, true, false], &["interrupted", "streaming_fallback"]);
    let busy = || Fault::status(529);
    check(vec![busy(), busy(), busy()], policy, &[true; 4], &[]);
    check(
        vec![cut(), busy(), cut(), busy(), cut()],
        RetryPolicy { max_attempts: 9, ..policy },
        &[true, true, true, false, true, true],
        &["interrupted", "streaming_fallback", "interrupted"],
    );
    let never = RetryPolicy { stream_failures: 0, ..policy };
    check(vec![cut(), cut(), cut()], never, &[true; 4], &["interrupted"; 3]);
    let at_once = RetryPolicy { stream_failures: 1, ..policy };
    check(vec![cut()], at_once, &[true, false], &["streaming_fallback"]);
}

#[test]
fn a_stream_that_cannot_be_read_is_asked_for_as_a_whole() {
    let broken = || {
        Fault::Raw(sse(&[
            START,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hm"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_de"#,
        ]))
    };
    check(
        vec![broken(), broken()],
        RetryPolicy::default(),
        &[true, true, false],
        &["protocol", "streaming_fallback"],
    );
    let never = RetryPolicy { stream_failures: 0, ..RetryPolicy::default() };
    block(async {
        let sim = SimProvider::start(vec![Reply::text("x").fault(broken())]).unwrap();
        let outcome = ask(&sim, never).await;
        assert_eq!(outcome.end.reason, TerminalReason::Error(ModelErrorKind::Protocol));
        assert_eq!(outcome.streamed.len(), 1);
    });
}

#[test]
fn a_stalled_stream_is_given_up_and_tried_again() {
    block(async {
        let start = tokio::time::Instant::now();
        let sim =
            SimProvider::start(vec![Reply::text("A long answer.").fault(Fault::Stall { after: 4 })]).unwrap();
        let outcome = ask(&sim, RetryPolicy::default()).await;
        assert_eq!(outcome.said, ["A long answer. 0"]);
        assert!(log(&outcome.events).contains("tombstone interrupted"));
        // The limit on silence, and half of the first wait.
        let waited = start.elapsed();
        assert!(waited >= Duration::from_millis(300_500) && waited < Duration::from_secs(302), "{waited:?}");
    });
}

#[test]
fn no_layer_below_tries_again() {
    let count = |fault: fn() -> Fault, requests: usize, kind: ModelErrorKind| {
        block(async {
            let reply = (0..20).fold(Reply::text("never"), |reply, _| reply.fault(fault()));
            let outcome = ask(&SimProvider::start(vec![reply]).unwrap(), RetryPolicy::default()).await;
            assert_eq!(outcome.end.error.unwrap().kind, kind);
            assert_eq!(outcome.streamed.len(), requests, "{kind:?}");
        });
    };
    count(|| Fault::status(529), 5, ModelErrorKind::Overloaded);
    count(|| Fault::status(503), 5, ModelErrorKind::Overloaded);
    count(|| Fault::status(500), 5, ModelErrorKind::Transport);
    count(|| Fault::status(429), 5, ModelErrorKind::RateLimited);
    count(|| Fault::rate_limited(3), 5, ModelErrorKind::RateLimited);
    count(|| Fault::rate_limited(121), 1, ModelErrorKind::RateLimited);
    count(|| Fault::Hangup, 5, ModelErrorKind::Transport);
    count(|| Fault::status(400), 1, ModelErrorKind::InvalidRequest);
    count(|| Fault::status(401), 1, ModelErrorKind::Authentication);
    count(|| Fault::status(403), 1, ModelErrorKind::Permission);
    count(|| Fault::status(404), 1, ModelErrorKind::InvalidRequest);
    count(|| Fault::status(413), 1, ModelErrorKind::ContextOverflow);
}

#[test]
fn a_server_that_is_not_there() {
    block(async {
        let gone = SimProvider::start(vec![Reply::text("never")]).unwrap().base_url();
        tokio::task::yield_now().await;
        let model = HttpModel::new(HttpConfig {
            base_url: Some(gone),
            api_key: ApiKey::new("any"),
            model: "claude-opus-5-5".into(),
            ..HttpConfig::default()
        });
        let mut config = HarnessConfig::new(Arc::new(model.unwrap()), Arc::new(MemoryStore::new()));
        config.jitter = Arc::new(Half);
        let (events, end) = watch(Harness::new(config).session(id()).send("go").await.unwrap()).await;
        assert_eq!(end.reason, TerminalReason::Error(ModelErrorKind::Transport));
        assert_eq!(log(&events).matches("step.retrying transport").count(), 4);
        assert!(end.error.unwrap().message.contains("given up after 5 attempts"));
    });
}
