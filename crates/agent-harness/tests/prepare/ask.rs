//! A model that is asked beside the turn: what counts as an answer, for how long, how often, and that it ends there.

use std::sync::Arc;
use std::time::Duration;

use agent_core::{Entry, ModelError, ModelErrorKind, TerminalReason};
use agent_harness::AskPolicy;
use agent_prepare::{Ask, Cascade, Pipeline, StageCx, Verdict, Way};
use agent_testkit::{Failure, Reply, ScriptedModel};

use super::{Does, Sums, agent, bodies, compacting, is_done, model, say, small, text, told, words};
use crate::support::{block, id};

/// An agent whose context is full and whose summaries come of this model.
fn full(summary: &ScriptedModel) -> crate::support::Agent {
    let apart = summary.clone();
    compacting(
        model(vec![Reply::text("ok"), Reply::text("ok")]),
        Cascade::new().then(Sums::apart()),
        |config| {
            config.summary_model = Some(Arc::new(apart));
            config.ask = AskPolicy { deadline: Duration::from_secs(30), attempts: 2 };
        },
    )
}

#[test]
fn what_is_no_answer_leaves_the_history_as_it_was() {
    let check = |summary: ScriptedModel, expect: &str| {
        block(async {
            let summary = summary.with_profile(small());
            let agent = full(&summary);
            let (events, end) = say(&agent, &words(2_950)).await;
            is_done(&end);
            assert_eq!(
                told(&events),
                ["level compact".to_owned(), "requested sums".into(), format!("failed sums: {expect}")]
            );
            let history = agent.history().await;
            assert!(!history.entries().iter().any(|entry| matches!(entry, Entry::Boundary(_))));
            assert!(bodies(&agent.model)[0].contains("wordword"), "the step went on with all of it");
            let record = agent_store::Store::load(&agent.store, &id()).await.unwrap().unwrap();
            assert_eq!(record.checkpoint.compaction.failures, 1);
            assert_eq!(summary.requests().len(), 1, "such an answer is not asked for twice");
        });
    };
    check(ScriptedModel::new(vec![Reply::text("  ")]), "the model answered without a word");
    check(ScriptedModel::new(vec![Reply::tool("look", "{}")]), "the model called look instead of answering");
    check(
        ScriptedModel::new(vec![Reply::text("half of").stopping("max_tokens")]),
        "the answer was longer than its limit",
    );
}

/// Requests that a failing summary costs, and the words of the failure.
#[track_caller]
fn check_failing(summary: ScriptedModel, requests: usize, expect: &str) {
    let summary = summary.with_profile(small());
    let (events, end, own) = block(async {
        let agent = full(&summary);
        let (events, end) = say(&agent, &words(2_950)).await;
        (events, end, agent.model.requests().len())
    });
    is_done(&end);
    assert_eq!((summary.requests().len(), own), (requests, 1));
    let failed = told(&events).into_iter().find(|line| line.starts_with("failed")).unwrap();
    assert!(failed.contains(expect), "{failed}");
    let completed = told(&events).into_iter().any(|line| line.starts_with("completed"));
    assert!(!completed);
}

#[test]
fn attempts_and_the_deadline_are_its_own() {
    let error = |kind| Failure::Before(ModelError::new(kind, "it failed"));
    let script = || ScriptedModel::new(vec![Reply::text("Sum.")]);
    use ModelErrorKind as K;
    check_failing(script().failing(0, Failure::Hangs { events: 2 }), 1, "no answer came within 30000 ms");
    check_failing(script().failing(0, error(K::InvalidRequest)), 1, "invalid_request: it failed");
    check_failing(
        script().failing(0, error(K::Overloaded)).failing(1, error(K::Overloaded)),
        2,
        "overloaded: it failed",
    );
    check_failing(
        script().failing(0, Failure::EndsEarly { events: 3 }).failing(1, Failure::EndsEarly { events: 3 }),
        2,
        "interrupted",
    );
    // A wait that is longer than is waited for is told as what it is, and not as a deadline that passed.
    let mut busy = ModelError::new(K::RateLimited, "come back in an hour");
    busy.retry_after_ms = Some(3_600_000);
    check_failing(script().failing(0, Failure::Before(busy)), 1, "rate_limited: come back in an hour");
    // A summary that is itself too long compacts nothing: the guard of requirement P12.
    check_failing(script().failing(0, error(K::ContextOverflow)), 1, "context_overflow: it failed");
}

#[test]
fn an_attempt_that_fails_for_now_is_made_again() {
    block(async {
        let busy = Failure::Before(ModelError::new(ModelErrorKind::Overloaded, "busy"));
        let summary = ScriptedModel::new(vec![Reply::text("Sum.")]).with_profile(small()).failing(0, busy);
        let agent = full(&summary);
        let (events, _) = say(&agent, &words(2_950)).await;
        assert!(told(&events).contains(&"completed sums".to_owned()));
        assert_eq!(summary.requests().len(), 2);
    });
}

#[test]
fn a_run_that_is_stopped_while_a_model_is_asked_ends_as_aborted() {
    block(async {
        let hangs = Failure::Hangs { events: 2 };
        let summary = ScriptedModel::new(vec![Reply::text("Sum.")]).with_profile(small()).failing(0, hangs);
        let agent = full(&summary);
        let mut run = agent.session().send(words(2_950)).await.unwrap();
        let cancel = run.cancel();
        let stop = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            cancel.cancel();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = async { while run.next().await.is_some() {} } => {}
            () = stop => {}
        }
        let end = run.finish().await.unwrap();
        assert_eq!(summary.requests().len(), 1);
        assert_eq!((end.reason, agent.model.requests().len()), (TerminalReason::Aborted, 0));
        assert!(end.usage.total_input() > 0, "what was read was paid for");
        is_done(&say(&agent, "go on").await.1);
    });
}

#[test]
fn a_stage_is_called_again_with_the_answer() {
    block(async {
        let summary = model(vec![Reply::text("blue")]);
        let apart = summary.clone();
        let agent = agent(model(vec![Reply::text("ok")]), |config| {
            config.summary_model = Some(Arc::new(apart));
            config.pipeline = Pipeline::standard().then(Does("asks", |cx: &StageCx<'_>| match cx.answer {
                None => {
                    let way = Way::Apart { system: text("Answer."), words: text("Which colour?") };
                    Verdict::Ask(Ask { way, max_output: 20 })
                }
                Some(answer) => Verdict::Pass(
                    agent_prepare::Overrides::default()
                        .remind(format!("It is {}.", answer.as_ref().unwrap())),
                ),
            }));
        });
        is_done(&say(&agent, "go").await.1);
        assert!(bodies(&agent.model)[0].contains("It is blue."));
        assert_eq!((summary.requests().len(), agent.model.requests().len()), (1, 1));
    });
}
