//! The store on SQLite: the shared suite, damaged files, killed processes, and the memory store as its model.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests: what fails here fails the test"
)]

mod faults;
mod files;
mod golden;
mod growth;
mod model;
mod process;
mod salvage;
mod stamps;
mod suite;

use std::path::Path;
use std::sync::Arc;

use agent_core::{
    Checkpoint, Commit, Entry, Event, EventBody, JournalRecord, PendingStep, ReadExtent, ReadStamp, Response,
    Revision, SessionId, SessionMeta, Slots, Usage, UserMessage,
};
use agent_store::{Lease, SqliteStore, Store, StoreError};
use agent_testkit::store_suite::wait_for;

/// A session that is written to, step by step.
struct Writer {
    store: Arc<dyn Store>,
    lease: Lease,
    revision: Revision,
    last_seq: u64,
}

impl Writer {
    /// Goes on with a session, or begins it.
    fn open(store: Arc<dyn Store>, name: &str) -> Result<Self, StoreError> {
        let lease = wait_for(store.lease(&id(name)))?;
        if let Some(found) = wait_for(store.load(&id(name)))? {
            return Ok(Self { store, lease, revision: found.revision, last_seq: found.last_seq });
        }
        let revision = wait_for(store.create(&lease, &meta(name), &Checkpoint::default()))?;
        Ok(Self { store, lease, revision, last_seq: 0 })
    }

    /// One step as a driver writes it: the journal first, then the commit; each with an event.
    fn step(&mut self, text: &str) -> Result<Revision, StoreError> {
        self.journal()?;
        self.commit(text)
    }

    fn journal(&mut self) -> Result<(), StoreError> {
        let session = self.lease.session();
        let events = [event(session, self.last_seq + 1)];
        wait_for(self.store.journal(&self.lease, &[response()], &events))?;
        self.last_seq += 1;
        Ok(())
    }

    fn commit(&mut self, text: &str) -> Result<Revision, StoreError> {
        let events = [event(self.lease.session(), self.last_seq + 1)];
        let entries = [user(text), user("and again")];
        let usage = Usage { input: self.revision.0, ..Usage::default() };
        let checkpoint = Checkpoint { last_turn: self.revision.0 + 1, ..Checkpoint::default() };
        let commit = Commit {
            expect: self.revision,
            entries: &entries,
            checkpoint: &checkpoint,
            usage: Some(&usage),
            events: &events,
            consumed: &[],
            terminal: None,
            now_ms: 1,
        };
        self.revision = wait_for(self.store.commit(&self.lease, commit))?.revision;
        self.last_seq += 1;
        Ok(self.revision)
    }
}

fn open(dir: &Path) -> Arc<dyn Store> {
    Arc::new(SqliteStore::open(dir).unwrap())
}

/// The database without the store in between.
fn raw(dir: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(dir.join("sessions.db")).unwrap()
}

/// Everything that can be read of a session.
fn picture(store: &Arc<dyn Store>, session: &SessionId) -> String {
    let loaded = wait_for(store.load(session)).unwrap();
    let events = wait_for(store.events(session, 0));
    let usage = wait_for(store.usage(session));
    let events = events.map_err(|error| error.to_string());
    let usage = usage.map_err(|error| error.to_string());
    format!("{loaded:#?}\n{events:#?}\n{usage:#?}\n{:#?}", wait_for(store.sessions()).unwrap())
}

fn id(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

fn meta(name: &str) -> SessionMeta {
    SessionMeta {
        id: id(name),
        created_ms: 0,
        model: "test/model".into(),
        system: vec![],
        static_blocks: 0,
        tools: vec![],
    }
}

/// A checkpoint after these files were read, each as the content that its number stands for.
fn having_read(files: impl IntoIterator<Item = (u64, u64)>) -> Checkpoint {
    let stamp = |(file, content)| {
        let stamp = ReadStamp { hash: format!("{content:064x}"), len: content, seen: ReadExtent::Full };
        (format!("src/module_{}/file_{file}.rs", file % 7), stamp)
    };
    let reads = files.into_iter().map(stamp).collect();
    Checkpoint { slots: Slots { reads, ..Slots::default() }, ..Checkpoint::default() }
}

fn user(text: &str) -> Entry {
    Entry::User(UserMessage::text(text).unwrap())
}

fn response() -> JournalRecord {
    JournalRecord::Response(PendingStep::new(Response::of(vec![])).unwrap())
}

fn event(session: &SessionId, seq: u64) -> Event {
    let body = EventBody::TurnStarted {};
    Event { seq: Some(seq), session: session.clone(), turn: None, step: None, body }
}
