//! The operations of a store one by one, in memory and on SQLite: a step's writes, resuming, the list of sessions.
//!
//! `cargo bench -p agent-store --features sqlite --bench store`; `cargo xtask bench store` puts it on a page.

#![expect(clippy::unwrap_used, reason = "a bench has nobody to hand an error to")]

use std::sync::Arc;

use agent_core::{
    AssistantPart, AssistantText, CallId, Checkpoint, Commit, Entry, Event, EventBody, History,
    JournalRecord, PendingStep, RawJson, Response, Revision, SessionId, SessionMeta, StepRecord, SystemBlock,
    Text, ToolCall, ToolCard, ToolInput, ToolOutput, ToolResult, Usage,
};
use agent_store::{Lease, MemoryStore, SqliteStore, Store};
use agent_testkit::store_suite::wait_for as wait;
use divan::Bencher;

fn main() {
    divan::main();
}

const STORES: [&str; 2] = ["memory", "sqlite"];
/// The same with how many entries.
const RESUMED: [&str; 4] = ["memory of 100", "sqlite of 100", "memory of 5000", "sqlite of 5000"];
const SESSIONS: usize = 500;

/// One entry with its events, behind a history that grows as it is measured.
#[divan::bench(args = STORES, sample_count = 200, sample_size = 1)]
fn commit_of_a_step(bencher: Bencher<'_, '_>, store: &str) {
    let mut session = Session::new(&Home::new(store), "one");
    bencher.bench_local(|| session.step());
}

/// The same, with what a call leaves ahead of it: the answer, the start of the call and its end.
#[divan::bench(args = STORES, sample_count = 200, sample_size = 1)]
fn journal_and_commit_of_a_step(bencher: Bencher<'_, '_>, store: &str) {
    let mut session = Session::new(&Home::new(store), "one");
    let (response, result) = (answer("toolu_1"), result("toolu_1"));
    let pending = PendingStep::new(response).unwrap();
    let finished = JournalRecord::Finished { result, slots: None };
    let records = [JournalRecord::Response(pending), JournalRecord::Started(call("toolu_1")), finished];
    bencher.bench_local(|| {
        for record in &records {
            wait(session.store.journal(&session.lease, std::slice::from_ref(record), &[])).unwrap();
        }
        session.step();
    });
}

/// The whole session out of the store, its entries not yet read.
#[divan::bench(args = RESUMED, sample_count = 20, sample_size = 1)]
fn load(bencher: Bencher<'_, '_>, of: &str) {
    let (home, session, entries) = grown(of);
    bencher.bench_local(|| {
        let record = wait(home.store.load(&session.id)).unwrap().unwrap();
        assert_eq!(record.entries.len(), entries);
        record
    });
}

/// The same with the entries read, as a later process needs it.
#[divan::bench(args = RESUMED, sample_count = 20, sample_size = 1)]
fn resume(bencher: Bencher<'_, '_>, of: &str) {
    let (home, session, entries) = grown(of);
    bencher.bench_local(|| {
        let record = wait(home.store.load(&session.id)).unwrap().unwrap();
        let (history, repairs) = History::load(&record.entries).unwrap();
        assert_eq!((history.len(), repairs.len()), (entries, 0));
        history
    });
}

#[divan::bench(args = STORES, sample_count = 20, sample_size = 1)]
fn list_of_500_sessions(bencher: Bencher<'_, '_>, store: &str) {
    let home = Home::new(store);
    for number in 0..SESSIONS {
        Session::new(&home, &format!("s{number}")).step();
    }
    bencher.bench_local(|| {
        let sessions = wait(home.store.sessions()).unwrap();
        assert_eq!(sessions.len(), SESSIONS);
        sessions
    });
}

/// A session of so many steps, as `STORE of N` says.
fn grown(of: &str) -> (Home, Session, usize) {
    let (store, entries) = of.split_once(" of ").unwrap();
    let (home, entries) = (Home::new(store), entries.parse().unwrap());
    let mut session = Session::new(&home, "one");
    for number in 0..entries {
        session.entry = entry(&format!("toolu_{number}"));
        session.step();
    }
    (home, session, entries)
}

/// A store, and the folder it may lie in.
struct Home {
    store: Arc<dyn Store>,
    _folder: Arc<tempfile::TempDir>,
}

impl Home {
    fn new(store: &str) -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let store: Arc<dyn Store> = match store {
            "memory" => Arc::new(MemoryStore::new()),
            _ => Arc::new(SqliteStore::open(folder.path()).unwrap()),
        };
        Self { store, _folder: folder }
    }
}

/// A session that only grows.
struct Session {
    store: Arc<dyn Store>,
    _folder: Arc<tempfile::TempDir>,
    id: SessionId,
    lease: Lease,
    revision: Revision,
    seq: u64,
    entry: Entry,
}

impl Session {
    fn new(home: &Home, name: &str) -> Self {
        let (store, id) = (Arc::clone(&home.store), SessionId::new(name).unwrap());
        let lease = wait(store.lease(&id)).unwrap();
        let revision = wait(store.create(&lease, &meta(&id), &Checkpoint::default())).unwrap();
        Self {
            store,
            _folder: Arc::clone(&home._folder),
            id,
            lease,
            revision,
            seq: 0,
            entry: entry("toolu_1"),
        }
    }

    fn step(&mut self) {
        let event = |seq| Event {
            seq: Some(seq),
            session: self.id.clone(),
            turn: None,
            step: None,
            body: EventBody::SessionStarted { model: "bench/model".into() },
        };
        let events: Vec<Event> = (1..=EVENTS).map(|at| event(self.seq + at)).collect();
        self.seq += EVENTS;
        let commit = Commit {
            expect: self.revision,
            entries: std::slice::from_ref(&self.entry),
            checkpoint: &Checkpoint::default(),
            usage: Some(&Usage { input: 900, output: 75, ..Usage::default() }),
            events: &events,
            consumed: &[],
            terminal: None,
            now_ms: 1,
        };
        self.revision = wait(self.store.commit(&self.lease, commit)).unwrap().revision;
    }
}

/// Durable events of a step.
const EVENTS: u64 = 4;

fn meta(id: &SessionId) -> SessionMeta {
    SessionMeta {
        id: id.clone(),
        created_ms: 0,
        model: "bench/model".into(),
        system: vec![SystemBlock::new("You measure how fast a store is.").unwrap()],
        static_blocks: 1,
        tools: vec![ToolCard::new("look", "Looks.", &RawJson::empty_object()).unwrap()],
    }
}

fn call(id: &str) -> CallId {
    CallId::new(id).unwrap()
}

fn entry(id: &str) -> Entry {
    Entry::Step(StepRecord::new(answer(id), vec![result(id)]).unwrap())
}

/// Some 400 bytes of words and 200 of input.
fn answer(id: &str) -> Response {
    let input = ToolInput::finished(&format!(r#"{{"seq":1,"text":"{}"}}"#, "steady, ".repeat(22)));
    let words = Text::new("The gauge is read, and it is steady. ".repeat(11)).unwrap();
    let call = AssistantPart::ToolCall(ToolCall { id: call(id), name: "look".into(), input, data: None });
    Response::of(vec![AssistantPart::Text(AssistantText { text: words, data: None }), call])
}

fn result(id: &str) -> ToolResult {
    ToolResult { call: call(id), output: ToolOutput::text("row 17: the gauge reads \"steady\"\n".repeat(62)) }
}
