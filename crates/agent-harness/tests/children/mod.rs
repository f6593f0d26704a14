//! Sub-agents: sessions of their own below a parent's permissions and budget, which survive a crash (requirement L10).

mod crash;
mod events;
mod orphans;
mod permissions;
mod spent;

use std::sync::Arc;
use std::time::Duration;

use agent_builtins::{AgentKind, agent as agent_tool, ask_question};
use agent_core::{
    Event, EventBody, ModelError, ModelErrorKind, ParkKind, Reply as Answer, SessionId, TerminalReason,
};
use agent_harness::{AskLater, ChildKind, Children, Harness, HarnessConfig, TurnEnd};
use agent_store::Store;
use agent_testkit::{Failure, Reply, ScriptedModel};
use agent_tools::{Permissions, ToolSet};
use agent_turn::step_count;

use crate::support::{Agent, Effects, Points, block, talk, tools, watch};

/// A call of the tool `agent`.
pub(crate) fn task(kind: &str) -> (String, String) {
    ("agent".to_owned(), format!(r#"{{"task":"Do the {kind} work.","kind":"{kind}"}}"#))
}

/// A step that gives tasks to these kinds at once.
pub(crate) fn tasks(kinds: &[&str]) -> Reply {
    kinds.iter().fold(Reply::text("Go."), |reply, kind| {
        let (tool, input) = task(kind);
        reply.call(tool, input)
    })
}

pub(crate) fn kind(name: &str, replies: Vec<Reply>) -> ChildKind {
    let model = ScriptedModel::new(replies).by_history();
    ChildKind { name: name.to_owned(), model: Some(Arc::new(model)), ..ChildKind::default() }
}

/// A parent whose model says this, with these kinds of children, on a store that others share.
pub(crate) fn family(replies: Vec<Reply>, kinds: Vec<ChildKind>, store: &Points, effects: &Effects) -> Agent {
    let names: Vec<_> = kinds
        .iter()
        .map(|kind| AgentKind { name: kind.name.clone(), description: "Works.".into() })
        .collect();
    let agent = Agent::with(ScriptedModel::new(replies).by_history(), store.clone(), effects.clone());
    let all = ToolSet::builder().extend(tools(effects).iter().cloned());
    let config = HarnessConfig {
        tools: all.with(agent_tool(&names)).with(ask_question()).freeze().unwrap(),
        children: Some(Children { kinds, ..Children::default() }),
        ..agent.harness.config().clone()
    };
    Agent { harness: Harness::new(config), ..agent }
}

pub(crate) fn with(agent: Agent, change: impl FnOnce(&mut HarnessConfig)) -> Agent {
    let mut config = agent.harness.config().clone();
    change(&mut config);
    Agent { harness: Harness::new(config), ..agent }
}

/// What the parent's model is told of its tasks, with the names of sessions as they are told to be.
pub(crate) async fn results(agent: &Agent) -> String {
    let talk = talk(&agent.history().await);
    let lines: Vec<_> = talk.lines().skip(1).collect();
    masked(&lines.join("\n"))
}

/// The digits of a child's name differ with its task.
fn masked(text: &str) -> String {
    let mut parts = text.split(".sub-");
    let mut masked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        masked.push_str(".sub-…");
        masked.push_str(&part[16..]);
    }
    masked
}

/// The sub-agents that were told of: `started` or how they ended.
fn of_children(events: &[Event]) -> Vec<(SessionId, String)> {
    let told = events.iter().filter_map(|event| {
        if let EventBody::SubagentStarted { child, .. } = &event.body {
            return Some((child.clone(), "started".to_owned()));
        }
        let EventBody::SubagentCompleted { child, reason, .. } = &event.body else { return None };
        Some((child.clone(), reason.as_ref().map_or("broke".into(), ToString::to_string)))
    });
    told.collect()
}

fn put(what: &str) -> Reply {
    Reply::tool("put", format!(r#"{{"what":"{what}"}}"#))
}

fn slow() -> Reply {
    Reply::tool("slow", r#"{"what":"x"}"#)
}

/// A parent that gives these tasks in one step; the events, how it ended and how long it took.
async fn at_once(
    names: &[&str],
    store: &Points,
    effects: &Effects,
) -> (Agent, Vec<Event>, TurnEnd, Duration) {
    let waits = |words: &str| Reply::text(words).slowly(1_000);
    let kinds = vec![kind("one", vec![put("a"), waits("A is put.")]), kind("two", vec![waits("Seen.")])];
    let agent = family(vec![tasks(names), Reply::text("Both.")], kinds, store, effects);
    let began = tokio::time::Instant::now();
    let (events, end) = agent.say("go").await;
    (agent, events, end, began.elapsed())
}

#[test]
fn tasks_of_one_step_are_done_at_the_same_time() {
    block(async {
        let alone = |name: &'static str| async move {
            at_once(&[name], &Points::default(), &Effects::default()).await.3
        };
        let longest = alone("one").await.max(alone("two").await);
        let (store, effects) = (Points::default(), Effects::default());
        let (agent, events, end, took) = at_once(&["one", "two"], &store, &effects).await;
        assert_eq!(took, longest, "nobody waits for the other");
        assert_eq!((end.text.as_str(), effects.all()), ("Both.", vec!["a".to_owned()]));
        insta::assert_snapshot!(results(&agent).await, @"
        step: agent -> A is put.

        [sub-agent s.sub-…: done after 2 steps; 1964 tokens in, 7 out]; agent -> Seen.

        [sub-agent s.sub-…: done after 1 step; 955 tokens in, 2 out]
        step:
        ");
        let told = of_children(&events);
        let mut words: Vec<_> = told.iter().map(|(_, word)| word.as_str()).collect();
        words.sort_unstable();
        assert_eq!(words, ["done", "done", "started", "started"]);
        // The child's own events are in its session, and its tokens are not the parent's.
        let mut sum = 0;
        for (child, _) in told.iter().filter(|(_, word)| word == "started") {
            assert_eq!(child.parent(), Some("s"));
            let record = store.load(child).await.unwrap().unwrap();
            assert!(!store.events(child, 0).await.unwrap().is_empty());
            sum += record.checkpoint.usage.output;
        }
        assert!(sum > 0 && end.children.output == sum, "{:?}", end.children);
        let own = store.load(agent.session().id()).await.unwrap().unwrap().checkpoint.usage;
        assert_eq!(own.output, end.usage.output);
    });
}

#[test]
fn depth_is_bounded() {
    block(async {
        let (store, effects) = (Points::default(), Effects::default());
        // `deeper` gives the same task on, and so does what it gives it to: that one has no tool to do it with.
        let kinds = vec![kind("deeper", vec![tasks(&["deeper"]), Reply::text("I tried.")])];
        let agent = family(vec![tasks(&["deeper"]), Reply::text("Well.")], kinds, &store, &effects);
        let (events, end) = agent.say("go").await;
        assert_eq!(end.text, "Well.");
        let child = of_children(&events)[0].0.clone();
        let of_child = store.events(&child, 0).await.unwrap();
        let grandchild = of_children(&of_child)[0].0.clone();
        assert_eq!(grandchild.parent(), Some(child.as_str()));
        let record = store.load(&grandchild).await.unwrap().unwrap();
        assert!(
            record.entries.join("\n").contains(
                "a sub-agent at this depth cannot have sub-agents of its own. Do the task yourself."
            ),
            "{:?}",
            record.entries
        );
        assert_eq!(store.sessions().await.unwrap().len(), 3);
        // What both used is told to the one above.
        let own = |id| {
            let store = store.clone();
            async move { store.load(&id).await.unwrap().unwrap().checkpoint.usage.output }
        };
        assert_eq!(end.children.output, own(child).await + own(grandchild).await);
    });
}

/// How many steps the child makes: its parent's limit, what the parent did before, the child's own limit.
fn check_steps(parent: u32, before: usize, own: Option<u32>, expect: u32) {
    block(async {
        let (store, effects) = (Points::default(), Effects::default());
        let look = || Reply::tool("look", r#"{"what":"x"}"#);
        let mut child = kind("busy", std::iter::repeat_with(look).take(20).collect());
        child.stop = own.map(|steps| Arc::new(step_count(steps)) as Arc<_>);
        let mut replies: Vec<_> = std::iter::repeat_with(look).take(before).collect();
        replies.extend([tasks(&["busy"]), Reply::text("Well.")]);
        let agent = family(replies, vec![child], &store, &effects);
        let agent = with(agent, |config| config.stop = Arc::new(step_count(parent)));
        let (events, _) = agent.say("go").await;
        let told = events.iter().find_map(|event| {
            let EventBody::SubagentCompleted { steps, reason, .. } = &event.body else { return None };
            Some((*steps, reason.clone()))
        });
        assert_eq!(told, Some((expect, Some(TerminalReason::MaxSteps))), "{parent} {before} {own:?}");
    });
}

#[test]
fn a_child_has_what_the_parent_has_left() {
    check_steps(6, 0, None, 6);
    check_steps(6, 2, None, 4);
    check_steps(6, 2, Some(3), 3);
    check_steps(6, 2, Some(10), 4);
}

/// What a parent is told of a child that does not do its task; it goes on itself.
fn failure(child: ChildKind) -> String {
    block(async {
        let (store, effects) = (Points::default(), Effects::default());
        let name = child.name.clone();
        let agent = family(vec![tasks(&[&name]), Reply::text("Alone.")], vec![child], &store, &effects);
        let (_, end) = agent.say("go").await;
        assert_eq!((end.text.as_str(), end.reason), ("Alone.", TerminalReason::Done));
        results(&agent).await
    })
}

#[test]
fn a_child_that_fails_is_a_result() {
    let error = ModelError::new(ModelErrorKind::InvalidRequest, "the words are too many");
    let model = ScriptedModel::new(vec![Reply::text("x")]).failing(0, Failure::Before(error));
    let broken = ChildKind { model: Some(Arc::new(model)), ..kind("broken", vec![]) };
    insta::assert_snapshot!(failure(broken), @"
    step: agent -> The sub-agent did not finish its task: error(invalid_request) (the words are too many (given up after 1 attempt: the same request would fail again)). What it did until then stands: look at the present state before you go on. Do the rest yourself, or give a smaller task.

    [sub-agent s.sub-…: error(invalid_request) after 0 steps; 0 tokens in, 0 out]
    step:
    ");
    let mut short = kind("short", vec![put("a"), Reply::text("never")]);
    short.stop = Some(Arc::new(step_count(1)));
    insta::assert_snapshot!(failure(short), @"
    step: agent -> The sub-agent did not finish its task: max_steps. What it did until then stands: look at the present state before you go on. Do the rest yourself, or give a smaller task.

    [sub-agent s.sub-…: max_steps after 1 step; 952 tokens in, 4 out]
    step:
    ");
    insta::assert_snapshot!(failure(kind("quiet", vec![Reply::text("")])), @"
    step: agent -> (The sub-agent finished without a word.)

    [sub-agent s.sub-…: done after 1 step; 952 tokens in, 0 out]
    step:
    ");
}

#[test]
fn stopping_the_parent_stops_the_child() {
    block(async {
        let (store, effects) = (Points::default(), Effects::default());
        let kinds = vec![kind("idle", vec![slow(), Reply::text("never")])];
        let agent = family(vec![tasks(&["idle"]), Reply::text("never")], kinds, &store, &effects);
        let mut run = agent.session().send("go").await.unwrap();
        let cancel = run.cancel();
        let mut child = None;
        let stop = async {
            while effects.all().is_empty() {
                tokio::task::yield_now().await;
            }
            cancel.cancel();
        };
        let watching = async {
            while let Some(event) = run.next().await {
                child = of_children(&[event]).pop().or(child.take());
            }
            run.finish().await.unwrap()
        };
        let (end, ()) = tokio::join!(watching, stop);
        assert_eq!(end.reason, TerminalReason::Aborted);
        assert_eq!(effects.all(), ["slow began", "slow stopped"]);
        let (child, word) = child.unwrap();
        assert_eq!(word, "aborted");
        let state = store.state(&child).await.unwrap().unwrap();
        assert_eq!((state.checkpoint.turn, state.terminal), (None, Some(TerminalReason::Aborted)));
    });
}

#[test]
fn a_question_of_a_child_is_answered_at_its_parent() {
    block(async {
        let (store, effects) = (Points::default(), Effects::default());
        let script = || vec![tasks(&["asks", "puts"]), Reply::text("Both.")];
        let ask = Reply::tool("ask_question", r#"{"question":"Which bed?"}"#);
        let kinds = || {
            let asks = kind("asks", vec![ask.clone(), Reply::text("Asked.")]);
            vec![asks, kind("puts", vec![put("a"), Reply::text("Put.")])]
        };
        let again = || {
            with(family(script(), kinds(), &store, &effects), |config| {
                config.permissions = Permissions::default();
                config.asker = Arc::new(AskLater);
            })
        };
        let (_, end) = again().say("go").await;
        assert_eq!(end.reason, TerminalReason::Parked(ParkKind::Action));
        let kinds_of = |requests: &[agent_core::InputRequest]| {
            requests.iter().map(|request| request.wait.kind()).collect::<Vec<_>>()
        };
        let (action, question, approval) = (ParkKind::Action, ParkKind::Question, ParkKind::Approval);
        assert_eq!(kinds_of(&end.requests), [action, action, question, approval]);
        assert_eq!(again().session().requests().await.unwrap(), end.requests, "another process sees them");
        // Taken up with nothing to do, it parks again at once.
        let (_, same) = watch(again().session().resume().await.unwrap()).await;
        assert_eq!(same.requests, end.requests);
        let answer = Answer::Answer(vec!["tulips".into()]);
        let run =
            again().session().respond(&end.requests[2].id, answer.clone()).await.unwrap().run().unwrap();
        let (events, left) = watch(run).await;
        assert_eq!(of_children(&events).len(), 1, "the one that asked is done");
        assert_eq!(kinds_of(&left.requests), [action, approval]);
        again().session().respond(&end.requests[2].id, answer).await.unwrap_err();
        assert!(effects.all().is_empty());
        let run = again().session().respond(&end.requests[3].id, Answer::Allow).await.unwrap().run().unwrap();
        assert_eq!(watch(run).await.1.text, "Both.");
        assert_eq!(effects.all(), ["a"]);
        insta::assert_snapshot!(results(&again()).await, @"
        step: agent -> Asked.

        [sub-agent s.sub-…: done after 2 steps; 1971 tokens in, 12 out]; agent -> Put.

        [sub-agent s.sub-…: done after 2 steps; 1966 tokens in, 5 out]
        step:
        ");
    });
}
