//! What a compaction carries over from state: the todo list, what counts as unread, and what is not done (case P05).

use std::path::Path;
use std::sync::Arc;

use agent_builtins::{LocalSandbox, all};
use agent_core::{EventBody, ModelProfile, ReadExtent, TodoStatus};
use agent_harness::TurnEnd;
use agent_prepare::{Cascade, ForceWhileTodos, Pipeline, Summarise};
use agent_store::Store;
use agent_testkit::{Reply, ScriptedModel};
use agent_tools::{Access, OutputCap, ToolConfig, ToolSet};

use super::{bodies, lines, taken_up};
use crate::support::{Agent, Points, block, id, talk, watch};

const LIST: &str = r#"{"items":[{"id":"a","text":"sow the beans","status":"done"},{"id":"b","text":"water the beans","status":"in_progress"},{"id":"c","text":"pick the beans","status":"pending"}]}"#;
const ALL_DONE: &str = r#"{"items":[{"id":"a","text":"sow the beans","status":"done"},{"id":"b","text":"water the beans","status":"done"},{"id":"c","text":"pick the beans","status":"done"}]}"#;
const READ: &str = r#"{"path":"beds.txt"}"#;
const WRITE: &str = r#"{"path":"beds.txt","content":"beans, watered\n"}"#;
const COMPLETE: &str = r#"{"summary":"The beans are picked.","outcome":"done"}"#;
/// What the summary says is not how it is.
const SUMMED: &str = "## Done\nNothing yet.\n\n## Open\n- a: sow the beans";
/// The list as it is put back, in JSON.
const PUT_BACK: &str =
    r"- [done] a: sow the beans\n- [in_progress] b: water the beans\n- [pending] c: pick the beans\n";

/// Steps up to the result that fills the window.
fn before() -> Vec<Reply> {
    vec![Reply::tool("todo", LIST).call("read_file", READ), Reply::tool("log", "{}")]
}

/// Steps behind the boundary.
fn behind() -> Vec<Reply> {
    let calls = [("write_file", WRITE), ("complete", COMPLETE), ("read_file", READ), ("write_file", WRITE)];
    let rest = [("todo", ALL_DONE), ("complete", COMPLETE)];
    calls.into_iter().chain(rest).map(|(tool, input)| Reply::tool(tool, input)).collect()
}

/// A model whose window the tool `log` fills.
fn model(replies: Vec<Reply>, can_be_forced: bool) -> ScriptedModel {
    ScriptedModel::new(replies).with_profile(ModelProfile {
        context_window: 32_000,
        max_output: 4_000,
        forced_tool_choice: can_be_forced,
        ..ModelProfile::conservative("scripted", "small")
    })
}

/// An agent with the built-in tools on a folder.
fn gardener(own: ScriptedModel, store: Points, dir: &Path) -> Agent {
    let log = ToolConfig::new("log", "Shows the log.", Access::Read, |_, _: super::Nothing| async {
        Ok(lines(26_000))
    });
    let cap = OutputCap { lines: usize::MAX, bytes: usize::MAX, ..OutputCap::default() };
    let sandbox = Arc::new(LocalSandbox::open(dir).unwrap());
    taken_up(own, store, |config| {
        config.tools = ToolSet::builder().extend(all(sandbox)).with(log.cap(cap)).freeze().unwrap();
        config.summary_model = Some(Arc::new(model(vec![Reply::text(SUMMED)], false)));
        let cascade = Cascade::new().then(Summarise::default());
        config.pipeline = Pipeline::new(cascade).then(ForceWhileTodos::default());
    })
}

/// Runs until a boundary was written, and dies.
async fn dies_at_the_boundary(agent: Agent) {
    let record = async || agent.store.load(&id()).await.unwrap().unwrap();
    let mut run = agent.session().send("Tend the garden.").await.unwrap();
    loop {
        let event = run.next().await.unwrap();
        if matches!(event.body, EventBody::StepCompleted { .. }) {
            let stamps = record().await.checkpoint.slots.reads;
            assert_eq!(stamps["beds.txt"].seen, ReadExtent::Full, "it was read");
        }
        if matches!(event.body, EventBody::CompactionCompleted { .. }) {
            break;
        }
    }
    drop(run);
    assert!(record().await.checkpoint.slots.reads.is_empty(), "it counts as unread");
    assert_eq!(agent.model.requests().len(), 2);
}

/// What was asked behind the boundary, and what came of the turn.
async fn behind_the_boundary(dies: bool, can_be_forced: bool, dir: &Path) -> (Agent, Vec<String>, TurnEnd) {
    let store = Points::default();
    if dies {
        dies_at_the_boundary(gardener(model(before(), can_be_forced), store.clone(), dir)).await;
        let next = gardener(model(behind(), can_be_forced), store, dir);
        let (_, end) = watch(next.session().resume().await.unwrap()).await;
        let asked = bodies(&next.model);
        return (next, asked, end);
    }
    let agent = gardener(model([before(), behind()].concat(), can_be_forced), store, dir);
    let (_, end) = agent.say("Tend the garden.").await;
    let asked = bodies(&agent.model).split_off(2);
    (agent, asked, end)
}

#[expect(clippy::disallowed_methods, reason = "the file that the tools of the test see")]
fn check(dies: bool, can_be_forced: bool) {
    block(async {
        let dir = tempfile::tempdir().unwrap();
        let beds = dir.path().join("beds.txt");
        std::fs::write(&beds, "beans\n").unwrap();
        let (agent, asked, end) = behind_the_boundary(dies, can_be_forced, dir.path()).await;
        assert!(end.reason.is_success(), "{:?} {:?}", end.reason, end.error);
        assert_eq!(asked.len(), behind().len());
        for body in &asked {
            assert!(body.contains("Nothing yet.") && body.len() < 40_000, "{}", body.len());
            assert_eq!(body.matches("The todo list as it stands.").count(), 1);
            assert_eq!(body.matches(PUT_BACK).count(), 1, "{body}");
            assert_eq!(body.matches("Files count as unread from here on").count(), 1);
        }
        // What is open is seen from state, as long as it is open.
        let is_told = |body: &String| match can_be_forced {
            true => body.contains(r#""tool_choice":"required""#),
            false => body.contains(r"off the list.\n- b: water the beans\n- c: pick the beans"),
        };
        assert!(asked[..5].iter().all(is_told), "{}", asked[0]);
        let said = talk(&agent.history().await);
        assert!(said.contains("write_file -> `beds.txt` exists and you have not read it"), "{said}");
        let refused = "complete -> The task is not complete: these todos are open:\n- b: water the beans\n- c: pick the beans\n";
        assert!(said.contains(refused), "{said}");
        assert_eq!(
            std::fs::read_to_string(&beds).unwrap(),
            "beans, watered\n",
            "it was read, and then written"
        );
        let todos = agent.store.load(&id()).await.unwrap().unwrap().checkpoint.slots.todos;
        assert!(todos.len() == 3 && todos.iter().all(|todo| todo.status == TodoStatus::Done), "{todos:?}");
    });
}

#[test]
fn the_list_and_what_is_unread_come_from_state() {
    check(false, true);
    check(false, false);
}

#[test]
fn the_same_in_another_process() {
    check(true, true);
    check(true, false);
}
