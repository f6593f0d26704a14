//! Messages and replies that come while a turn runs or waits, from this worker and from others.

use agent_core::{EventBody, Heard, Input, ParkKind, Reply as Answer, TerminalReason, UserMessage};
use agent_harness::{Handed, Harness, HarnessConfig, Session};
use agent_store::Store;
use agent_testkit::Reply;

use super::Scene;
use crate::support::{block, crash_after, id, talk, watch};

fn ask() -> Reply {
    Reply::tool("ask_question", r#"{"question":"Which bed?"}"#)
}

fn roses() -> Answer {
    Answer::Answer(vec!["roses".into()])
}

/// What the user and the model said, one line a message.
pub(super) async fn conversation(scene: &Scene) -> String {
    let history = scene.agent.history().await;
    let lines = history.entries().iter().map(|entry| match entry {
        agent_core::Entry::User(message) => format!("user: {}", message.plain()),
        agent_core::Entry::Step(step) if step.results().is_empty() => format!("model: {}", step.text()),
        agent_core::Entry::Step(_) | agent_core::Entry::Note(_) | agent_core::Entry::Boundary(_) => {
            let mut one = agent_core::History::new();
            one.push(entry.clone()).unwrap();
            talk(&one)
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A message that comes while the turn waits, by policy (requirement L7).
#[test]
fn a_message_to_a_turn_that_waits() {
    let check = |heard: Heard, restart: bool| {
        block(async {
            let mut scene = Scene::new(vec![ask(), Reply::text("one"), Reply::text("two")]);
            let (_, requests) = scene.park(ParkKind::Question).await;
            if restart {
                scene = scene.again();
            }
            let message = UserMessage::text("and hurry").unwrap();
            let run = scene.agent.session().say(message, heard).await.unwrap().run().unwrap();
            let waits = watch(run).await.1.reason;
            if heard == Heard::Instead {
                assert_eq!(waits, TerminalReason::Done);
            } else {
                assert_eq!(waits, TerminalReason::Parked(ParkKind::Question), "{heard:?}");
                assert_eq!(scene.respond(&requests[0].id, roses()).await, TerminalReason::Done);
            }
            assert!(scene.agent.store.inputs(&id()).await.unwrap().is_empty(), "{heard:?}");
            conversation(&scene).await
        })
    };
    for restart in [false, true] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(check(Heard::After, restart), @"
            user: go
            step: ask_question -> roses
            model: one
            user: and hurry
            model: two
            ");
            insta::assert_snapshot!(check(Heard::NextStep, restart), @"
            user: go
            step: ask_question -> roses
            user: and hurry
            model: one
            ");
            insta::assert_snapshot!(check(Heard::Instead, restart), @r#"
            user: go
            step: ask_question -> There is no answer: it was declined. They say: "I said something else instead; read it below.". Do not ask for it again; go on without it, or finish and say what is missing.
            user: and hurry
            model: one
            "#);
        }
    }
}

/// What is sent is kept as the program says; the same words again are not said twice.
#[test]
fn what_is_sent_to_a_turn_that_waits_is_kept() {
    block(async {
        let scene = Scene::new(vec![ask(), Reply::text("one"), Reply::text("two")]);
        let (_, requests) = scene.park(ParkKind::Question).await;
        for text in ["go", "more"] {
            let end = scene.agent.say(text).await.1;
            assert_eq!(end.reason, TerminalReason::Parked(ParkKind::Question), "{text}");
        }
        assert_eq!(scene.respond(&requests[0].id, roses()).await, TerminalReason::Done);
        insta::assert_snapshot!(conversation(&scene).await, @"
        user: go
        step: ask_question -> roses
        model: one
        user: more
        model: two
        ");
    });
}

/// A message for the next step is heard by the run that drives, whoever said it; one for later has a turn of its own.
#[test]
fn a_running_turn_hears_what_is_said() {
    block(async {
        let looks = || Reply::tool("look", r#"{"what":"x"}"#);
        let replies = vec![looks(), looks(), Reply::text("one"), Reply::text("two")];
        let scene = Scene::new(replies);
        let mut run = scene.agent.session().send("go").await.unwrap();
        // Another worker shares the store and nothing else.
        let other = Harness::new(HarnessConfig { ..scene.agent.harness.config().clone() });
        let mut steps = 0;
        while let Some(event) = run.next().await {
            if !matches!(event.body, EventBody::StepStarted {}) {
                continue;
            }
            steps += 1;
            if steps == 1 {
                let session = other.session(id());
                assert!(matches!(session.steer("left").await.unwrap(), Handed::Elsewhere));
                assert!(matches!(session.follow_up("then right").await.unwrap(), Handed::Elsewhere));
            }
        }
        assert_eq!(run.finish().await.unwrap().reason, TerminalReason::Done);
        insta::assert_snapshot!(conversation(&scene).await, @"
        user: go
        step: look -> saw x
        user: left
        step: look -> saw x
        model: one
        user: then right
        model: two
        ");
    });
}

#[test]
fn without_an_open_turn_it_is_sent() {
    block(async {
        let scene = Scene::new(vec![Reply::text("one"), Reply::text("two")]);
        for (at, heard) in [Heard::After, Heard::NextStep].into_iter().enumerate() {
            let message = UserMessage::text(format!("hello {at}")).unwrap();
            let run = scene.agent.session().say(message, heard).await.unwrap().run().unwrap();
            assert_eq!(watch(run).await.1.reason, TerminalReason::Done);
        }
        assert_eq!(scene.agent.history().await.entries().len(), 4);
    });
}

/// Drives until the turn waits, or there is nothing to drive.
async fn drive(session: &Session) {
    while let Ok(run) = session.resume().await {
        if let TerminalReason::Parked(_) = watch(run).await.1.reason {
            return;
        }
    }
}

/// What was taken is heard, whenever the worker that was to hear it dies.
#[test]
fn nothing_that_was_taken_is_lost_in_a_crash() {
    for heard in [Heard::After, Heard::NextStep, Heard::Instead] {
        for polls in 0..60 {
            block(async {
                let scene = Scene::new(vec![ask(), Reply::text("one"), Reply::text("two")]);
                let (_, requests) = scene.park(ParkKind::Question).await;
                let message = UserMessage::text("and hurry").unwrap();
                let run = scene.agent.session().say(message, heard).await.unwrap().run().unwrap();
                crash_after(run, polls).await;
                let scene = scene.again();
                let session = scene.agent.session();
                drive(&session).await;
                if let Ok(handed) = session.respond(&requests[0].id, roses()).await {
                    let reason = watch(handed.run().unwrap()).await.1.reason;
                    assert_eq!(reason, TerminalReason::Done, "{heard:?} after {polls} polls");
                }
                let said = conversation(&scene).await;
                assert_eq!(said.matches("and hurry").count(), 1, "{heard:?} after {polls} polls:\n{said}");
                assert!(said.ends_with("model: two") || said.ends_with("model: one"), "{said}");
                let events = scene.agent.store.events(&id(), 0).await.unwrap();
                let closed = events.iter().filter(|it| matches!(it.body, EventBody::InputClosed { .. }));
                assert_eq!(closed.count(), 1, "{heard:?} after {polls} polls: told once");
            });
        }
    }
}

/// Two people answer at the same time: one reply stands, whichever it is, and nothing runs twice.
#[test]
fn two_replies_at_once() {
    block(async {
        let scene = Scene::new(vec![Reply::tool("put", r#"{"what":"a"}"#), Reply::text("ok")]);
        let (_, requests) = scene.park(ParkKind::Approval).await;
        let session = scene.agent.session();
        let other = Harness::new(scene.agent.harness.config().clone()).session(id());
        let (one, two) = tokio::join!(
            session.respond(&requests[0].id, Answer::Allow),
            other.respond(&requests[0].id, Answer::Decline(None)),
        );
        let ends = [one, two].map(|end| end.map_err(|error| error.to_string()));
        assert_eq!(ends.iter().filter(|end| end.is_err()).count(), 1, "{ends:?}");
        for end in ends.into_iter().flatten() {
            assert_eq!(watch(end.run().unwrap()).await.1.reason, TerminalReason::Done);
        }
        assert!(scene.agent.effects.all().len() <= 1);
    });
}

/// An input for a session that another worker has and never commits again is still in the inbox.
#[test]
fn what_nobody_heard_waits_for_the_next_worker() {
    block(async {
        let scene = Scene::new(vec![ask(), Reply::text("one"), Reply::text("two")]);
        scene.park(ParkKind::Question).await;
        let lease = scene.agent.store.lease(&id()).await.unwrap();
        let message = UserMessage::text("and hurry").unwrap();
        let handed = scene.agent.session().say(message, Heard::Instead).await.unwrap();
        assert!(matches!(handed, Handed::Elsewhere));
        let [kept] = &scene.agent.store.inputs(&id()).await.unwrap()[..] else { panic!("it is kept") };
        assert!(matches!(kept.input, Input::Message { heard: Heard::Instead, .. }));
        drop(lease);
        let end = watch(scene.agent.session().resume().await.unwrap()).await.1;
        assert_eq!(end.reason, TerminalReason::Done);
    });
}
