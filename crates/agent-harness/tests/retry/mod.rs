//! Failed model calls are tried again: how often, after which waits, and what that costs (case R02).

mod wire;

use std::time::Duration;

use agent_core::{Event, EventBody, ModelError, ModelErrorKind, TerminalReason, Usage};
use agent_harness::{RetryPolicy, Run};
use agent_testkit::{Failure, Reply, ScriptedModel};
use tokio::time::Instant;

use crate::support::{Agent, Effects, Points, block, crash_after, id, log, talk, watch};

fn error(kind: ModelErrorKind) -> ModelError {
    ModelError::new(kind, "it failed")
}

fn busy() -> ModelError {
    error(ModelErrorKind::Overloaded)
}

fn asking(ms: u64) -> ModelError {
    ModelError { retry_after_ms: Some(ms), ..error(ModelErrorKind::RateLimited) }
}

/// An agent whose model says these replies; its first requests fail so.
fn agent(replies: Vec<Reply>, failures: Vec<Failure>, retry: RetryPolicy) -> Agent {
    let model = ScriptedModel::new(replies).by_history();
    let failing =
        failures.into_iter().enumerate().fold(model, |model, (n, failure)| model.failing(n, failure));
    Agent::retrying(failing, Points::default(), Effects::default(), retry)
}

fn attempts(events: &[Event]) -> Vec<(u32, u64)> {
    let told = events.iter().filter_map(|event| {
        let EventBody::StepRetrying { attempt, wait_ms, .. } = &event.body else { return None };
        Some((*attempt, *wait_ms))
    });
    told.collect()
}

/// A model that always fails like this is asked so many times, and the turn ends with its failure and these words.
#[track_caller]
fn check_storm(error: ModelError, policy: RetryPolicy, requests: usize, words: &str) {
    block(async {
        let failures = vec![Failure::Before(error.clone()); 30];
        let agent = agent(vec![Reply::text("never")], failures, policy);
        let (events, end) = agent.say("go").await;
        assert_eq!(agent.model.requests().len(), requests, "{error}");
        assert_eq!(attempts(&events).len(), requests - 1, "every attempt is visible");
        let given = end.error.unwrap();
        assert_eq!((given.kind, given.retry_after_ms), (error.kind, error.retry_after_ms));
        assert!(given.message.contains(words), "{given}");
        assert_eq!(end.reason, agent_turn_reason(error.kind));
        let bodies = agent.model.requests();
        assert!(bodies.iter().all(|body| *body == bodies[0]), "the same bytes each time");
    });
}

fn agent_turn_reason(kind: ModelErrorKind) -> TerminalReason {
    if kind == ModelErrorKind::Interrupted {
        TerminalReason::Interrupted
    } else {
        TerminalReason::Error(kind)
    }
}

#[test]
fn storms_end_after_exactly_so_many_requests() {
    use ModelErrorKind as K;
    let policy = RetryPolicy { max_attempts: 4, ..RetryPolicy::default() };
    for kind in [K::Overloaded, K::RateLimited, K::Transport] {
        check_storm(error(kind), policy, 4, "given up after 4 attempts: `max_attempts` of the retry policy");
    }
    for kind in [K::InvalidRequest, K::Authentication, K::Permission, K::QuotaExhausted, K::Protocol] {
        check_storm(error(kind), policy, 1, "given up after 1 attempt: the same request would fail again");
    }
    // Nothing but the tools and two words is there to be made smaller.
    let whole = "the provider refused the conversation as too long, and it could not be made smaller";
    check_storm(error(K::ContextOverflow), policy, 1, whole);
    let unusual = ModelError { retryable: false, ..busy() };
    check_storm(unusual, policy, 1, "the same request would fail again");
    let conflict = ModelError { retryable: true, ..error(K::InvalidRequest) };
    check_storm(conflict, policy, 4, "given up after 4 attempts");
    check_storm(
        busy(),
        RetryPolicy { max_attempts: 0, ..policy },
        1,
        "given up after 1 attempt: `max_attempts`",
    );
    check_storm(busy(), RetryPolicy::never(), 1, "given up after 1 attempt");
    let poor = RetryPolicy { run_retries: 2, ..policy };
    check_storm(busy(), poor, 3, "given up after 3 attempts: the run has used its 2 retries (`run_retries`");
    check_storm(asking(120_001), policy, 1, "come back in 2 min 1 s, later than the 2 min 0 s");
    check_storm(asking(4_323_500), policy, 1, "come back in 1 h 12 min");
}

