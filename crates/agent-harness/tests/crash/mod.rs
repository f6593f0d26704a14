//! A run dropped at any point is taken up again: nothing that finished runs twice, nothing is lost.

mod attempts;
mod compaction;

use std::collections::BTreeMap;

use agent_core::{Entry, History};
use agent_testkit::{Reply, ScriptedModel};

use agent_store::Store;

use crate::support::{Agent, Effects, Points, block, crash_after, id, talk};

fn replies() -> Vec<Reply> {
    vec![
        Reply::text("Both.")
            .call("look", r#"{"what":"a"}"#)
            .call("put", r#"{"what":"b"}"#)
            .call("put", r#"{"what":"c"}"#),
        Reply::tool("put", r#"{"what":"d"}"#),
        Reply::text("All done."),
    ]
}

fn agent(store: &Points, effects: &Effects) -> Agent {
    Agent::with(ScriptedModel::new(replies()).by_history(), store.clone(), effects.clone())
}

/// What the model said, without the results.
fn said(history: &History) -> String {
    let parts = history.entries().iter().map(|entry| match entry {
        Entry::Step(step) => serde_json::to_string(step.parts()).unwrap(),
        other @ (Entry::User(_) | Entry::Note(_) | Entry::Boundary(_)) => {
            serde_json::to_string(other).unwrap()
        }
    });
    parts.collect::<Vec<_>>().join("\n")
}

fn unknown(history: &History) -> usize {
    talk(history).matches("Outcome unknown").count()
}

/// Whether the store holds a turn that is over.
async fn is_over(store: &Points) -> bool {
    let record = store.load(&id()).await.unwrap();
    record.is_some_and(|record| !record.entries.is_empty() && record.checkpoint.turn.is_none())
}

#[test]
fn dropped_once_anywhere() {
    block(async {
        let whole = agent(&Points::default(), &Effects::default());
        whole.say("go").await;
        let paid = whole.store.load(&id()).await.unwrap().unwrap().checkpoint.usage;
        let expect = said(&whole.history().await);
        for polls in 0..500 {
            let (store, effects) = (Points::default(), Effects::default());
            let first = agent(&store, &effects);
            let ended = crash_after(first.session().send("go").await.unwrap(), polls).await;
            drop(first);
            // Another process: a new agent on the same store is given the same command.
            // (A run that died between its last commit and its answer has nothing left to do.)
            let over = ended.is_some() || is_over(&store).await;
            if !over {
                let (_, end) = agent(&store, &effects).say("go").await;
                assert_eq!(end.text, "All done.", "after {polls} polls");
            }
            let history = agent(&store, &effects).history().await;
            assert_eq!(said(&history), expect, "after {polls} polls");
            let spent = store.load(&id()).await.unwrap().unwrap().checkpoint.usage;
            assert!(
                spent.output >= paid.output,
                "after {polls} polls: no answer that is kept goes uncounted"
            );
            let mut times: BTreeMap<String, usize> = BTreeMap::new();
            for effect in effects.all() {
                *times.entry(effect).or_default() += 1;
            }
            assert!(times.values().all(|n| *n == 1), "after {polls} polls: {times:?}");
            assert!(unknown(&history) <= 1, "after {polls} polls at most the call in flight is unknown");
            assert!(
                times.len() + unknown(&history) >= 3,
                "a call without effect is known as such: {times:?}"
            );
            if ended.is_some() {
                assert!(polls > 20, "the points before the end were tried: {polls}");
                return;
            }
        }
        panic!("the turn never ended");
    });
}

#[test]
fn dropped_again_and_again() {
    block(async {
        for stride in 1..12 {
            let (store, effects) = (Points::default(), Effects::default());
            let mut tries = 0;
            loop {
                let agent = agent(&store, &effects);
                tries += 1;
                // A little further each time, so that it ends.
                let ended = crash_after(agent.session().send("go").await.unwrap(), stride + tries).await;
                if ended.is_some() || is_over(&store).await {
                    break;
                }
            }
            let effects = effects.all();
            let distinct: std::collections::BTreeSet<_> = effects.iter().collect();
            assert_eq!(distinct.len(), effects.len(), "stride {stride}: {effects:?}");
        }
    });
}

/// How many writes a turn takes beyond the two that begin it: a step without calls is one.
fn check_writes(step: Reply, expect: usize) {
    block(async {
        let (store, effects) = (Points::default(), Effects::default());
        let model = ScriptedModel::new(vec![step, Reply::text("All done.")]).by_history();
        let end = Agent::with(model, store.clone(), effects).say("go").await.1;
        assert_eq!(end.text, "All done.");
        assert_eq!(store.writes() - 3, expect, "besides creation, opening and the last step");
    });
}

#[test]
fn a_step_takes_no_more_writes_than_it_needs() {
    let look = |what: &str| ("look", format!(r#"{{"what":"{what}"}}"#));
    let put = |what: &str| ("put", format!(r#"{{"what":"{what}"}}"#));
    let step = |calls: &[(&str, String)]| {
        calls.iter().fold(Reply::text("So."), |reply, (tool, input)| reply.call(*tool, input.clone()))
    };
    check_writes(step(&[look("a")]), 2);
    check_writes(step(&[put("a")]), 2);
    // Beside each other: the first result is safe while the second call runs.
    check_writes(step(&[look("a"), look("b")]), 3);
    // One after the other: a result is written with the mark of the next call.
    check_writes(step(&[put("a"), put("b")]), 3);
    check_writes(step(&[look("a"), put("b"), put("c"), look("d")]), 5);
    check_writes(step(&[("missing", "{}".to_owned())]), 1);
}

#[test]
fn another_message_joins_the_open_turn() {
    block(async {
        let (store, effects) = (Points::default(), Effects::default());
        let first = agent(&store, &effects);
        let before = store.writes();
        assert!(crash_after(first.session().send("go").await.unwrap(), 9).await.is_none());
        assert!(store.writes() > before);
        drop(first);
        let (_, end) = agent(&store, &effects).say("and hurry").await;
        assert_eq!(end.turn.number(), 1, "the open turn is taken up, not a new one begun");
        let history = agent(&store, &effects).history().await;
        let users = history.entries().iter().filter(|entry| matches!(entry, Entry::User(_))).count();
        assert_eq!(users, 2);
    });
}
