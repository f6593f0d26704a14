//! The boundary of a durable engine: one step a wake, by any worker, and a wake that comes twice does nothing.

use agent_core::{ParkKind, Reply as Answer, Revision, TerminalReason};
use agent_harness::{Harness, HarnessError, Next};
use agent_store::{Store, StoreError};
use agent_testkit::Reply;

use super::Scene;
use crate::support::{block, crash_after, id, talk};

/// Wakes a session until there is nothing to do, each time by another worker.
async fn driven(scene: &Scene, mut revision: Revision) -> (Next, Revision, u32) {
    let mut steps = 0;
    loop {
        let worker = Harness::new(scene.agent.harness.config().clone());
        let report = worker.session(id()).run_step(revision).await.unwrap();
        let again = worker.session(id()).run_step(revision).await.unwrap();
        assert_eq!(again, report, "a wake that comes twice");
        steps += 1;
        revision = report.revision;
        if report.next != Next::Step {
            return (report.next, revision, steps);
        }
    }
}

async fn revision(scene: &Scene) -> Revision {
    scene.agent.store.state(&id()).await.unwrap().unwrap().revision
}

#[test]
fn an_engine_wakes_a_session_step_by_step() {
    block(async {
        let replies = vec![
            Reply::tool("look", r#"{"what":"x"}"#),
            Reply::tool("ask_question", r#"{"question":"Q"}"#),
            Reply::tool("look", r#"{"what":"y"}"#),
            Reply::text("ok"),
        ];
        let scene = Scene::new(replies);
        let run = scene.agent.session().send("go").await.unwrap();
        // The first commit is the message; what the run would do from there on is left to the engine.
        crash_after(run, 3).await;
        let (next, at, steps) = driven(&scene, revision(&scene).await).await;
        assert_eq!((next, steps), (Next::Parked(ParkKind::Question), 2));
        let requests = scene.agent.session().requests().await.unwrap();
        let reply = Answer::Answer(vec!["A".into()]);
        let handed = scene.agent.session().respond(&requests[0].id, reply).await.unwrap();
        drop(handed);
        let (next, end, _) = driven(&scene, at).await;
        assert_eq!(next, Next::Ended(TerminalReason::Done));
        assert!(end > at);
        assert_eq!(
            talk(&scene.agent.history().await),
            "user: 1\nstep: look -> saw x\nstep: ask_question -> A\nstep: look -> saw y\nstep: "
        );
        let late = scene.agent.session().run_step(Revision(0)).await.unwrap();
        assert_eq!((late.revision, late.next), (end, Next::Ended(TerminalReason::Done)));
    });
}

#[test]
fn an_engine_is_told_what_cannot_be_driven() {
    block(async {
        let scene = Scene::new(vec![Reply::text("ok")]);
        let missing = scene.agent.session().run_step(Revision(0)).await.unwrap_err();
        assert!(matches!(missing, HarnessError::Store(StoreError::Missing(_))), "{missing}");
        scene.agent.say("go").await;
        let over = scene.agent.session().run_step(revision(&scene).await).await.unwrap_err();
        assert!(matches!(over, HarnessError::NothingToResume(_)), "{over}");
        let lease = scene.agent.store.lease(&id()).await;
        drop(lease);
    });
}
