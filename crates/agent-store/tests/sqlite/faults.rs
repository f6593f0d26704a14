//! A full disk, a busy database and damaged rows: a clear error, and nothing half written (requirement D8).

use std::path::Path;
use std::sync::Arc;

use agent_core::{History, Revision};
use agent_store::{SqliteOptions, SqliteStore, Store, StoreError};
use agent_testkit::store_suite::wait_for;

use super::{Writer, id, open, picture, raw};

#[test]
fn a_full_disk_leaves_the_last_good_state() {
    let dir = tempfile::tempdir().unwrap();
    let small = SqliteOptions { max_bytes: Some(600_000) };
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open_with(dir.path(), &small).unwrap());
    let mut writer = Writer::open(Arc::clone(&store), "s").unwrap();
    let big = "too much ".repeat(4_000);
    let (mut before, mut full) = (picture(&store, &id("s")), None);
    for _ in 0..200 {
        if let Err(error) = writer.commit(&big) {
            full = Some(error);
            break;
        }
        before = picture(&store, &id("s"));
    }
    let full = full.expect("600 kB hold fewer than 200 commits of 36 kB");
    assert!(matches!(full, StoreError::DiskFull { .. }), "{full:?}");
    assert!(full.to_string().contains("is full; make room and try again"), "{full}");
    assert!(writer.revision > Revision(2), "some fitted: {:?}", writer.revision);
    assert_eq!(picture(&store, &id("s")), before);
    let blob = wait_for(store.put_blob(&id("s"), big.as_bytes())).unwrap_err();
    assert!(matches!(blob, StoreError::DiskFull { .. }), "{blob:?}");
    let revision = writer.revision;
    drop((writer, store));
    let store = open(dir.path());
    assert_eq!(picture(&store, &id("s")), before);
    let room = Writer::open(store, "s").unwrap().step(&big).unwrap();
    assert_eq!(room.0, revision.0 + 1, "with room again it goes on");
}

#[test]
fn a_full_disk_in_a_batch_is_said_to_whom_it_concerns() {
    let dir = tempfile::tempdir().unwrap();
    let small = SqliteOptions { max_bytes: Some(400_000) };
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open_with(dir.path(), &small).unwrap());
    let work = |n: usize| {
        let store = Arc::clone(&store);
        std::thread::spawn(move || {
            let mut writer = Writer::open(store, &format!("s{n}")).unwrap();
            let text = if n.is_multiple_of(2) { "short".to_owned() } else { "long ".repeat(20_000) };
            let ends: Vec<_> = (0..6).map(|_| writer.commit(&text)).collect();
            for end in &ends {
                assert!(matches!(end, Ok(_) | Err(StoreError::DiskFull { .. })), "{end:?}");
            }
            (writer.lease.session().clone(), writer.revision, ends.iter().filter(|end| end.is_err()).count())
        })
    };
    let workers: Vec<_> = (0..8).map(work).collect();
    let ends: Vec<_> = workers.into_iter().map(|worker| worker.join().unwrap()).collect();
    assert!(ends.iter().any(|(_, _, failed)| *failed > 0), "{ends:?}");
    for (session, revision, failed) in ends {
        let found = wait_for(store.load(&session)).unwrap().unwrap();
        assert_eq!((found.revision, found.last_seq), (revision, revision.0), "{session}");
        assert_eq!(usize::try_from(revision.0).unwrap() + failed, 6, "{session}");
    }
}

