//! Damaged rows hide no others when a session is read for what is left of it (requirement D8).

use agent_core::History;
use agent_store::{Store, export, import};
use agent_testkit::store_suite::wait_for;

use super::{Writer, id, open, raw};

#[test]
fn what_can_be_read_of_a_damaged_session_goes_out() {
    let check = |damage: &str| {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path());
        let mut writer = Writer::open(store.clone(), "s").unwrap();
        for text in ["one", "two", "three"] {
            writer.commit(text).unwrap();
        }
        drop((writer, store));
        let db = raw(dir.path());
        db.execute_batch("PRAGMA foreign_keys = OFF; DROP TRIGGER entries_stay; DROP TRIGGER entries_remain")
            .unwrap();
        db.execute_batch("DROP TRIGGER events_stay").unwrap();
        db.execute_batch(damage).unwrap();
        drop(db);
        let store = open(dir.path());
        let whole = wait_for(store.load(&id("s"))).err();
        let mut lines = Vec::new();
        let left = wait_for(export(&*store, &id("s"), &mut lines)).unwrap();
        let told: Vec<_> = left.iter().map(ToString::to_string).collect();
        let other = tempfile::tempdir().unwrap();
        let second = open(other.path());
        let imported = wait_for(import(&*second, &mut &*lines, Some(id("back")), 5)).unwrap();
        let record = wait_for(second.load(&id("back"))).unwrap().unwrap();
        let (history, _) = History::load(&record.entries).unwrap();
        assert_eq!(history.len(), imported.entries);
        let events = wait_for(second.events(&id("back"), 0)).unwrap().len();
        let is_whole = whole.is_none();
        format!("loads: {is_whole}; {} entries, {events} events\n{}", history.len(), told.join("\n"))
    };
    insta::assert_snapshot!(check("SELECT 1"), @"loads: true; 6 entries, 3 events");
    insta::assert_snapshot!(check("UPDATE entries SET body = x'ff' WHERE seq = 1"), @"
    loads: false; 6 entries, 3 events
    entry 1: it is not UTF-8 (invalid utf-8 sequence of 1 bytes from index 0)
    ");
    insta::assert_snapshot!(check("UPDATE entries SET body = x'7b' WHERE seq = 1"), @"
    loads: true; 6 entries, 3 events
    entry 1: EOF while parsing an object at line 1 column 1
    ");
    insta::assert_snapshot!(check("DELETE FROM entries WHERE seq = 1"), @"
    loads: false; 6 entries, 3 events
    entry 1: it is missing
    ");
    insta::assert_snapshot!(check("DELETE FROM entries WHERE seq = 2"), @"
    loads: false; 6 entries, 3 events
    entry 2: it is missing
    ");
    insta::assert_snapshot!(check("DELETE FROM entries WHERE seq = 5"), @"
    loads: false; 6 entries, 3 events
    entry 5: it is missing
    ");
    insta::assert_snapshot!(check("UPDATE usage SET body = '{' WHERE revision = 2"), @"
    loads: true; 6 entries, 3 events
    the usage of revision 2: it is not readable (EOF while parsing an object at line 1 column 1)
    ");
    insta::assert_snapshot!(check("INSERT INTO journal (session, pos, is_response, body) VALUES (1, 0, 0, x'7b')"), @"
    loads: true; 6 entries, 3 events
    journal record 0: it is not readable (EOF while parsing an object at line 1 column 1)
    ");
    insta::assert_snapshot!(check("INSERT INTO rounds (session, turn, body) VALUES (1, 1, x'7b')"), @"
    loads: true; 6 entries, 3 events
    what was said of turn 1: it is not readable (EOF while parsing an object at line 1 column 1)
    ");
    insta::assert_snapshot!(check("INSERT INTO inputs (session, id, body) VALUES (1, 1, x'7b')"), @"
    loads: false; 6 entries, 3 events
    input 1: it is not readable (EOF while parsing an object at line 1 column 1)
    ");
    insta::assert_snapshot!(check("UPDATE events SET body = x'7b' WHERE seq = 2"), @"
    loads: true; 6 entries, 1 events
    event 2: it is not readable (EOF while parsing an object at line 1 column 1)
    ");
    insta::assert_snapshot!(check("UPDATE checkpoints SET body = x'31'"), @"
    loads: true; 6 entries, 3 events
    the checkpoint: it is not readable (invalid type: integer `1`, expected struct Checkpoint at line 1 column 1)
    ");
    insta::assert_snapshot!(check("UPDATE descriptions SET body = x'31'"), @"
    loads: false; 6 entries, 3 events
    the description: it is not readable (invalid type: integer `1`, expected struct SessionMeta at line 1 column 1)
    ");
}
