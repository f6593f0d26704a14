//! When a run begins, that one is at a time, and what it may do.

use std::time::Duration;

use agent_core::{EntryId, EventBody, Usage};
use agent_harness::{Drained, NotesOutcome, NotesStatus};
use agent_memory::{NotesPolicy, NotesTrigger, notes_denial};
use agent_store::Store;
use agent_testkit::{Failure, Reply, ScriptedModel};

use super::{Disk, eager, paced, step, write, written};
use crate::support::{block, id};

/// Plays steps of so many tokens and calls; those without calls end a turn.
fn play(policy: NotesPolicy, steps: &[(u64, usize)]) -> String {
    block(async {
        let disk = Disk::new();
        let main = steps.iter().map(|&(tokens, calls)| step(tokens, calls));
        let beside = (0..9).flat_map(|at| written(&format!("Note {at}."))).collect::<Vec<_>>();
        let process = disk.process(policy, paced(main), ScriptedModel::new(beside));
        let mut lines = Vec::new();
        while lines.len() < steps.len() {
            lines.extend(process.step_by_step("go on").await);
        }
        process.drain().await;
        lines.join("\n")
    })
}

/// What a call brings is counted with its step, so that a step with calls has some tokens more than its request.
#[test]
fn every_threshold_through_the_driver() {
    let check = |steps: &[(u64, usize)]| play(NotesPolicy::default(), steps);
    insta::assert_snapshot!(check(&[(9_999, 0), (10_000, 0), (14_999, 0), (15_000, 0)]), @"
    lacks 1 to the first
    lacks 5000 of growth; break: start to 4: written in 2 steps
    lacks 1 of growth; break: start to 4: written in 2 steps
    lacks 5000 of growth; break: 4 to 8: written in 2 steps
    ");
    insta::assert_snapshot!(check(&[(9_000, 12), (12_000, 1), (13_000, 0), (19_000, 9), (19_500, 1)]), @"
    lacks 928 to the first
    lacks 5000 of growth; calls: start to 3: written in 2 steps
    lacks 4006 of growth; calls: start to 3: written in 2 steps
    lacks 1 calls; calls: start to 3: written in 2 steps
    lacks 5000 of growth; calls: 3 to 7: written in 2 steps
    ");
    // Calls and breaks without tokens are never enough, and after a compaction growth is measured from what it left.
    insta::assert_snapshot!(check(&[(12_000, 0), (12_100, 11), (12_200, 0), (3_000, 0), (7_999, 0), (8_000, 0)]), @"
    lacks 5000 of growth; break: start to 2: written in 2 steps
    lacks 4834 of growth; break: start to 2: written in 2 steps
    lacks 4800 of growth; break: start to 2: written in 2 steps
    lacks 5000 of growth; break: start to 2: written in 2 steps
    lacks 1 of growth; break: start to 2: written in 2 steps
    lacks 5000 of growth; calls: 2 to 11: written in 2 steps
    ");
    let own = NotesPolicy { first: 100, then: 50, calls: 2 };
    insta::assert_snapshot!(play(own, &[(120, 1), (130, 1), (200, 1), (230, 0)]), @"
    lacks 1 calls
    lacks 50 of growth; calls: start to 3: written in 2 steps
    lacks 1 calls; calls: start to 3: written in 2 steps
    lacks 50 of growth; break: 3 to 5: written in 2 steps
    ");
}

#[test]
fn what_is_committed_meanwhile_makes_one_more_run_with_the_newest() {
    block(async {
        let disk = Disk::new();
        let main = ScriptedModel::new(vec![
            step(100, 0),
            step(200, 0),
            step(300, 1),
            step(400, 0).slowly(9_000_000),
        ]);
        let [first, end] = written("First.");
        let beside = [vec![first.slowly(30_000), end], written("Second.").to_vec()].concat();
        let process = disk.process(eager(), main, ScriptedModel::new(beside));
        let began = tokio::time::Instant::now();
        process.begin("one").await.finish().await.unwrap();
        process.begin("two").await.finish().await.unwrap();
        assert_eq!(began.elapsed(), Duration::ZERO, "nobody waits");
        let mut third = process.begin("three").await;
        let mut goes_on = async |seconds| {
            let going = async { while third.next().await.is_some() {} };
            tokio::time::timeout(Duration::from_secs(seconds), going).await.unwrap_err();
        };
        goes_on(1).await;
        assert!(
            matches!(process.view().status, NotesStatus::Writing { run, .. } if run.to == EntryId::at(2))
        );
        goes_on(600).await;
        // The third turn is open, so the newest step made calls; the break of the second turn is one all the same.
        let last = process.view().last.unwrap();
        assert_eq!((last.run.from, last.run.to), (Some(EntryId::at(2)), EntryId::at(6)));
        assert_eq!((last.run.because, last.outcome), (NotesTrigger::Break, NotesOutcome::Written));
        let asked = process.beside();
        assert_eq!(asked.len(), 4, "two runs of two steps");
        assert!(asked[2].contains("The notes so far") && asked[2].contains("First."));
    });
}

#[test]
fn any_other_call_is_refused_with_the_words_and_changes_nothing() {
    block(async {
        let disk = Disk::new();
        let other = r#"{"command":"create","path":"/memories/user_role.md","file_text":"x"}"#;
        let away = r#"{"command":"rename","old_path":"/session/notes.md","new_path":"/memories/a.md"}"#;
        let tries = Reply::tool("put", r#"{"what":"x"}"#)
            .call("look", r#"{"what":"x"}"#)
            .call("memory", other)
            .call("memory", r#"{"command":"view","path":"/memories"}"#)
            .call("memory", away)
            .call("memory", r#"{"command":"create","path":"/session/../session/notes.md","file_text":"x"}"#);
        let beside = [vec![tries], written("Only this.").to_vec()].concat();
        let process =
            disk.process(eager(), ScriptedModel::new(vec![step(100, 0)]), ScriptedModel::new(beside));
        process.begin("hi").await.finish().await.unwrap();
        let record = format!("{:?}", disk.store.load(&id()).await.unwrap());
        process.drain().await;

        assert_eq!(process.view().last.unwrap().outcome, NotesOutcome::Written);
        let seen = process.beside().pop().unwrap();
        let denial = serde_json::to_string(&notes_denial()).unwrap();
        assert_eq!(seen.matches(denial.trim_matches('"')).count(), 6, "{seen}");
        assert!(process.effects.all().is_empty() && !seen.contains("saw x"));
        assert!(disk.files().memories().index().unwrap().text.is_empty());
        assert_eq!(format!("{:?}", disk.store.load(&id()).await.unwrap()), record);
        let kept = process.writer.file(&id());
        assert_eq!(kept.read().unwrap().as_deref(), Some("# Task\n\nOnly this.\n"));
    });
}

#[test]
fn a_run_that_wrote_nothing_covers_nothing() {
    let check = |beside: Vec<Reply>| {
        block(async {
            let disk = Disk::new();
            let main = ScriptedModel::new(vec![step(100, 0)]);
            let process = disk.process(eager(), main, ScriptedModel::new(beside));
            let lines = process.step_by_step("hi").await;
            process.drain().await;
            let state = process.writer.file(&id()).state().unwrap();
            format!("{}; covers {:?} after {} runs", lines.join("\n"), state.covers_to, state.runs)
        })
    };
    let view = || Reply::tool("memory", r#"{"command":"view","path":"/session/notes.md"}"#);
    insta::assert_snapshot!(check(vec![Reply::text("I go on with the task.")]), @"lacks 0 of growth; break: start to 2: the run ended and there are no notes in 1 steps; covers None after 1 runs");
    insta::assert_snapshot!(check(vec![write("None."), Reply::text("Nothing to say.")]), @"lacks 0 of growth; break: start to 2: the run ended and the notes say nothing in 2 steps; covers None after 1 runs");
    insta::assert_snapshot!(check((0..9).map(|_| view()).collect()), @"lacks 0 of growth; break: start to 2: the run ended with max_steps in 5 steps; covers None after 1 runs");
    insta::assert_snapshot!(check(vec![]), @"lacks 0 of growth; break: start to 2: the run ended with error(invalid_request): invalid_request: the script has 0 replies, and reply 1 was asked for: add a reply, or stop the run earlier (given up after 1 attempt: the same request would fail again) in 0 steps; covers None after 1 runs");
}

#[test]
fn notes_to_which_nothing_is_to_be_added_are_looked_at() {
    block(async {
        let disk = Disk::new();
        let view = Reply::tool("memory", r#"{"command":"view","path":"/session/notes.md"}"#);
        let ends = || Reply::text("They are good.");
        let beside = [written("All.").to_vec(), vec![view, ends(), ends()]].concat();
        let main = ScriptedModel::new(vec![step(100, 0), step(200, 0), step(300, 0)]);
        let process = disk.process(eager(), main, ScriptedModel::new(beside));
        let mut lines = Vec::new();
        for _ in 0..3 {
            lines.extend(process.step_by_step("hi").await);
        }
        insta::assert_snapshot!(lines.join("\n"), @"
        lacks 0 of growth; break: start to 2: written in 2 steps
        lacks 0 of growth; break: 2 to 4: unchanged in 2 steps
        lacks 0 of growth; break: 4 to 6: the run neither changed the notes nor looked at them in 1 steps
        ");
    });
}

#[test]
fn one_that_never_answers_delays_nobody_and_is_stopped_and_counted() {
    block(async {
        let disk = Disk::new();
        let beside = ScriptedModel::new(written("Late.").to_vec()).failing(0, Failure::Hangs { events: 0 });
        let process = disk.process(eager(), ScriptedModel::new(vec![step(100, 0)]), beside);
        let began = tokio::time::Instant::now();
        let mut run = process.begin("hi").await;
        let mut last = None;
        while let Some(event) = run.next().await {
            last = Some((event.body, began.elapsed()));
        }
        let (body, at) = last.unwrap();
        assert!(matches!(body, EventBody::SessionWaiting {}), "{body:?}");
        assert_eq!(at, Duration::ZERO);
        run.finish().await.unwrap();
        let drained = process.harness.drain(Duration::from_secs(3)).await;
        assert_eq!(drained, Drained { finished: 0, stopped: 1 });
        assert_eq!(began.elapsed(), Duration::from_secs(3), "it stops when it is told to");
        let last = process.view().last.unwrap();
        assert_eq!(last.outcome, NotesOutcome::Failed("the run ended with aborted".to_owned()));
        let state = process.writer.file(&id()).state().unwrap();
        assert_eq!((state.covers_to, state.runs), (None, 0), "the next process begins it again");
    });
}

#[test]
fn what_a_run_spends_is_kept_beside_the_notes_and_in_no_sum_of_the_session() {
    block(async {
        let disk = Disk::new();
        let usage = Usage { input: 10, output: 5, cache_read: 90, ..Usage::default() };
        let beside = written("Dear.").map(|reply| reply.costing(usage.clone()));
        let main = ScriptedModel::new(vec![step(100, 0)]);
        let process = disk.process(eager(), main, ScriptedModel::new(beside.to_vec()));
        process.begin("hi").await.finish().await.unwrap();
        process.drain().await;
        let last = process.view().last.unwrap();
        assert_eq!((last.usage.cache_read, last.cache_share()), (180, Some(0.9)));
        let kept = process.writer.file(&id()).usage().unwrap();
        assert_eq!(kept["scripted/scripted-1"], last.usage);
        let own = disk.store.load(&id()).await.unwrap().unwrap().checkpoint.usage;
        assert_eq!((own.input, own.cache_read), (98, 0));
    });
}