#[test]
fn a_damaged_row_is_named() {
    let check = |tamper: &str, expect: &str| {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = Writer::open(open(dir.path()), "s").unwrap();
        writer.step("one").unwrap();
        writer.step(&"two ".repeat(1_500)).unwrap();
        writer.journal().unwrap();
        drop(writer);
        let db = raw(dir.path());
        db.execute_batch("DROP TRIGGER entries_stay; DROP TRIGGER entries_remain; DROP TRIGGER events_stay")
            .unwrap();
        db.execute_batch("DROP TRIGGER entries_in_order").unwrap();
        db.execute_batch("DROP TRIGGER entry_parts_stay; DROP TRIGGER entry_parts_remain").unwrap();
        db.execute_batch(tamper).unwrap();
        let error = first_error(dir.path());
        assert!(error.starts_with(expect), "{tamper}\n{error}");
        let way_on = match expect.strip_prefix("entry ").and_then(|rest| rest.split(' ').next()) {
            Some(n) => {
                let before = n.parse::<u64>().unwrap() - 1;
                format!("or go on from what is before it: `agent sessions fork s --at {before}`")
            }
            None => "restore a copy of the store, or go on in a new session".into(),
        };
        assert!(error.ends_with(&way_on), "{error}");
    };
    check(
        "UPDATE descriptions SET body = x'7b'",
        "the description of session s is damaged: it is not readable",
    );
    check("DELETE FROM descriptions", "the description of session s is damaged: it is missing");
    check(
        "UPDATE entries SET body = x'22ff22' WHERE seq = 1",
        "entry 1 of session s is damaged: it is not UTF-8",
    );
    check("DELETE FROM entries WHERE seq = 2", "entry 2 of session s is damaged: it is missing");
    check("DELETE FROM entries WHERE seq = 3", "entry 3 of session s is damaged: it is missing");
    check(
        "INSERT INTO entries (session, seq, body) VALUES (1, 4, x'7b7d')",
        "entry 4 of session s is damaged: it should not be there",
    );
    check("DELETE FROM entry_parts WHERE part = 1", "entry 2 of session s is damaged: it is missing");
    check("DELETE FROM entry_parts WHERE part = 3", "entry 2 of session s is damaged: it is missing");
    check("UPDATE entry_parts SET part = 9 WHERE part = 3", "entry 2 of session s is damaged: it is missing");
    check("UPDATE entries SET parts = 2 WHERE seq = 2", "entry 2 of session s is damaged: it is missing");
    check(
        "UPDATE events SET body = x'31' WHERE seq = 3",
        "event 3 of session s is damaged: it is not readable",
    );
    check("DELETE FROM events WHERE seq = 5", "event 5 of session s is damaged: it is missing");
    check(
        "UPDATE usage SET body = '{' WHERE revision = 2",
        "the usage of revision 2 of session s is damaged",
    );
    check("UPDATE sessions SET terminal = 'x'", "the summary of session s is damaged: it is not readable");
}

/// The last good state loads, between turns, and says what it stands for.
#[test]
fn a_state_that_cannot_be_read_has_a_stand_in() {
    let check = |tamper: &str, kept: usize, expect: &str| {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = Writer::open(open(dir.path()), "s").unwrap();
        writer.step("one").unwrap();
        writer.step("two").unwrap();
        writer.journal().unwrap();
        drop(writer);
        raw(dir.path()).execute_batch(tamper).unwrap();
        let store = open(dir.path());
        let found = wait_for(store.load(&id("s"))).unwrap().unwrap();
        let stand_in = found.stand_in.unwrap();
        assert_eq!(stand_in.lost, expect, "{tamper}");
        assert!(!stand_in.was_open, "{tamper}");
        assert_eq!((found.revision, found.entries.len(), found.last_seq), (Revision(2), 4, 5), "{tamper}");
        assert_eq!((found.checkpoint.last_turn, found.journal.len()), (2, kept), "{tamper}");
        let state = wait_for(store.state(&id("s"))).unwrap().unwrap();
        assert_eq!((state.checkpoint, state.journal.len()), (found.checkpoint, 0), "{tamper}");
        // The next commit writes a state that can be read.
        Writer::open(store.clone(), "s").unwrap().commit("three").unwrap();
        let found = wait_for(store.load(&id("s"))).unwrap().unwrap();
        assert_eq!((found.stand_in, found.revision, found.journal.len()), (None, Revision(3), 0), "{tamper}");
    };
    let missing = "the checkpoint cannot be read (it is missing)";
    check(
        "UPDATE checkpoints SET body = x'31' WHERE revision = 2",
        1,
        "the checkpoint cannot be read (it is not readable (invalid type: integer `1`, expected struct Checkpoint at line 1 column 1)); what tools share is as of 1 commits before",
    );
    let at = |instead: &str| format!("{missing}; {instead}");
    check("DELETE FROM checkpoints WHERE revision = 2", 1, &at("what tools share is as of 1 commits before"));
    check("DELETE FROM checkpoints", 1, &at("what tools share is lost, and begins anew"));
    let journal = "journal record 0 cannot be read";
    check(
        "UPDATE journal SET body = x'31'",
        0,
        &format!(
            "{journal} (it is not readable (expected value at line 1 column 1)); what tools share is kept"
        ),
    );
    check("UPDATE journal SET pos = 1", 1, &format!("{journal} (it is missing); what tools share is kept"));
}