#[test]
fn waits_are_those_of_the_policy() {
    block(async {
        let failures =
            vec![Failure::Before(busy()), Failure::Before(asking(34_400)), Failure::Before(busy())];
        let agent = agent(vec![Reply::text("hello")], failures, RetryPolicy::default());
        let start = Instant::now();
        let (events, end) = agent.say("go").await;
        assert_eq!(end.text, "hello");
        // Half of 1 s; what was asked for and half of 1 s; half of 4 s.
        assert_eq!(attempts(&events), [(0, 500), (1, 34_900), (2, 2_000)]);
        let waited = start.elapsed().as_millis();
        assert!((37_400..37_500).contains(&waited), "{waited}");
        insta::assert_snapshot!(log(&events), @"
        1 [] session.started
        2 [turn_1] turn.started
        3 [turn_1] message.received go
        4 [turn_1/0] step.started
        5 [turn_1/0] cache.system_hash
        6 [turn_1/0] step.retrying overloaded
        7 [turn_1/0] step.retrying rate_limited
        8 [turn_1/0] step.retrying overloaded
        - [turn_1/0] text.delta hello
        9 [turn_1/0] step.completed
        10 [turn_1] turn.completed done
        11 [] session.waiting
        ");
    });
}

#[test]
fn a_run_shares_one_budget_between_its_calls() {
    block(async {
        let replies = vec![
            Reply::tool("look", r#"{"what":"a"}"#),
            Reply::tool("look", r#"{"what":"b"}"#),
            Reply::text("never"),
        ];
        // Requests: fail, a, fail, b, fail.
        let model = ScriptedModel::new(replies).by_history();
        let model = [0, 2, 4].into_iter().fold(model, |model, n| model.failing(n, Failure::Before(busy())));
        let policy = RetryPolicy { run_retries: 2, ..RetryPolicy::default() };
        let agent = Agent::retrying(model, Points::default(), Effects::default(), policy);
        let (events, end) = agent.say("go").await;
        assert_eq!(agent.model.requests().len(), 5);
        assert_eq!(attempts(&events), [(0, 500), (0, 500)], "each call counts its own attempts");
        assert!(end.error.unwrap().message.contains("the run has used its 2 retries"));
        assert_eq!(talk(&agent.history().await), "user: 1\nstep: look -> saw a\nstep: look -> saw b");
        let (_, end) = agent.say("again").await;
        assert_eq!(end.text, "never", "the next run has retries of its own");
    });
}

#[test]
fn a_stopped_run_does_not_wait() {
    block(async {
        let failures = vec![Failure::After { events: 3, error: asking(100_000) }];
        let agent = agent(vec![Reply::text("hello there, you")], failures, RetryPolicy::default());
        let mut run = agent.session().send("go").await.unwrap();
        let (cancel, start) = (run.cancel(), Instant::now());
        let mut seen = Vec::new();
        while let Some(event) = run.next().await {
            if matches!(event.body, EventBody::StepRetrying { .. }) {
                cancel.cancel();
            }
            seen.push(event);
        }
        let end = run.finish().await.unwrap();
        assert_eq!((end.reason, end.text.as_str()), (TerminalReason::Aborted, ""));
        assert!(start.elapsed() < Duration::from_secs(1));
        assert!(end.usage.total_input() > 0, "the void attempt was paid for");
        assert_eq!(agent.model.requests().len(), 1);
        assert_eq!(talk(&agent.history().await), "user: 1");
        let names = log(&seen);
        let order: Vec<_> = ["tombstone rate_limited", "step.retrying", "turn.completed aborted"]
            .map(|name| names.find(name).unwrap())
            .into();
        assert!(order.is_sorted(), "{names}");
    });
}

#[test]
fn void_attempts_cost_and_are_no_context() {
    block(async {
        let usage = Usage { input: 100, output: 7, ..Usage::default() };
        let reply = Reply { usage: Some(usage.clone()), ..Reply::text("hello there") };
        let failures = vec![Failure::After { events: 3, error: busy() }, Failure::EndsEarly { events: 3 }];
        let agent = agent(vec![reply], failures, RetryPolicy::default());
        let (events, end) = agent.say("go").await;
        let completed = events.iter().find_map(|event| {
            let EventBody::StepCompleted { usage, voided, .. } = &event.body else { return None };
            Some((usage.clone(), voided.clone()))
        });
        let (kept, voided) = completed.unwrap();
        assert_eq!((kept.input, kept.output), (100, 7), "the answer's own");
        assert_eq!((voided.input, voided.output), (200, 0), "of the attempts before");
        assert_eq!((end.usage.input, end.usage.output), (300, 7), "what the turn cost");
        let record = agent_store::Store::load(&agent.store, &id()).await.unwrap().unwrap();
        assert_eq!(record.checkpoint.usage.input, 300, "what the session cost");
        let rows = agent_store::Store::usage(&agent.store, &id()).await.unwrap();
        assert_eq!(rows.iter().map(|(_, usage)| usage.input).collect::<Vec<_>>(), [100, 100, 100]);
        let steps = agent.history().await;
        let agent_core::Entry::Step(step) = &steps.entries()[1] else { panic!() };
        assert_eq!(step.usage().input, 100, "what the next request builds on");
    });
}

#[test]
fn a_failure_for_good_counts_all_its_attempts() {
    block(async {
        let failures = vec![Failure::After { events: 3, error: busy() }; 3];
        let policy = RetryPolicy { max_attempts: 3, ..RetryPolicy::default() };
        let agent = agent(vec![Reply::text("hello there")], failures, policy);
        let (events, end) = agent.say("go").await;
        let failed = events.iter().find_map(|event| {
            let EventBody::StepFailed { usage, .. } = &event.body else { return None };
            Some(usage.total_input())
        });
        assert_eq!(failed.unwrap(), end.usage.total_input());
        let rows = agent_store::Store::usage(&agent.store, &id()).await.unwrap();
        assert_eq!(rows.iter().map(|(_, usage)| usage.total_input()).sum::<u64>(), failed.unwrap());
        assert_eq!(rows.len(), 3);
        let voids = log(&events).matches("tombstone overloaded").count();
        assert_eq!(voids, 3, "the last attempt is void too");
    });
}

/// Whether the store holds a turn that is over.
async fn is_over(store: &Points) -> bool {
    let record = agent_store::Store::load(store, &id()).await.unwrap();
    record.is_some_and(|record| !record.entries.is_empty() && record.checkpoint.turn.is_none())
}

/// Watches a run until it waits before another attempt, or is over.
async fn until_retrying(run: &mut Run) {
    while let Some(event) = run.next().await {
        if matches!(event.body, EventBody::StepRetrying { .. }) {
            return;
        }
    }
}

/// Attempts and retries of a process that was lost count for the one that takes the turn up (requirement M10).
#[test]
fn attempts_are_counted_across_processes() {
    let check = |policy: RetryPolicy, expect: usize, words: &str| {
        block(async {
            let store = Points::default();
            let mut asked = 0;
            // Each process is lost in the wait behind its first attempt.
            for _ in 0..20 {
                let model = ScriptedModel::new(vec![Reply::text("never")]).by_history();
                let model = (0..30).fold(model, |model, n| model.failing(n, Failure::Before(busy())));
                let agent = Agent::retrying(model, store.clone(), Effects::default(), policy);
                let mut run = agent.session().send("go").await.unwrap();
                until_retrying(&mut run).await;
                asked += agent.model.requests().len();
                if is_over(&store).await {
                    let error = run.finish().await.unwrap().error.unwrap();
                    assert!(error.message.contains(words), "{error}");
                    break;
                }
            }
            assert_eq!(asked, expect, "{words}");
        });
    };
    let policy = RetryPolicy::default();
    check(policy, 5, "given up after 5 attempts: `max_attempts`");
    check(RetryPolicy { run_retries: 2, ..policy }, 3, "the run has used its 2 retries");
}

/// A run that died at any point of its attempts goes on: one answer, each effect once, every attempt paid for.
#[test]
fn dropped_anywhere_among_attempts() {
    block(async {
        let policy = RetryPolicy { base_delay: Duration::ZERO, ..RetryPolicy::default() };
        let replies = || {
            vec![
                Reply::text("Both.").call("look", r#"{"what":"a"}"#).call("put", r#"{"what":"b"}"#),
                Reply::text("All done."),
            ]
        };
        for polls in 0..500 {
            let (store, effects) = (Points::default(), Effects::default());
            let model = || {
                let model = ScriptedModel::new(replies()).by_history();
                [0, 1, 3]
                    .into_iter()
                    .fold(model, |model, n| model.failing(n, Failure::After { events: 9, error: busy() }))
            };
            let agent = || Agent::retrying(model(), store.clone(), effects.clone(), policy);
            let ended = crash_after(agent().session().send("go").await.unwrap(), polls).await;
            if ended.is_none() {
                // What is stored of a model call under way is a turn that prepares it anew.
                let record = agent_store::Store::load(&store, &id()).await.unwrap();
                let open = record.and_then(|record| record.checkpoint.turn);
                if let Some(turn) = &open {
                    assert!(turn.get().contains(r#""state":"prepare""#), "{turn:?}");
                }
                if open.is_some() || !is_over(&store).await {
                    let (_, end) = agent().say("go").await;
                    assert_eq!(end.text, "All done.", "after {polls} polls");
                }
            }
            let told = talk(&agent().history().await);
            assert_eq!(told.lines().count(), 3, "after {polls} polls: {told}");
            let is_unknown = told.contains("Outcome unknown");
            assert!(is_unknown || told.contains("put -> put b"), "after {polls} polls: {told}");
            assert!(
                effects.all().len() <= 1 && (is_unknown || effects.all() == ["b"]),
                "after {polls} polls"
            );
            let rows = agent_store::Store::usage(&store, &id()).await.unwrap();
            let paid = agent_store::Store::load(&store, &id()).await.unwrap().unwrap().checkpoint.usage;
            assert_eq!(rows.iter().map(|(_, usage)| usage.input).sum::<u64>(), paid.input);
            if ended.is_some() {
                assert!(polls > 15, "the points before the end were tried: {polls}");
                return;
            }
        }
        panic!("the turn never ended");
    });
}

#[test]
fn events_of_attempts_are_stored_in_order() {
    block(async {
        let failures = vec![Failure::After { events: 4, error: busy() }, Failure::Before(busy())];
        let agent = agent(vec![Reply::text("hello")], failures, RetryPolicy::default());
        let (events, _) = watch(agent.session().send("go").await.unwrap()).await;
        let stored = agent_store::Store::events(&agent.store, &id(), 0).await.unwrap();
        let durable: Vec<_> = events.into_iter().filter(|event| event.seq.is_some()).collect();
        assert_eq!(stored, durable, "what was told is what is stored");
        assert!(stored.iter().zip(1..).all(|(event, seq)| event.seq == Some(seq)), "without a gap");
    });
}
