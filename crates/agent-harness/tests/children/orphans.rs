//! A child that nobody waits for any more has ended, whatever ended the wait and wherever a crash fell.

use std::sync::Arc;
use std::time::Duration;

use agent_core::{EventBody, Heard, Reply as Answer, SessionId, TerminalReason, ToolOutput, UserMessage};
use agent_harness::{AskLater, Children, Family, Run};
use agent_store::{Store, StoreError};
use agent_testkit::Reply;

use super::{family, kind, of_children, results, tasks, with};
use crate::support::{Agent, Effects, Hands, Points, block, crash_after, id, watch};

/// Why a parent that is parked on its child does not wait any longer.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Why {
    Stopped,
    Superseded,
    DoneElsewhere,
    Lapsed,
}

/// A parent whose child has a child that asks something, with a minute to answer.
fn parent(store: &Points, hands: &Hands) -> Agent {
    let ask = Reply::tool("ask_question", r#"{"question":"Which bed?"}"#);
    let kinds = vec![
        kind("middle", vec![tasks(&["asks"]), Reply::text("Well.")]),
        kind("asks", vec![ask, Reply::text("never")]),
    ];
    let script = vec![tasks(&["middle"]), Reply::text("Without it."), Reply::text("More.")];
    with(family(script, kinds, store, &Effects::default()), |config| {
        config.asker = Arc::new(AskLater);
        config.clock = Arc::new(hands.clone());
        config.request_lifetime = Some(Duration::from_secs(60));
    })
}

/// Takes the parent up with what ends its wait; `None` when it was over before.
async fn ending(why: Why, store: &Points, hands: &Hands) -> Option<Run> {
    let session = parent(store, hands).session();
    let held = session.requests().await.unwrap();
    match why {
        Why::Stopped => {
            let run = session.resume().await.ok()?;
            run.cancel().cancel();
            Some(run)
        }
        Why::Superseded => {
            let words = UserMessage::text("Something else.").unwrap();
            match session.resume().await {
                Ok(run) if store.inputs(&id()).await.unwrap().is_empty() && !held.is_empty() => {
                    drop(run);
                    let said = parent(store, hands).session().say(words, Heard::Instead).await.unwrap();
                    said.run()
                }
                run => run.ok(),
            }
        }
        Why::DoneElsewhere => match held.first() {
            Some(request) if request.agent_task().is_some() => {
                let output = Answer::Output(ToolOutput::text("I did it."));
                session.respond(&request.id, output).await.unwrap().run()
            }
            _ => session.resume().await.ok(),
        },
        Why::Lapsed => {
            hands.forward(61_000);
            session.resume().await.ok()
        }
    }
}

/// Every session below the parent is over, told so once, and waits for nothing.
async fn check_closed(store: &Points, at: &str) {
    let mut children = 0;
    for line in store.sessions().await.unwrap() {
        let line = line.unwrap();
        if line.id.parent().is_none() {
            continue;
        }
        children += 1;
        let state = store.state(&line.id).await.unwrap().unwrap();
        assert_eq!(state.checkpoint.turn, None, "{at}: {} is open", line.id);
        assert!(state.terminal.is_some() && state.open_requests().is_empty(), "{at}: {}", line.id);
        let events = store.events(&line.id, 0).await.unwrap();
        let is_end = |body: &EventBody| matches!(body, EventBody::TurnCompleted { .. });
        assert_eq!(events.iter().filter(|event| is_end(&event.body)).count(), 1, "{at}: {}", line.id);
        let asked = events.iter().filter(|event| matches!(event.body, EventBody::InputRequested(_))).count();
        let closed =
            events.iter().filter(|event| matches!(event.body, EventBody::InputClosed { .. })).count();
        assert_eq!((asked, closed), (1, 1), "{at}: {}", line.id);
    }
    assert_eq!(children, 2, "{at}");
}

#[test]
fn children_end_with_the_wait_for_them() {
    for why in [Why::Stopped, Why::Superseded, Why::DoneElsewhere, Why::Lapsed] {
        block(async {
            let (store, hands) = (Points::default(), Hands::at(1_000));
            let (_, parked) = parent(&store, &hands).say("go").await;
            assert!(matches!(parked.reason, TerminalReason::Parked(_)), "{why:?}: {:?}", parked.reason);
            let (_, end) = watch(ending(why, &store, &hands).await.unwrap()).await;
            let expect = if why == Why::Stopped { TerminalReason::Aborted } else { TerminalReason::Done };
            assert_eq!(end.reason, expect, "{why:?}");
            check_closed(&store, &format!("{why:?}")).await;
        });
    }
}

/// A crash after so many polls of what ends the wait; whether that came to its end before. The parent is taken up as often
/// as it takes, and never ends before its children.
async fn crashes(why: Why, polls: usize) -> bool {
    let at = format!("{why:?} after {polls} polls");
    let (store, hands) = (Points::default(), Hands::at(1_000));
    parent(&store, &hands).say("go").await;
    let first = crash_after(ending(why, &store, &hands).await.unwrap(), polls).await;
    for _ in 0..3 {
        let state = store.state(&id()).await.unwrap().unwrap();
        if state.checkpoint.turn.is_none() {
            check_closed(&store, &at).await;
            return first.is_some();
        }
        if let Some(run) = ending(why, &store, &hands).await {
            watch(run).await;
        }
    }
    panic!("{at}: the parent never ended");
}

#[test]
fn a_crash_on_the_way_leaves_none_open() {
    for why in [Why::Stopped, Why::Superseded, Why::DoneElsewhere, Why::Lapsed] {
        block(async {
            let mut polls = 0;
            while !crashes(why, polls).await {
                polls += 1;
                assert!(polls < 1_000, "{why:?}: it never comes to its end");
            }
            assert!(polls > 5, "{why:?}: there were points before the end: {polls}");
        });
    }
}

/// A model that takes the child down with it.
#[derive(Debug)]
struct Bursts(agent_testkit::ScriptedModel);

#[async_trait::async_trait]
impl agent_core::LanguageModel for Bursts {
    fn profile(&self) -> &agent_core::ModelProfile {
        self.0.profile()
    }
    fn encoder(&self) -> Box<dyn agent_core::Encoder> {
        self.0.encoder()
    }
    async fn stream(
        &self,
        _: agent_core::Outgoing,
        _: &agent_core::Cancel,
    ) -> Result<agent_core::ModelStream, agent_core::ModelError> {
        panic!("it burst")
    }
}

#[test]
fn a_parent_outlives_a_child_that_breaks_down() {
    block(async {
        let (store, effects) = (Points::default(), Effects::default());
        let mut bursts = kind("bursts", vec![]);
        bursts.model = Some(Arc::new(Bursts(agent_testkit::ScriptedModel::new(vec![]))));
        let kinds = vec![bursts, kind("fine", vec![Reply::text("Fine.")])];
        let agent =
            family(vec![tasks(&["bursts", "fine"]), Reply::text("One of two.")], kinds, &store, &effects);
        let (events, end) = agent.say("go").await;
        assert_eq!((end.text.as_str(), end.reason), ("One of two.", TerminalReason::Done));
        insta::assert_snapshot!(results(&agent).await, @"
        step: agent -> The sub-agent did not finish its task: broke down (it panicked: it burst). What it did until then stands: look at the present state before you go on. Do the rest yourself, or give a smaller task.

        [sub-agent s.sub-…: broke down after 0 steps; 0 tokens in, 0 out]; agent -> Fine.

        [sub-agent s.sub-…: done after 1 step; 956 tokens in, 2 out]
        step:
        ");
        let broke = of_children(&events).into_iter().find(|(_, word)| word == "broke").unwrap().0;
        let state = store.state(&broke).await.unwrap().unwrap();
        assert_eq!((state.checkpoint.turn, state.terminal), (None, Some(TerminalReason::Aborted)));
    });
}

#[test]
fn a_session_is_deleted_with_its_children() {
    block(async {
        let (store, hands) = (Points::default(), Hands::at(1_000));
        parent(&store, &hands).say("go").await;
        let other = SessionId::new("s2").unwrap();
        let beside = with(family(vec![Reply::text("Hi.")], vec![], &store, &Effects::default()), |config| {
            config.children = Some(Children::default());
        });
        watch(beside.harness.session(other.clone()).send("hello").await.unwrap()).await;
        let ids = |lines: Vec<agent_store::SummaryLine>| {
            lines.into_iter().map(|line| line.unwrap().id).collect::<Vec<_>>()
        };
        let all = ids(store.sessions().await.unwrap());
        assert_eq!(all.len(), 4, "{all:?}");
        let grandchild = all.iter().max_by_key(|id| id.as_str().len()).unwrap().clone();
        let lease = store.lease(&grandchild).await.unwrap();
        let refused = Family::hold(&store, &id()).await.unwrap_err();
        assert!(matches!(refused, StoreError::Busy { .. }), "{refused}");
        assert_eq!(store.sessions().await.unwrap().len(), 4, "nothing of it");
        drop(lease);
        let held = Family::hold(&store, &id()).await.unwrap();
        assert!(matches!(store.lease(&grandchild).await, Err(StoreError::Busy { .. })));
        let deleted = held.delete(&store).await.unwrap();
        assert_eq!((deleted.len(), &deleted[0], &deleted[2]), (3, &id(), &grandchild));
        assert_eq!(ids(store.sessions().await.unwrap()), [other]);
        let missing = Family::hold(&store, &id()).await.unwrap_err();
        assert!(matches!(missing, StoreError::Missing(_)), "{missing}");
    });
}
