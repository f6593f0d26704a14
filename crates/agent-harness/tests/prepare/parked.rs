//! What a turn needs to go on is stored with it: where it began, and which tools its step at work may call.

use std::sync::{Arc, Mutex};

use agent_core::{
    Checkpoint, Commit, EntryId, JournalRecord, ModelError, ModelErrorKind, ParkKind, Revision,
    SessionRecord, Usage,
};
use agent_prepare::Overrides;
use agent_store::Store;
use agent_testkit::{Failure, Reply, ScriptedModel};
use agent_turn::{Report, Turn, step_count};

use super::{agent, changing, is_done, taken_up};
use crate::support::{Points, block, crash_after, id, talk, watch};

fn calls_put() -> ScriptedModel {
    let calls = Reply::tool("put", r#"{"what":"x"}"#).call("look", r#"{"what":"y"}"#);
    ScriptedModel::new(vec![calls, Reply::text("ok")]).by_history()
}

/// A session whose first step is answered and held to `look`, as a crash leaves it.
async fn answered() -> (Points, SessionRecord) {
    for polls in 0..200 {
        let agent = agent(calls_put(), |config| {
            config.pipeline =
                changing(|_| Overrides { active_tools: Some(vec!["look".into()]), ..Overrides::default() });
        });
        crash_after(agent.session().send("go").await.unwrap(), polls).await;
        let record = agent.store.load(&id()).await.unwrap();
        if let Some(record) = record.filter(|record| !record.journal.is_empty()) {
            return (agent.store.clone(), record);
        }
    }
    panic!("no response was journaled")
}

/// Parks the turn of a session, as one commit.
async fn park(store: &Points, record: SessionRecord) -> Revision {
    let Checkpoint { turn, active, .. } = record.checkpoint.clone();
    assert_eq!(active, None, "the journal has it");
    let mut turn = Turn::restore(&turn.unwrap()).unwrap();
    let mut active = None;
    let stop = step_count(9);
    turn.handle(&stop, Report::Prepared).unwrap();
    for written in record.journal {
        match written {
            JournalRecord::Response(pending) => drop(turn.handle(&stop, Report::Response(pending)).unwrap()),
            JournalRecord::Active(names) => active = Some(names),
            JournalRecord::Started(_)
            | JournalRecord::Sent(_)
            | JournalRecord::Returned(_)
            | JournalRecord::Waits(_)
            | JournalRecord::Finished { .. } => {}
        }
    }
    assert!(active.is_some());
    turn.handle(&stop, Report::Park(ParkKind::Approval)).unwrap();
    let checkpoint = Checkpoint { turn: Some(turn.save().unwrap()), active, ..record.checkpoint };
    let lease = store.lease(&id()).await.unwrap();
    let commit = Commit {
        expect: record.revision,
        entries: &[],
        checkpoint: &checkpoint,
        usage: None,
        events: &[],
        consumed: &[],
        terminal: None,
        now_ms: 0,
    };
    store.commit(&lease, commit).await.unwrap().revision
}

#[test]
fn a_parked_turn_is_held_to_the_tools_of_its_step() {
    block(async {
        let (store, record) = answered().await;
        park(&store, record).await;
        let parked = store.load(&id()).await.unwrap().unwrap();
        assert!(parked.journal.is_empty(), "a commit clears it");
        let next = taken_up(calls_put(), store, |_| {});
        is_done(&watch(next.session().resume().await.unwrap()).await.1);
        assert!(next.effects.all().is_empty(), "what was not active did not run");
        let said = talk(&next.history().await);
        assert!(said.contains("put -> Not run: `put` is not active in this step."), "{said}");
        assert!(said.contains("look -> saw y"), "{said}");
        let checkpoint = next.store.load(&id()).await.unwrap().unwrap().checkpoint;
        assert_eq!((checkpoint.turn, checkpoint.turn_from, checkpoint.active), (None, None, None));
    });
}

/// An answer that only the journal has is as large for the next step as one that was committed.
#[test]
fn the_size_of_a_recovered_answer_is_heard() {
    let script = || {
        let counted = Usage { input: 2_000, output: 5, ..Usage::default() };
        let calls = Reply::tool("look", r#"{"what":"y"}"#).costing(counted);
        ScriptedModel::new(vec![calls, Reply::text("ok")]).by_history()
    };
    let sizes = |seen: &Arc<Mutex<Vec<u64>>>| {
        let sees = seen.clone();
        changing(move |cx| {
            sees.lock().unwrap().push(cx.of.tokens.used);
            Overrides::default()
        })
    };
    let (whole, mut taken) = (Arc::new(Mutex::new(Vec::new())), 0);
    block(async {
        let agent = agent(script(), |config| config.pipeline = sizes(&whole));
        is_done(&watch(agent.session().send("go").await.unwrap()).await.1);
        for polls in 0..200 {
            let first = super::agent(script(), |_| {});
            crash_after(first.session().send("go").await.unwrap(), polls).await;
            let store = first.store.clone();
            drop(first);
            let record = store.load(&id()).await.unwrap();
            if record.is_none_or(|record| record.journal.is_empty()) {
                continue;
            }
            taken += 1;
            let seen = Arc::new(Mutex::new(Vec::new()));
            let next = taken_up(script(), store, |config| config.pipeline = sizes(&seen));
            is_done(&watch(next.session().resume().await.unwrap()).await.1);
            let whole = whole.lock().unwrap();
            assert!(whole[1] > 2_000, "{whole:?}");
            assert_eq!(*seen.lock().unwrap(), whole[1..], "after {polls} polls");
        }
    });
    assert!(taken > 0, "a response was journaled");
}

/// Turns that were begun behind one that failed before its first step was complete.
#[test]
fn a_turn_that_is_taken_up_begins_where_it_began() {
    let mut taken = 0;
    block(async {
        for polls in 0..200 {
            let failure = ModelError::new(ModelErrorKind::InvalidRequest, "no such model");
            let own = ScriptedModel::new(vec![Reply::text("ok")]).by_history();
            let first = agent(own.clone().failing(0, Failure::Before(failure)), |_| {});
            let session = first.session();
            assert!(watch(session.send("go").await.unwrap()).await.1.error.is_some());
            let is_over = crash_after(session.send("again").await.unwrap(), polls).await.is_some();
            let record = first.store.load(&id()).await.unwrap().unwrap();
            let store = first.store.clone();
            drop((session, first));
            if is_over {
                break;
            }
            if record.checkpoint.turn.is_none() {
                continue;
            }
            taken += 1;
            assert_eq!(record.checkpoint.turn_from, Some(EntryId::at(1)));
            let seen = Arc::new(Mutex::new(Vec::new()));
            let sees = seen.clone();
            let next = taken_up(own, store, |config| {
                config.pipeline = changing(move |cx| {
                    sees.lock().unwrap().push(cx.of.turn_from);
                    Overrides::default()
                });
            });
            is_done(&watch(next.session().resume().await.unwrap()).await.1);
            assert_eq!(*seen.lock().unwrap(), [EntryId::at(1)], "after {polls} polls");
        }
    });
    assert!(taken > 1, "the turn was broken off");
}
