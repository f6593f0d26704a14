//! What lies on the disk: files, modes, settings, formats and locks.

use std::sync::Arc;

use agent_core::Revision;
use agent_store::{SqliteStore, StoreError};
use agent_testkit::store_suite::wait_for;

use super::golden::FORMAT;
use super::{Writer, id, open, raw};

#[test]
fn the_database_is_set_up_to_last() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    let db = raw(dir.path());
    let setting = |name: &str| -> String {
        db.query_row(&format!("SELECT CAST({name} AS TEXT) FROM pragma_{name}"), (), |row| row.get(0))
            .unwrap()
    };
    assert_eq!((setting("page_size").as_str(), setting("journal_mode").as_str()), ("8192", "wal"));
    let lax = "SELECT count(*) FROM pragma_table_list
               WHERE schema = 'main' AND type = 'table' AND strict = 0 AND name NOT LIKE 'sqlite_%'";
    assert_eq!(db.query_row(lax, (), |row| row.get::<_, u64>(0)).unwrap(), 0, "every table is STRICT");
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_the_data() {
    use std::os::unix::fs::PermissionsExt;
    let above = tempfile::tempdir().unwrap();
    let dir = above.path().join("new/data");
    let store = open(&dir);
    let lease = wait_for(store.lease(&id("s"))).unwrap();
    let mode = |name: &str| dir.join(name).metadata().unwrap().permissions().mode() & 0o777;
    for (name, expect) in [
        ("", 0o700),
        ("locks", 0o700),
        ("locks/s.lock", 0o600),
        ("sessions.db", 0o600),
        ("sessions.db-wal", 0o600),
        ("sessions.db-shm", 0o600),
    ] {
        assert_eq!(mode(name), expect, "{name:?} has {:o}", mode(name));
    }
    drop(lease);
}

#[test]
fn two_stores_of_one_directory_share_sessions_and_locks() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (open(dir.path()), open(dir.path()));
    let mut writer = Writer::open(one, "s").unwrap();
    writer.step("hello").unwrap();
    let busy = wait_for(two.lease(&id("s"))).unwrap_err();
    assert_eq!(
        busy.to_string(),
        format!(
            "session s is in use by process {}; end that run, or begin another session",
            std::process::id()
        )
    );
    assert_eq!(wait_for(two.load(&id("s"))).unwrap().unwrap().revision, Revision(1));
    drop(writer);
    Writer::open(two, "s").unwrap().step("hello from here").unwrap();
}

#[cfg(unix)]
#[test]
fn a_link_leads_to_the_same_lock() {
    let dir = tempfile::tempdir().unwrap();
    let (real, link) = (dir.path().join("real"), dir.path().join("link"));
    let held = Writer::open(open(&real), "s").unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let busy = Writer::open(open(&link), "s").map(|_| ()).unwrap_err();
    assert!(matches!(busy, StoreError::Busy { .. }), "{busy:?}");
    drop(held);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "somebody deletes a lock file by hand")]
fn a_deleted_lock_file_does_not_make_two_writers() {
    let dir = tempfile::tempdir().unwrap();
    let mut zombie = Writer::open(open(dir.path()), "s").unwrap();
    zombie.step("mine").unwrap();
    std::fs::remove_file(dir.path().join("locks/s.lock")).unwrap();
    let mut heir = Writer::open(open(dir.path()), "s").unwrap();
    let lost = zombie.step("still mine").unwrap_err();
    assert!(matches!(lost, StoreError::LeaseLost { held: 1, newest: 2, .. }), "{lost:?}");
    assert_eq!(heir.step("mine now").unwrap(), Revision(2));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a lock file that a dead process left")]
fn a_number_left_in_a_lock_file_holds_nothing() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()));
    // A process that lives, but holds nothing: its number was used again.
    std::fs::write(dir.path().join("locks/s.lock"), std::process::id().to_string()).unwrap();
    Writer::open(open(dir.path()), "s").unwrap().step("hello").unwrap();
}

