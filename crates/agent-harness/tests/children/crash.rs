//! A parent and its children dropped at any point: nothing that ended runs twice.

use std::collections::BTreeMap;

use agent_core::{EventBody, History, SessionId};
use agent_harness::TurnEnd;
use agent_store::Store;
use agent_testkit::Reply;

use super::{family, kind, put, results, tasks};
use crate::support::{Agent, Effects, Points, block, crash_after, id, talk};

fn parent(store: &Points, effects: &Effects) -> Agent {
    let kinds = vec![
        kind("one", vec![put("a"), Reply::text("A is put.")]),
        kind("two", vec![tasks(&["three"]), put("b"), Reply::text("B is put.")]),
        kind("three", vec![put("c"), Reply::text("C is put.")]),
    ];
    family(vec![tasks(&["one", "two"]), put("d"), Reply::text("All done.")], kinds, store, effects)
}

/// Whether the store holds a turn that is over.
async fn is_over(store: &Points) -> bool {
    let state = store.state(&id()).await.unwrap();
    state.is_some_and(|state| state.terminal.is_some() && state.checkpoint.turn.is_none())
}

/// Every effect once or known to be lost, each child a single turn and a single result.
async fn check(store: &Points, effects: &Effects, at: &str) {
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for effect in effects.all() {
        *times.entry(effect).or_default() += 1;
    }
    assert!(times.values().all(|n| *n == 1), "{at}: {times:?}");
    let (mut sessions, mut unknown) = (0, 0);
    for line in store.sessions().await.unwrap() {
        let line = line.unwrap();
        sessions += 1;
        assert_eq!(line.turns, 1, "{at}: {}", line.id);
        let record = store.load(&line.id).await.unwrap().unwrap();
        let (history, _) = History::load(&record.entries).unwrap();
        unknown += talk(&history).matches("-> Outcome unknown").count();
    }
    assert_eq!(sessions, 4, "{at}: one session for each task");
    assert!(times.len() + unknown >= 4, "{at}: a call without effect is known as such: {times:?}");
    let events = store.events(&id(), 0).await.unwrap();
    let done = |event: &&agent_core::Event| matches!(event.body, EventBody::SubagentCompleted { .. });
    assert_eq!(events.iter().filter(done).count(), 2, "{at}");
    let began = |event: &&agent_core::Event| matches!(event.body, EventBody::SubagentStarted { .. });
    assert_eq!(events.iter().filter(began).count(), 2, "{at}: each is told of once");
    let used = |id: SessionId| async move { store.state(&id).await.unwrap().unwrap().checkpoint };
    let mut below = 0;
    for line in store.sessions().await.unwrap() {
        let line = line.unwrap();
        below += if line.id.parent().is_some() { line.usage.total_input() } else { 0 };
    }
    let children = used(id()).await.children;
    assert_eq!(children.session.usage.total_input(), below, "{at}: what each used counts once");
    assert_eq!(children.session, children.turn, "{at}");
}

#[test]
fn dropped_once_anywhere() {
    block(async {
        for polls in 0..2_000 {
            let (store, effects) = (Points::default(), Effects::default());
            let first = parent(&store, &effects);
            let ended = crash_after(first.session().send("go").await.unwrap(), polls).await;
            drop(first);
            let is_whole = ended.is_some();
            if !is_whole && !is_over(&store).await {
                let (_, end): (_, TurnEnd) = parent(&store, &effects).say("go").await;
                assert_eq!(end.text, "All done.", "after {polls} polls");
                assert!(end.children.output > 0, "after {polls} polls");
            }
            check(&store, &effects, &format!("after {polls} polls")).await;
            if is_whole {
                assert!(polls > 40, "the points before the end were tried: {polls}");
                insta::assert_snapshot!(results(&parent(&store, &effects)).await, @"
                step: agent -> A is put.

                [sub-agent s.sub-…: done after 2 steps; 1974 tokens in, 7 out]; agent -> B is put.

                [sub-agent s.sub-…: done after 3 steps; 4539 tokens in, 27 out]
                step: put -> put d
                step:
                ");
                return;
            }
        }
        panic!("the turn never ended");
    });
}

#[test]
fn dropped_again_and_again() {
    block(async {
        for stride in 5..15 {
            let (store, effects) = (Points::default(), Effects::default());
            let mut tries = 0;
            loop {
                let agent = parent(&store, &effects);
                tries += 1;
                let ended = crash_after(agent.session().send("go").await.unwrap(), stride + tries).await;
                if ended.is_some() || is_over(&store).await {
                    break;
                }
            }
            check(&store, &effects, &format!("stride {stride}")).await;
        }
    });
}
