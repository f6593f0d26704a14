//! A call that is refused for the third time: the model is told to stop asking, whatever was restarted in between.

use agent_core::{Entry, ToolOutput};
use agent_store::Store;
use agent_testkit::Reply;
use agent_tools::PermissionMode;

use super::{agent, results, taken_up};
use crate::support::{Agent, Points, block, crash_after, id};

/// How often each refusal says that the call was refused.
fn counts(outputs: &[ToolOutput]) -> Vec<&'static str> {
    let count = |output: &ToolOutput| {
        let ToolOutput::Denied(words) = output else { return "ran" };
        ["3", "4"]
            .into_iter()
            .find(|n| words.as_str().contains(&format!("refused {n} times in this turn: stop asking")))
            .unwrap_or("-")
    };
    outputs.iter().map(count).collect()
}

fn put(what: &str) -> Reply {
    Reply::tool("put", format!(r#"{{"what":"{what}"}}"#))
}

fn unattended(replies: Vec<Reply>, store: Points) -> Agent {
    taken_up(replies, store, |config, _| config.permissions.mode = PermissionMode::Default)
}

#[test]
fn the_third_refusal_of_one_call_says_so() {
    let check = |replies: Vec<Reply>, expect: &[&str]| {
        block(async {
            let agent = unattended(replies, Points::default());
            agent.say("go").await;
            assert_eq!(counts(&results(&agent.history().await)), expect);
        });
    };
    let ok = || Reply::text("ok");
    check(vec![put("a"), put("a"), put("a"), put("a"), ok()], &["-", "-", "3", "4"]);
    check(vec![put("a"), put("b"), put("a"), put("b"), put("a"), ok()], &["-", "-", "-", "-", "3"]);
    let same = r#"{"what":"a"}"#;
    check(vec![put("a").call("put", same).call("put", same), ok()], &["-", "-", "3"]);
    check(vec![put("a"), put("a").call("look", same).call("put", same), ok()], &["-", "-", "ran", "3"]);
}

#[test]
fn another_turn_counts_anew() {
    block(async {
        let replies = vec![put("a"), put("a"), Reply::text("ok"), put("a"), Reply::text("ok")];
        let agent = agent(replies, |config, _| config.permissions.mode = PermissionMode::Default);
        agent.say("go").await;
        agent.say("again").await;
        assert_eq!(counts(&results(&agent.history().await)), ["-", "-", "-"]);
    });
}

#[test]
fn a_restart_changes_nothing() {
    block(async {
        let same = r#"{"what":"a"}"#;
        let replies = || vec![put("a"), put("a").call("look", same).call("put", same), Reply::text("ok")];
        for polls in 0..60 {
            let first = unattended(replies(), Points::default());
            let store = first.store.clone();
            let ended = crash_after(first.session().send("go").await.unwrap(), polls).await;
            drop(first);
            let record = store.load(&id()).await.unwrap();
            let is_over =
                record.is_some_and(|it| it.entries.iter().any(|_| true) && it.checkpoint.turn.is_none());
            if ended.is_none() && !is_over {
                unattended(replies(), store.clone()).say("go").await;
            }
            let history = unattended(replies(), store).history().await;
            assert!(matches!(history.entries().last(), Some(Entry::Step(_))));
            assert_eq!(counts(&results(&history)), ["-", "-", "ran", "3"], "after {polls} polls");
        }
    });
}