/// Entries are read once, by the history: the store does not look into them.
#[test]
fn an_entry_that_is_no_json_is_named_by_who_reads_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(open(dir.path()), "s").unwrap();
    writer.step("one").unwrap();
    drop(writer);
    let db = raw(dir.path());
    db.execute_batch("DROP TRIGGER entries_stay; UPDATE entries SET body = x'7b' WHERE seq = 1").unwrap();
    let found = wait_for(open(dir.path()).load(&id("s"))).unwrap().unwrap();
    let error = History::load(&found.entries).unwrap_err().to_string();
    assert!(error.starts_with("entry 1 of the history is not readable"), "{error}");
}

#[test]
fn a_damaged_session_does_not_stop_another() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["broken", "whole"] {
        Writer::open(open(dir.path()), name).unwrap().step("hello").unwrap();
    }
    raw(dir.path()).execute_batch("UPDATE descriptions SET body = x'31' WHERE session = 1").unwrap();
    assert!(wait_for(open(dir.path()).load(&id("broken"))).is_err());
    Writer::open(open(dir.path()), "whole").unwrap().step("hello again").unwrap();
}

/// The log and the costs do not depend on the checkpoint, and the name can be used again.
#[test]
fn a_session_with_a_damaged_checkpoint_can_be_looked_at_and_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(open(dir.path()), "s").unwrap();
    writer.step("one").unwrap();
    writer.step("two").unwrap();
    drop(writer);
    raw(dir.path()).execute_batch("UPDATE checkpoints SET body = x'31' WHERE revision = 2").unwrap();
    let store = open(dir.path());
    let found = wait_for(store.load(&id("s"))).unwrap().unwrap();
    assert!(found.stand_in.is_some(), "what is lost is told");
    assert_eq!(wait_for(store.events(&id("s"), 0)).unwrap().len(), 4);
    assert_eq!(wait_for(store.usage(&id("s"))).unwrap().len(), 2);
    assert!(wait_for(store.sessions()).unwrap().iter().all(Result::is_ok));
    let lease = wait_for(store.lease(&id("s"))).unwrap();
    wait_for(store.delete(lease)).unwrap();
    assert_eq!(Writer::open(store, "s").unwrap().step("anew").unwrap(), Revision(1));
}

#[test]
fn a_damaged_blob_is_not_given_out() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let writer = Writer::open(Arc::clone(&store), "s").unwrap();
    let hash = wait_for(store.put_blob(&id("s"), b"dear")).unwrap();
    raw(dir.path()).execute_batch("UPDATE blobs SET bytes = x'00'").unwrap();
    let error = wait_for(store.get_blob(&hash)).unwrap_err();
    assert!(matches!(&error, StoreError::CorruptBlob(found) if *found == hash), "{error:?}");
    drop(writer);
}

#[test]
fn a_write_waits_for_another_process_to_finish_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(open(dir.path()), "s").unwrap();
    let db = raw(dir.path());
    db.execute_batch("BEGIN IMMEDIATE").unwrap();
    let wait = std::time::Duration::from_millis(200);
    let other = std::thread::spawn(move || {
        std::thread::sleep(wait);
        db.execute_batch("COMMIT").unwrap();
    });
    assert_eq!(writer.step("after the other").unwrap(), Revision(1));
    other.join().unwrap();
}

#[test]
fn a_damaged_session_hides_no_other() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["s", "t"] {
        Writer::open(open(dir.path()), name).unwrap().step("one").unwrap();
    }
    raw(dir.path()).execute_batch("UPDATE sessions SET usage = 'x' WHERE id = 's'").unwrap();
    let lines = wait_for(open(dir.path()).sessions()).unwrap();
    let (good, bad): (Vec<_>, Vec<_>) = lines.into_iter().partition(Result::is_ok);
    assert_eq!(good.into_iter().map(|line| line.unwrap().id).collect::<Vec<_>>(), [id("t")]);
    assert!(bad[0].as_ref().unwrap_err().to_string().starts_with("the summary of session s is damaged"));
}

fn first_error(dir: &Path) -> String {
    let store = open(dir);
    let ends = [
        wait_for(store.load(&id("s"))).map(|_| ()),
        wait_for(store.events(&id("s"), 0)).map(|_| ()),
        wait_for(store.usage(&id("s"))).map(|_| ()),
        wait_for(store.sessions()).and_then(|lines| lines.into_iter().try_for_each(|line| line.map(|_| ()))),
    ];
    ends.into_iter().find_map(Result::err).map_or_else(|| "no error".into(), |error| error.to_string())
}
