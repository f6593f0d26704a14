//! A store of every released format, as SQL text, which this program must open and read as it was written.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_core::{
    AssistantPart, CallId, Checkpoint, Commit, Entry, JournalRecord, RawJson, Response, Revision, StepRecord,
    TerminalReason, ToolCall, ToolInput, ToolOutput, ToolResult, Usage,
};
use agent_store::{SqliteStore, Store};
use agent_testkit::store_suite::wait_for;

use super::{event, id, meta, open, picture, raw, response, user};

#[test]
fn stores_of_every_format_are_read_as_they_were_written() {
    let fresh = tempfile::tempdir().unwrap();
    let store = open(fresh.path());
    write(&store);
    let short = picture(&store, &id("golden"));
    write_long(&store);
    let with_long = picture(&store, &id("golden"));
    let long = picture(&store, &id("long"));
    for format in 1..=FORMAT {
        let has_long = format >= IN_PARTS;
        let expect = if has_long { &with_long } else { &short };
        let dir = tempfile::tempdir().unwrap();
        raw(dir.path()).execute_batch(&read(&golden(format))).unwrap();
        let store = SqliteStore::open(dir.path());
        let store: Arc<dyn Store> =
            Arc::new(store.unwrap_or_else(|error| panic!("format {format}: {error}")));
        assert_eq!(picture(&store, &id("golden")), *expect, "format {format}");
        assert!(!has_long || picture(&store, &id("long")) == long, "format {format}");
        let lease = wait_for(store.lease(&id("golden"))).unwrap();
        let checkpoint = Checkpoint::default();
        let commit = commit(Revision(2), &[], &checkpoint);
        assert_eq!(wait_for(store.commit(&lease, commit)).unwrap().revision, Revision(3), "format {format}");
    }
}

/// Run by hand when a format is released: `cargo test -p agent-store --features sqlite golden -- --ignored`.
#[test]
#[ignore = "writes the golden store of the newest format"]
#[expect(clippy::disallowed_methods, reason = "writes a fixture")]
fn write_the_golden_store() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    write(&store);
    write_long(&store);
    drop(store);
    std::fs::write(golden(FORMAT), dump(&raw(dir.path()))).unwrap();
}

/// A session with one of everything.
fn write(store: &Arc<dyn Store>) {
    let json = RawJson::parse(r#"{"path":"b.txt","line":12345678901234567890,"a":1.0}"#).unwrap();
    let call = ToolCall {
        id: CallId::new("c1").unwrap(),
        name: "look".into(),
        input: ToolInput::Json(json),
        data: None,
    };
    let result = ToolResult { call: call.id.clone(), output: ToolOutput::text("it's \"there\"\n") };
    let usage = Usage { input: 11, output: 7, cache_read: 5, ..Usage::default() };
    let said = Response { usage: usage.clone(), ..Response::of(vec![AssistantPart::ToolCall(call)]) };
    let first = [user("Grüße"), Entry::Step(StepRecord::new(said, vec![result.clone()]).unwrap())];
    let open_turn = Some(RawJson::parse(r#"{"v":1,"state":"tools"}"#).unwrap());
    let running = Checkpoint { turn: open_turn, last_turn: 1, usage: usage.clone(), ..Checkpoint::default() };
    let ended = Checkpoint { turn: None, ..running.clone() };
    let session = id("golden");
    wait_for(async {
        let lease = store.lease(&session).await.unwrap();
        let revision = store.create(&lease, &meta("golden"), &Checkpoint::default()).await.unwrap();
        let events = [event(&session, 1), event(&session, 2)];
        let step = Commit { usage: Some(&usage), events: &events, ..commit(revision, &first, &running) };
        let revision = store.commit(&lease, step).await.unwrap().revision;
        let end = Commit { terminal: Some(&TerminalReason::Done), ..commit(revision, &[], &ended) };
        store.commit(&lease, end).await.unwrap();
        let records = [response(), JournalRecord::Finished { result, slots: None }];
        store.journal(&lease, &records, &[event(&session, 3)]).await.unwrap();
        store.put_blob(&session, b"a large output").await.unwrap();
    });
}

/// A session with an entry that takes several rows.
fn write_long(store: &Arc<dyn Store>) {
    let entries = [user(&"long ".repeat(1_000)), user("short")];
    wait_for(async {
        let lease = store.lease(&id("long")).await.unwrap();
        let checkpoint = Checkpoint::default();
        let revision = store.create(&lease, &meta("long"), &checkpoint).await.unwrap();
        store.commit(&lease, commit(revision, &entries, &checkpoint)).await.unwrap();
    });
}

fn commit<'a>(expect: Revision, entries: &'a [Entry], checkpoint: &'a Checkpoint) -> Commit<'a> {
    Commit { expect, entries, checkpoint, usage: None, events: &[], consumed: &[], terminal: None, now_ms: 7 }
}

/// The tables, their rows and the rest of a database, as SQL that makes them again.
fn dump(db: &rusqlite::Connection) -> String {
    let texts = |sql: &str| -> Vec<String> {
        let mut query = db.prepare(sql).unwrap();
        query.query_map((), |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let made = |kind: &str| {
        texts(&format!("SELECT sql FROM sqlite_schema WHERE type = '{kind}' AND sql NOT NULL ORDER BY rowid"))
    };
    let mut lines = made("table");
    for table in texts("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY rowid") {
        // Bodies are text in truth, and text can be reviewed.
        let columns = texts(&format!(
            "SELECT iif(type = 'BLOB', printf('''CAST('' || quote(CAST(%s AS TEXT)) || '' AS BLOB)''', name),
             printf('quote(%s)', name)) FROM pragma_table_info('{table}')"
        ));
        let row = columns.join(" || ', ' || ");
        lines.extend(texts(&format!("SELECT 'INSERT INTO {table} VALUES (' || {row} || ')' FROM {table}")));
    }
    lines.extend(made("index"));
    lines.extend(made("trigger"));
    lines.push("PRAGMA journal_mode = WAL".into());
    lines.join(";\n") + ";\n"
}

fn golden(format: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../fixtures/store/format-{format}.sql"))
}

#[expect(clippy::disallowed_methods, reason = "reads a fixture")]
fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The newest format.
pub(super) const FORMAT: u32 = 6;
/// The first one that keeps long entries in parts.
const IN_PARTS: u32 = 5;
