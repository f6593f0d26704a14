//! What was read of which file has rows of its own, and comes back as it was written.

use agent_core::{CallId, Checkpoint, Commit, JournalRecord, ToolOutput, ToolResult};
use agent_testkit::store_suite::wait_for;

use super::{Writer, having_read, open, raw, response};

/// Commits one checkpoint after the other, under one lease or under a new one each; what is loaded is the last one.
fn check(commits: &[&[(u64, u64)]]) {
    for leases in [1, commits.len()] {
        let dir = tempfile::tempdir().unwrap();
        for (number, files) in commits.iter().enumerate() {
            let store = open(dir.path());
            let mut writer = Writer::open(store.clone(), "one").unwrap();
            let rest = if leases == 1 { &commits[number..] } else { &commits[number..=number] };
            for files in rest {
                commit(&mut writer, &having_read(files.iter().copied()));
            }
            let expect = having_read(rest.last().unwrap_or(files).iter().copied());
            let found = wait_for(store.load(writer.lease.session())).unwrap().unwrap();
            assert_eq!(found.checkpoint, expect, "{commits:?} under {leases} leases");
        }
    }
}

#[test]
fn stamps_come_back_as_they_were_committed() {
    check(&[&[]]);
    check(&[&[(1, 1)], &[(1, 1)]]);
    check(&[&[(1, 1)], &[(1, 1), (2, 2)], &[(1, 1), (2, 3)]]);
    check(&[&[(1, 1), (2, 2)], &[(2, 2)], &[]]);
    check(&[&[(1, 1), (2, 2)], &[], &[(3, 3), (1, 4)]]);
}

#[test]
fn a_commit_that_fails_leaves_nothing_to_guess() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let mut writer = Writer::open(store.clone(), "one").unwrap();
    commit(&mut writer, &having_read([(1, 1)]));
    let lost = having_read([(2, 2)]);
    let stale = Commit { expect: agent_core::Revision(0), ..of(&writer, &lost) };
    wait_for(store.commit(&writer.lease, stale)).unwrap_err();
    commit(&mut writer, &having_read([(1, 1), (3, 3)]));
    let found = wait_for(store.load(writer.lease.session())).unwrap().unwrap();
    assert_eq!(found.checkpoint, having_read([(1, 1), (3, 3)]));
}

#[test]
fn a_journaled_result_has_all_stamps_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let mut writer = Writer::open(store.clone(), "one").unwrap();
    let finished = |files: &[(u64, u64)]| {
        let slots = Some(having_read(files.iter().copied()).slots);
        let result = ToolResult { call: CallId::new("c1").unwrap(), output: ToolOutput::text("done") };
        JournalRecord::Finished { result, slots }
    };
    let states: [&[(u64, u64)]; 4] = [&[(1, 1), (2, 2), (3, 3)], &[(1, 9), (2, 2)], &[], &[(4, 4)]];
    for before in [&[(1, 1), (2, 2)][..], &[]] {
        for now in states {
            commit(&mut writer, &having_read(before.iter().copied()));
            let records = [response(), finished(now), finished(before)];
            wait_for(store.journal(&writer.lease, &records, &[])).unwrap();
            let found = wait_for(store.load(writer.lease.session())).unwrap().unwrap();
            assert_eq!(found.journal, records, "{before:?}, then {now:?}");
            assert_eq!(found.checkpoint, having_read(before.iter().copied()), "the journal is no commit");
        }
    }
}

#[test]
fn stamps_in_a_checkpoint_of_format_1_are_read_and_moved() {
    let dir = tempfile::tempdir().unwrap();
    let (store, inline) = (open(dir.path()), having_read([(1, 1), (2, 2)]));
    let mut writer = Writer::open(store.clone(), "old").unwrap();
    commit(&mut writer, &Checkpoint::default());
    let body = serde_json::to_vec(&inline).unwrap();
    assert_eq!(raw(dir.path()).execute("UPDATE checkpoints SET body = ?1", [body]).unwrap(), 2);
    let load = || wait_for(store.load(writer.lease.session())).unwrap().unwrap().checkpoint;
    assert_eq!(load(), inline);
    let session = writer.lease.session().to_string();
    drop(writer);
    let mut writer = Writer::open(store.clone(), &session).unwrap();
    commit(&mut writer, &having_read([(2, 2)]));
    let found = wait_for(store.load(writer.lease.session())).unwrap().unwrap().checkpoint;
    assert_eq!(found, having_read([(2, 2)]));
}

fn commit(writer: &mut Writer, checkpoint: &Checkpoint) {
    writer.revision = wait_for(writer.store.commit(&writer.lease, of(writer, checkpoint))).unwrap().revision;
}

fn of<'a>(writer: &Writer, checkpoint: &'a Checkpoint) -> Commit<'a> {
    let expect = writer.revision;
    Commit {
        expect,
        entries: &[],
        checkpoint,
        usage: None,
        events: &[],
        consumed: &[],
        terminal: None,
        now_ms: 1,
    }
}
