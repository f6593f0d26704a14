//! A turn over which workers are lost is not taken up for ever: attempts are counted before anything is loaded.

use std::panic::{AssertUnwindSafe, catch_unwind};

use agent_core::{Entry, TerminalReason};
use agent_harness::{Harness, HarnessConfig, HarnessError};
use agent_store::Store;
use agent_testkit::{Reply, ScriptedModel};

use crate::support::{Agent, Effects, Points, block, crash_after, id, watch};

/// An agent whose turn was left open by a worker that is gone, in the middle of its first step.
async fn left_open(max_recoveries: u32) -> Agent {
    let replies = super::replies().into_iter().chain([Reply::text("And that.")]).collect::<Vec<_>>();
    let model = ScriptedModel::new(replies).by_history();
    let agent = Agent::with(model, Points::default(), Effects::default());
    let config = HarnessConfig { max_recoveries, ..agent.harness.config().clone() };
    let agent = Agent { harness: Harness::new(config), ..agent };
    assert!(crash_after(agent.session().send("go").await.unwrap(), 9).await.is_none());
    agent
}

/// A worker that takes the session up and dies before it has loaded it.
async fn lost(agent: &Agent) {
    drop(agent.store.lease(&id()).await.unwrap());
}

/// How many attempts the store counts.
async fn counted(agent: &Agent) -> u32 {
    let lease = agent.store.lease(&id()).await.unwrap();
    agent.store.withdraw_attempt(&lease).await.unwrap();
    lease.attempts().saturating_sub(1)
}

/// What became of the workers that took the turn up, one after the other, and what a further one is told.
fn check(max_recoveries: u32, workers: &[&str], expect: &str) {
    let told = block(async {
        let agent = left_open(max_recoveries).await;
        for worker in workers {
            match *worker {
                "lost" => lost(&agent).await,
                // The process lives on.
                "dropped" => drop(crash_after(agent.session().resume().await.unwrap(), 1).await),
                "waits" => drop(agent.session().resume().await.unwrap()),
                "forgiven" => agent.store.reset_attempts(&id()).await.unwrap(),
                other => panic!("{other}"),
            }
        }
        match agent.session().resume().await {
            Ok(run) => watch(run).await.1.reason.to_string(),
            Err(HarnessError::NotTakenUp { attempts, .. }) => format!("lost {attempts}"),
            Err(error) => error.to_string(),
        }
    });
    assert_eq!(told, expect, "{workers:?} of {max_recoveries}");
}

#[test]
fn workers_that_are_lost_are_counted_and_others_are_not() {
    check(5, &[], "done");
    check(5, &["lost"; 4], "done");
    check(5, &["lost"; 5], "lost 5");
    check(5, &["lost"; 9], "lost 9");
    check(5, &["dropped"; 9], "done");
    check(5, &["waits"; 9], "done");
    check(5, &["lost", "lost", "dropped", "lost", "waits", "lost", "lost"], "lost 5");
    check(5, &["lost", "lost", "lost", "lost", "lost", "forgiven"], "done");
    check(1, &[], "done");
    check(1, &["lost"], "lost 1");
    check(0, &[], "done");
    check(u32::MAX, &["lost"; 9], "done");
}

/// Steps that were committed on the way do not begin the count anew.
#[test]
fn what_was_reached_meanwhile_does_not_count() {
    block(async {
        let agent = left_open(5).await;
        lost(&agent).await;
        let before = agent.history().await.entries().len();
        for _ in 0..3 {
            let revision = agent.store.state(&id()).await.unwrap().unwrap().revision;
            if agent.session().run_step(revision).await.unwrap().next != agent_harness::Next::Step {
                break;
            }
            assert_eq!(counted(&agent).await, 1, "a step is progress, and its worker stopped in order");
        }
        assert!(agent.history().await.entries().len() > before);
        assert_eq!(counted(&agent).await, 0, "the turn is over");
        crash_after(agent.session().send("more").await.unwrap(), 3).await;
        assert_eq!(counted(&agent).await, 0, "another turn has a count of its own");
    });
}

/// A panic unwinds through the run, and is no orderly end.
#[test]
fn a_panic_counts() {
    let agent = block(left_open(5));
    let broken = AssertUnwindSafe(|| {
        block(async {
            let _run = agent.session().resume().await.unwrap();
            panic!("something of the program broke");
        })
    });
    catch_unwind(broken).unwrap_err();
    assert_eq!(block(counted(&agent)), 1);
}

/// At the ceiling nothing is lost, nothing runs, and a person goes on or ends the turn.
#[test]
fn a_turn_that_is_not_taken_up_is_whole() {
    let check = |abandons: bool| {
        block(async {
            let agent = left_open(2).await;
            let asked = agent.model.requests().len();
            lost(&agent).await;
            lost(&agent).await;
            let before = agent.store.state(&id()).await.unwrap().unwrap();
            for _ in 0..3 {
                let Err(error) = agent.session().send("and this").await else { panic!("it was taken up") };
                assert!(error.to_string().contains("was taken up 2 times"), "{error}");
                assert!(error.to_string().contains("Session::resume_again"), "{error}");
            }
            assert_eq!(agent.store.state(&id()).await.unwrap().unwrap(), before, "it is as it was");
            assert_eq!(agent.model.requests().len(), asked, "and asks no model");
            let ran = agent.effects.all().len();
            let session = agent.session();
            let run = if abandons { session.abandon().await } else { session.resume_again().await };
            let end = watch(run.unwrap()).await.1;
            drop(session);
            let effects = agent.effects.all().split_off(ran).join(" ");
            let said = agent.say("and this").await.1;
            assert_eq!((said.turn.number(), said.reason), (2, TerminalReason::Done));
            let history = agent.history().await;
            let steps = history.entries().iter().filter(|entry| matches!(entry, Entry::Step(_))).count();
            (end.reason, agent.model.requests().len() - asked, steps, effects)
        })
    };
    insta::assert_debug_snapshot!(check(false), @r#"
    (
        Done,
        3,
        4,
        "c d",
    )
    "#);
    insta::assert_debug_snapshot!(check(true), @r#"
    (
        Aborted,
        2,
        3,
        "",
    )
    "#);
}
