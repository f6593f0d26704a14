//! The run that is repeated: two sessions, two processes, every kind of write.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use agent_core::{
    Checkpoint, Commit, Entry, Event, EventBody, JournalRecord, ParkKind, PendingStep, ReadExtent, ReadStamp,
    Response, Revision, SessionId, SessionMeta, Slots, TerminalReason, Usage, UserMessage,
};
use agent_store::{JsonlError, Lease, SqliteStore, Store, StoreError, import};
use agent_testkit::store_suite::wait_for;

/// One call of the store, or what happens around it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    Create(&'static str),
    Journal(&'static str),
    Commit(&'static str),
    Park(&'static str),
    Blob(&'static str, u8),
    Delete(&'static str),
    /// A session with something of everything is read in.
    Import(&'static str),
    /// The process ends and another one begins.
    Reopen,
    /// Somebody else empties the write-ahead log.
    EmptyLog,
}

pub(super) const SCRIPT: &[Step] = &[
    Step::Create("a"),
    Step::Journal("a"),
    Step::Commit("a"),
    Step::Blob("a", 1),
    Step::Journal("a"),
    Step::Park("a"),
    Step::Reopen,
    Step::Journal("a"),
    Step::Journal("a"),
    Step::Commit("a"),
    Step::Create("b"),
    Step::Commit("b"),
    Step::Blob("b", 1),
    Step::Blob("b", 2),
    Step::EmptyLog,
    Step::Commit("a"),
    Step::Delete("b"),
    Step::Import("c"),
    Step::Commit("a"),
    Step::Journal("a"),
];

/// A process with the store.
pub(super) struct Runner<'a> {
    dir: &'a Path,
    store: Option<Arc<dyn Store>>,
    held: BTreeMap<&'static str, Held>,
}

struct Held {
    lease: Lease,
    revision: Revision,
    last_seq: u64,
}

impl<'a> Runner<'a> {
    pub(super) fn new(dir: &'a Path) -> Self {
        Self { dir, store: None, held: BTreeMap::new() }
    }

    pub(super) fn take(&mut self, step: &Step) -> Result<(), StoreError> {
        match *step {
            Step::Create(name) => self.create(name),
            Step::Journal(name) => self.journal(name),
            Step::Commit(name) => self.commit(name, None),
            Step::Park(name) => self.commit(name, Some(&TerminalReason::Parked(ParkKind::Approval))),
            Step::Blob(name, byte) => {
                let store = self.store()?;
                wait_for(store.put_blob(&id(name), &blob(byte))).map(|_| ())
            }
            Step::Delete(name) => self.delete(name),
            Step::Import(name) => {
                let store = self.store()?;
                match wait_for(import(&*store, &mut LINES.as_bytes(), Some(id(name)), 9)) {
                    Ok(imported) => assert_eq!(imported.left_out, []),
                    Err(JsonlError::Store(error)) => return Err(error),
                    Err(error) => unreachable!("the lines are whole: {error}"),
                }
                Ok(())
            }
            Step::Reopen => {
                self.stop();
                self.store().map(|_| ())
            }
            Step::EmptyLog => {
                self.store()?;
                self.empty_log();
                Ok(())
            }
        }
    }

    /// The process ends.
    pub(super) fn stop(&mut self) {
        self.held.clear();
        self.store = None;
    }

    /// Everything that can be read.
    pub(super) fn picture(&mut self) -> Result<String, StoreError> {
        let store = self.store()?;
        let mut parts = vec![format!("{:?}", wait_for(store.sessions())?)];
        for session in ["a", "b", "c"].map(id) {
            let Some(found) = wait_for(store.load(&session))? else { continue };
            let events = wait_for(store.events(&session, 0))?;
            parts.push(format!("{found:?} {events:?} {:?}", wait_for(store.usage(&session))?));
            let found = wait_for(store.salvage(&session))?.unwrap_or_default();
            parts.push(format!("{:?} {:?} {:?}", found.rounds, found.used, wait_for(store.blobs(&session))?));
        }
        for hash in HASHES {
            let found = wait_for(store.get_blob(&agent_core::BlobHash::parse(hash).unwrap()))?;
            parts.push(format!("{:?}", found.map(|bytes| (bytes.len(), bytes.first().copied()))));
        }
        Ok(parts.join("\n"))
    }

    /// What SQLite itself finds wrong with the database.
    pub(super) fn integrity(&self) -> Result<(), String> {
        super::integrity(self.dir)
    }

    fn store(&mut self) -> Result<Arc<dyn Store>, StoreError> {
        if self.store.is_none() {
            self.store = Some(Arc::new(SqliteStore::open(self.dir)?));
        }
        self.store.clone().ok_or(StoreError::Closed)
    }

    /// What is held of a session, taken when it is not.
    fn held(&mut self, name: &'static str) -> Result<(Arc<dyn Store>, &mut Held), StoreError> {
        let store = self.store()?;
        if !self.held.contains_key(name) {
            let lease = wait_for(store.lease(&id(name)))?;
            let found = wait_for(store.load(&id(name)))?;
            let (revision, last_seq) =
                found.map_or((Revision(0), 0), |found| (found.revision, found.last_seq));
            self.held.insert(name, Held { lease, revision, last_seq });
        }
        Ok((store, self.held.get_mut(name).ok_or(StoreError::Closed)?))
    }

    fn create(&mut self, name: &'static str) -> Result<(), StoreError> {
        let (store, held) = self.held(name)?;
        held.revision = wait_for(store.create(&held.lease, &meta(name), &Checkpoint::default()))?;
        Ok(())
    }

    fn journal(&mut self, name: &'static str) -> Result<(), StoreError> {
        let (store, held) = self.held(name)?;
        let record = JournalRecord::Response(PendingStep::new(Response::of(vec![])).unwrap());
        wait_for(store.journal(&held.lease, &[record], &[event(name, held.last_seq + 1)]))?;
        held.last_seq += 1;
        Ok(())
    }

    fn commit(&mut self, name: &'static str, terminal: Option<&TerminalReason>) -> Result<(), StoreError> {
        let (store, held) = self.held(name)?;
        let Revision(revision) = held.revision;
        let events = [event(name, held.last_seq + 1), event(name, held.last_seq + 2)];
        let entries = [user(&"many words ".repeat(300)), user(&format!("after revision {revision}"))];
        let usage = Usage { input: revision, ..Usage::default() };
        let commit = Commit {
            expect: held.revision,
            entries: &entries,
            checkpoint: &checkpoint(revision + 1),
            usage: Some(&usage),
            events: &events,
            consumed: &[],
            terminal,
            now_ms: i64::try_from(held.last_seq).unwrap(),
        };
        held.revision = wait_for(store.commit(&held.lease, commit))?.revision;
        held.last_seq += 2;
        Ok(())
    }

    fn delete(&mut self, name: &'static str) -> Result<(), StoreError> {
        let (store, _) = self.held(name)?;
        match self.held.remove(name) {
            Some(held) => wait_for(store.delete(held.lease)),
            None => Ok(()),
        }
    }

    /// It may fail, and then the log is as long as before.
    fn empty_log(&self) {
        let db = rusqlite::Connection::open(self.dir.join("sessions.db"));
        drop(
            db.and_then(|db| db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get::<_, i64>(0))),
        );
    }
}

fn checkpoint(turn: u64) -> Checkpoint {
    let stamp = |file: u64| {
        let stamp = ReadStamp { hash: format!("{turn:064x}"), len: turn, seen: ReadExtent::Full };
        (format!("src/file_{file}.rs"), stamp)
    };
    let reads = (0..turn % 3).map(stamp).collect();
    Checkpoint { last_turn: turn, slots: Slots { reads, ..Slots::default() }, ..Checkpoint::default() }
}

fn meta(name: &str) -> SessionMeta {
    let model = "test/model".to_owned();
    SessionMeta { id: id(name), created_ms: 0, model, system: vec![], static_blocks: 0, tools: vec![] }
}

fn id(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

fn user(text: &str) -> Entry {
    Entry::User(UserMessage::text(text).unwrap())
}

fn event(name: &str, seq: u64) -> Event {
    Event { seq: Some(seq), session: id(name), turn: None, step: None, body: EventBody::TurnStarted {} }
}

fn blob(byte: u8) -> Vec<u8> {
    vec![byte; 20_000]
}

/// The addresses of the blobs 1 and 2.
const HASHES: [&str; 2] = [
    "b473271113c7461a8fe3eadb8fb59f95ba13729e8d993d834162c6fdbddeac47",
    "0a2267e08d56ea6359eafc04020f45e2f5bbeae4e7be948b67e11f57f03f0df5",
];

/// A session as it was written out elsewhere.
const LINES: &str = concat!(
    r#"{"kind":"session","version":2,"revision":4,"last_input":3,"body":{"id":"e","created_ms":1,"model":"m","system":[],"tools":[]}}"#,
    "\n",
    r#"{"kind":"entry","n":0,"body":{"user":[{"text":"one"}]}}"#,
    "\n",
    r#"{"kind":"entry","n":1,"body":{"user":[{"text":"two"}]}}"#,
    "\n",
    r#"{"kind":"blob","hash":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","base64":"YWJj"}"#,
    "\n",
    r#"{"kind":"checkpoint","body":{"turn":{"a":1.0},"last_turn":2}}"#,
    "\n",
    r#"{"kind":"journal","n":0,"body":{"started":"c1"}}"#,
    "\n",
    r#"{"kind":"input","n":2,"body":{"message":{"message":[{"text":"more"}],"heard":"after"}}}"#,
    "\n",
    r#"{"kind":"used","n":3,"body":"req_1"}"#,
    "\n",
    r#"{"kind":"usage","n":3,"body":{"input":1,"output":2}}"#,
    "\n",
    r#"{"kind":"round","n":1,"body":{"turn":1,"from":0,"to":1,"text":"They talked."}}"#,
    "\n",
    r#"{"kind":"event","n":1,"body":{"seq":1,"session":"e","type":"turn.started","data":{}}}"#,
    "\n",
    r#"{"kind":"end","n":11}"#,
    "\n",
);