#[test]
fn a_newer_or_foreign_format_is_refused() {
    let check = |tamper: &str, expect: &str| {
        let dir = tempfile::tempdir().unwrap();
        drop(open(dir.path()));
        raw(dir.path()).execute_batch(tamper).unwrap();
        let error = SqliteStore::open(dir.path()).unwrap_err().to_string();
        assert_eq!(error, expect);
    };
    check(
        &format!("INSERT INTO schema_migrations VALUES ({}, 'later', 'x')", FORMAT + 1),
        &format!(
            "the store has format {}, this program knows up to {FORMAT}; use the newer program",
            FORMAT + 1
        ),
    );
    check(
        "UPDATE schema_migrations SET sha256 = 'x'",
        "step 1 of the store's format is not the one this program knows; use the program that made the store, or another directory",
    );
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the file that is not a database")]
fn what_is_no_store_is_refused_untouched() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sessions.db");
    std::fs::write(&file, "not a database, but something dear to somebody".repeat(40)).unwrap();
    let before = std::fs::read(&file).unwrap();
    let error = SqliteStore::open(dir.path()).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
    assert_eq!(std::fs::read(&file).unwrap(), before);
    let error = SqliteStore::open(&file).unwrap_err();
    assert!(matches!(&error, StoreError::Io { path, .. } if path.starts_with(&file)), "{error:?}");
}

#[test]
fn many_may_open_a_new_directory_at_once() {
    let dir = Arc::new(tempfile::tempdir().unwrap());
    let work = |n: usize| {
        let dir = Arc::clone(&dir);
        std::thread::spawn(move || {
            Writer::open(open(dir.path()), &format!("s{n}")).unwrap().step("hi").unwrap()
        })
    };
    let workers: Vec<_> = (0..8).map(work).collect();
    workers.into_iter().for_each(|worker| assert_eq!(worker.join().unwrap(), Revision(1)));
    assert_eq!(wait_for(open(dir.path()).sessions()).unwrap().len(), 8);
}

#[test]
fn the_database_itself_refuses_to_change_history() {
    let dir = tempfile::tempdir().unwrap();
    Writer::open(open(dir.path()), "s").unwrap().step(&"hello ".repeat(1_000)).unwrap();
    let db = raw(dir.path());
    db.pragma_update(None, "foreign_keys", true).unwrap();
    let check = |sql: &str, expect: &str| {
        let error = db.execute_batch(sql).unwrap_err().to_string();
        assert!(error.contains(expect), "{sql}: {error}");
    };
    check("UPDATE entries SET body = x'31' WHERE seq = 0", "entries are never changed");
    check("DELETE FROM entries WHERE seq = 1", "entries are deleted with their session only");
    check(
        "INSERT INTO entries (session, seq, body) VALUES (1, 0, x'7b7d')",
        "an entry must stand at the end",
    );
    check(
        "INSERT INTO entries (session, seq, body) VALUES (1, 3, x'7b7d')",
        "an entry must stand at the end",
    );
    check("UPDATE entry_parts SET body = x'31'", "entries are never changed");
    check("DELETE FROM entry_parts", "entries are deleted with their session only");
    check("INSERT INTO entry_parts VALUES (1, 7, 1, x'31')", "FOREIGN KEY constraint failed");
    check("INSERT INTO entry_parts VALUES (1, 0, 1, x'31')", "UNIQUE constraint failed");
    check("UPDATE events SET body = x'31'", "events are never changed");
    check("INSERT INTO events VALUES (1, 9, x'7b7d')", "an event must have the next number");
    db.execute_batch("DELETE FROM sessions").unwrap();
    for table in ["entries", "entry_parts", "events", "usage", "checkpoints", "journal", "descriptions"] {
        let count = db.query_row(&format!("SELECT count(*) FROM {table}"), (), |row| row.get::<_, u64>(0));
        assert_eq!(count.unwrap(), 0, "{table}");
    }
}

#[test]
fn three_checkpoints_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(open(dir.path()), "s").unwrap();
    for revision in 1..=5 {
        assert_eq!(writer.step("more").unwrap(), Revision(revision));
    }
    let db = raw(dir.path());
    let mut query = db.prepare("SELECT revision FROM checkpoints ORDER BY revision").unwrap();
    let kept: Vec<u64> = query.query_map((), |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!(kept, [3, 4, 5]);
}
