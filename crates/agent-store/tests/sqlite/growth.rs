//! What a step writes does not grow with the session: neither its rows nor the pages that reach the disk.

use std::path::Path;

use agent_core::{
    CallId, Checkpoint, Commit, Entry, EventBody, JournalRecord, RawJson, ToolOutput, ToolResult, Usage,
};
use agent_testkit::store_suite::wait_for;

use super::{Writer, event, having_read, open, raw, response, user};

/// Bytes of what the last step left in rows that later steps write anew or that its journal held.
#[derive(Debug, PartialEq)]
struct Rows {
    checkpoint: i64,
    journal: i64,
    stamps_written: i64,
}

#[test]
fn a_step_writes_as_much_at_1000_as_at_50() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::open(open(dir.path()), "long").unwrap();
    let early = (steps(&mut writer, dir.path(), 1..=40), steps(&mut writer, dir.path(), 41..=60)).1;
    let late = (steps(&mut writer, dir.path(), 61..=990), steps(&mut writer, dir.path(), 991..=1010)).1;
    let (early_rows, early_pages) = early;
    let (late_rows, late_pages) = late;
    let near = |early: i64, late: i64, slack: i64| (late - early).abs() <= slack;
    // Numbers have more digits later.
    assert!(near(early_rows.checkpoint, late_rows.checkpoint, 8), "{early_rows:?}, then {late_rows:?}");
    assert!(near(early_rows.journal, late_rows.journal, 8), "{early_rows:?}, then {late_rows:?}");
    assert_eq!((early_rows.stamps_written, late_rows.stamps_written), (1, 1));
    // A tree that grew one level deeper, and a split more or less, within twenty steps.
    assert!(near(early_pages, late_pages, 30), "pages in 20 steps: {early_pages}, then {late_pages}");
    assert!(late_pages < 20 * 25, "{late_pages} pages in 20 steps");
}

/// Runs steps that each read one more file; the rows of the last one, and the pages all of them wrote.
fn steps(writer: &mut Writer, dir: &Path, numbers: std::ops::RangeInclusive<u64>) -> (Rows, i64) {
    let db = raw(dir);
    // From here on the log holds what is written, for as long as it is not full.
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(())).unwrap();
    let mut rows = Rows { checkpoint: 0, journal: 0, stamps_written: 0 };
    let stamps = || one(&db, "SELECT count(*) FROM reads");
    for step in numbers {
        let checkpoint = Checkpoint {
            turn: Some(RawJson::parse(r#"{"format":1,"state":"prepare"}"#).unwrap()),
            ..having_read((1..=step).map(|file| (file, file)))
        };
        journal(writer, &checkpoint);
        rows.journal = one(&db, "SELECT sum(length(body)) FROM journal");
        let before = stamps();
        commit(writer, &checkpoint);
        rows.stamps_written = stamps() - before;
        rows.checkpoint = one(&db, "SELECT length(body) FROM checkpoints ORDER BY revision DESC LIMIT 1");
    }
    let log = dir.join("sessions.db-wal").metadata().unwrap().len();
    (rows, i64::try_from(log).unwrap() / PAGE)
}

/// What is written before the step's last call ends: the answer, and the result of a call beside the last one.
fn journal(writer: &mut Writer, checkpoint: &Checkpoint) {
    let result = ToolResult { call: CallId::new("c1").unwrap(), output: ToolOutput::text("x".repeat(900)) };
    let finished = JournalRecord::Finished { result, slots: Some(checkpoint.slots.clone()) };
    let event = told(writer, 600);
    wait_for(writer.store.journal(&writer.lease, &[response(), finished], &[event])).unwrap();
    writer.last_seq += 1;
}

fn commit(writer: &mut Writer, checkpoint: &Checkpoint) {
    let entries: [Entry; 1] = [user(&"y".repeat(3_000))];
    let usage = Usage { input: 1_000, output: 100, ..Usage::default() };
    let commit = Commit {
        expect: writer.revision,
        entries: &entries,
        checkpoint,
        usage: Some(&usage),
        events: &[told(writer, 2_000)],
        consumed: &[],
        terminal: None,
        now_ms: 1,
    };
    writer.revision = wait_for(writer.store.commit(&writer.lease, commit)).unwrap().revision;
    writer.last_seq += 1;
}

fn told(writer: &Writer, bytes: usize) -> agent_core::Event {
    let body = EventBody::SessionStarted { model: "z".repeat(bytes) };
    agent_core::Event { body, ..event(writer.lease.session(), writer.last_seq + 1) }
}

fn one(db: &rusqlite::Connection, query: &str) -> i64 {
    db.query_row(query, (), |row| row.get(0)).unwrap()
}

/// A page and the frame around it.
const PAGE: i64 = 8192 + 24;
