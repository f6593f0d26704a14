//! Notes over the lives of processes: one that dies, two at one session, and the end of a session.

use std::time::Duration;

use agent_core::EntryId;
use agent_harness::{NotesOutcome, NotesSource, NotesStatus};
use agent_memory::notes_outline;
use agent_store::Store;
use agent_testkit::{Failure, Reply, ScriptedModel};

use super::{Disk, eager, step, write, written};
use crate::support::{block, id};

fn once(tokens: u64) -> ScriptedModel {
    ScriptedModel::new(vec![step(tokens, 0)])
}

#[expect(clippy::disallowed_methods, reason = "as an editor would")]
fn spoil(path: &std::path::Path) {
    std::fs::write(path, "{").unwrap();
}

#[test]
fn a_process_that_dies_between_the_notes_and_what_is_said_of_them_claims_less() {
    let disk = Disk::new();
    block(async {
        let beside = ScriptedModel::new(written("Half.").to_vec()).failing(1, Failure::Hangs { events: 0 });
        let process = disk.process(eager(), once(100), beside);
        process.begin("hi").await.finish().await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(matches!(process.view().status, NotesStatus::Writing { .. }));
        // The runtime is dropped, and the run with it.
    });
    block(async {
        let process = disk.process(eager(), once(200), ScriptedModel::new(written("Whole.").to_vec()));
        let file = process.writer.file(&id());
        assert_eq!(file.read().unwrap().as_deref(), Some("# Task\n\nHalf.\n"));
        assert_eq!(process.writer.notes(&id()).await.unwrap(), None, "nothing is said to be covered");
        process.begin("hi again").await.finish().await.unwrap();
        process.drain().await;
        assert!(process.beside()[0].contains("Half."), "it goes on from what there is");
        let notes = process.writer.notes(&id()).await.unwrap().unwrap();
        assert_eq!((notes.covers_to, notes.text.as_str()), (Some(EntryId::at(4)), "# Task\n\nWhole.\n"));
    });
}

#[test]
fn what_is_covered_is_known_in_the_next_process() {
    let disk = Disk::new();
    let policy = agent_memory::NotesPolicy { then: 50, ..eager() };
    block(async {
        let process = disk.process(policy, once(100), ScriptedModel::new(written("One.").to_vec()));
        process.begin("hi").await.finish().await.unwrap();
        process.drain().await;
    });
    block(async {
        let main = ScriptedModel::new(vec![step(149, 0), step(150, 0)]);
        let process = disk.process(policy, main, ScriptedModel::new(written("Two.").to_vec()));
        let mut lines = process.step_by_step("hi").await;
        lines.extend(process.step_by_step("hi").await);
        insta::assert_snapshot!(lines.join("\n"), @"
        lacks 1 of growth
        lacks 50 of growth; break: 2 to 6: written in 2 steps
        ");
    });
}

#[test]
fn two_processes_take_turns_at_the_notes_of_a_session() {
    block(async {
        let disk = Disk::new();
        let [first, end] = written("Theirs.");
        let slow = ScriptedModel::new(vec![first.slowly(30_000), end]);
        let one = disk.process(eager(), once(100), slow);
        let beside = ScriptedModel::new(written("Mine.").to_vec());
        let other = disk.process(eager(), ScriptedModel::new(vec![step(200, 0), step(300, 0)]), beside);

        one.begin("hi").await.finish().await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(other.step_by_step("hi").await, ["elsewhere"]);
        assert!(other.beside().is_empty());
        one.drain().await;
        let first = one.view().last.unwrap();
        assert_eq!((first.run.to, first.outcome), (EntryId::at(2), NotesOutcome::Written));

        other.begin("hi").await.finish().await.unwrap();
        other.drain().await;
        let second = other.view().last.unwrap();
        assert_eq!((second.run.from, second.run.to), (Some(EntryId::at(2)), EntryId::at(6)));
        assert!(other.beside()[0].contains("Theirs."));
        let state = one.writer.file(&id()).state().unwrap();
        assert_eq!((state.covers_to, state.runs), (Some(EntryId::at(6)), 2));
    });
}

#[test]
fn notes_that_are_written_while_their_session_goes_go_too() {
    block(async {
        let disk = Disk::new();
        let [first, end] = written("Too late.");
        let slow = ScriptedModel::new(vec![first.slowly(30_000), end]);
        let process = disk.process(eager(), once(100), slow);
        process.begin("hi").await.finish().await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        disk.store.delete(disk.store.lease(&id()).await.unwrap()).await.unwrap();
        process.writer.file(&id()).remove().unwrap();
        process.drain().await;
        assert!(!process.writer.file(&id()).path().parent().unwrap().exists());
    });
}

#[test]
fn notes_that_say_nothing_are_none() {
    block(async {
        let disk = Disk::new();
        let process = disk.process(eager(), once(100), ScriptedModel::new(vec![write("x")]));
        let (source, file) = (&process.writer, process.writer.file(&id()));
        let state = agent_memory::NotesState { covers_to: Some(EntryId::at(2)), ..Default::default() };
        assert_eq!(source.notes(&id()).await.unwrap(), None);
        assert_eq!(source.path(&id()), Some(file.path()));
        file.save(&state).unwrap();
        assert_eq!(source.notes(&id()).await.unwrap(), None, "no notes");
        for nothing in ["", "\n \n", notes_outline()] {
            file.write(nothing).unwrap();
            assert_eq!(source.notes(&id()).await.unwrap(), None, "{nothing:?}");
        }
        file.write("# Task\nMend it.\n").unwrap();
        assert_eq!(source.notes(&id()).await.unwrap().unwrap().covers_to, Some(EntryId::at(2)));
        spoil(&file.path().with_extension("json"));
        let error = source.notes(&id()).await.unwrap_err().to_string();
        assert!(error.starts_with("the notes of the session cannot be read"), "{error}");
        // The next run begins anew.
        let again = disk.process(eager(), once(100), ScriptedModel::new(written("Anew.").to_vec()));
        again.begin("hi").await.finish().await.unwrap();
        again.drain().await;
        assert_eq!(source.notes(&id()).await.unwrap().unwrap().covers_to, Some(EntryId::at(2)));
        assert_eq!(file.read().unwrap().as_deref(), Some("# Task\n\nAnew.\n"));
    });
}

#[test]
fn an_agent_without_the_tool_is_told_so() {
    block(async {
        let disk = Disk::new();
        let model = super::Two { main: once(100), beside: ScriptedModel::new(Vec::<Reply>::new()) };
        let process = disk.with(eager(), model, |config| config.tools = agent_tools::ToolSet::default());
        insta::assert_snapshot!(process.step_by_step("hi").await.join("\n"), @"lacks 0 of growth; break: start to 2: the notes of the session cannot be read: the agent has no tool `memory`, with which they are written; give it one with notes in the same data directory in 0 steps");
    });
}
