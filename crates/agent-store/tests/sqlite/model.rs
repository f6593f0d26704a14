//! The store on SQLite answers whatever is asked of it, in any order, as the store in memory does.

use std::path::Path;
use std::sync::Arc;

use agent_core::{
    Checkpoint, Commit, Entry, EntryId, Event, Revision, Rewrite, SessionId, TerminalReason, Text, Usage,
};
use agent_store::{Lease, MemoryStore, Store, StoreError};
use agent_testkit::store_suite::wait_for;
use proptest::prelude::*;

use super::{event, having_read, id, meta, open, picture, response, user};

/// One thing asked of a store. Wrong ones are asked too.
#[derive(Debug, Clone)]
enum Ask {
    Lease(usize),
    Drop(usize),
    Create(usize),
    Commit { session: usize, entries: usize, boundary: bool, stale: i8, gap: i8, ends: bool },
    Journal { session: usize, records: usize, gap: i8 },
    Blob { session: usize, byte: u8 },
    Delete(usize),
    Reopen,
}

fn ask() -> impl Strategy<Value = Ask> {
    let session = 0usize..SESSIONS;
    let mostly_right = || prop_oneof![8 => Just(0i8), 1 => Just(1i8), 1 => Just(-1i8)];
    let commit = (session.clone(), 0usize..3, any::<bool>(), mostly_right(), mostly_right(), any::<bool>());
    prop_oneof![
        3 => session.clone().prop_map(Ask::Lease),
        1 => session.clone().prop_map(Ask::Drop),
        3 => session.clone().prop_map(Ask::Create),
        8 => commit.prop_map(|(session, entries, boundary, stale, gap, ends)| {
            Ask::Commit { session, entries, boundary, stale, gap, ends }
        }),
        4 => (session.clone(), 0usize..3, mostly_right())
            .prop_map(|(session, records, gap)| Ask::Journal { session, records, gap }),
        1 => (session.clone(), 0u8..2).prop_map(|(session, byte)| Ask::Blob { session, byte }),
        1 => session.prop_map(Ask::Delete),
        1 => Just(Ask::Reopen),
    ]
}

/// A store with the leases taken from it.
struct Side {
    store: Arc<dyn Store>,
    leases: [Option<Lease>; SESSIONS],
    now_ms: i64,
}

impl Side {
    fn new(store: Arc<dyn Store>) -> Self {
        Self { store, leases: [const { None }; SESSIONS], now_ms: 0 }
    }

    /// The answer as text; a store without the lease it needs is not asked.
    fn ask(&mut self, ask: &Ask) -> String {
        self.now_ms += 1;
        let store = Arc::clone(&self.store);
        match ask {
            Ask::Lease(session) => {
                let answer = wait_for(store.lease(&name(*session)));
                let text = show(answer.as_ref().map(Lease::epoch));
                if let Ok(lease) = answer {
                    self.leases[*session] = Some(lease);
                }
                text
            }
            Ask::Drop(session) => format!("{}", self.leases[*session].take().is_some()),
            Ask::Delete(session) => {
                let Some(lease) = self.leases[*session].take() else { return String::new() };
                show(wait_for(store.delete(lease)).as_ref())
            }
            Ask::Blob { session, byte } => {
                let hash = wait_for(store.put_blob(&name(*session), &[*byte]));
                let back = hash.as_ref().ok().map(|hash| wait_for(store.get_blob(hash)).unwrap());
                format!("{} {back:?}", show(hash.as_ref()))
            }
            Ask::Create(session) => {
                let Some(lease) = &self.leases[*session] else { return String::new() };
                let meta = meta(name(*session).as_str());
                show(wait_for(store.create(lease, &meta, &Checkpoint::default())).as_ref())
            }
            Ask::Commit { session, .. } | Ask::Journal { session, .. } => {
                let Some(lease) = &self.leases[*session] else { return String::new() };
                self.write(lease, ask)
            }
            Ask::Reopen => String::new(),
        }
    }

    fn write(&self, lease: &Lease, ask: &Ask) -> String {
        let found = wait_for(self.store.load(lease.session())).unwrap();
        let (revision, last_seq) = found.map_or((0, 0), |found| (found.revision.0, found.last_seq));
        let events = |gap: i8| -> Vec<Event> {
            let next = last_seq.saturating_add_signed(1 + i64::from(gap));
            vec![event(lease.session(), next)]
        };
        match ask {
            Ask::Commit { entries, boundary, stale, gap, ends, .. } => {
                let mut entries: Vec<Entry> = (0..*entries).map(|n| user(&format!("words {n}"))).collect();
                let text = Text::new("short").unwrap();
                let kept_from = EntryId::at(0);
                let summary = Rewrite::Summary { text, kept_from, strip_reasoning: true };
                entries.extend(boundary.then_some(Entry::Boundary(summary)));
                let usage = Usage { input: 1, ..Usage::default() };
                let read = (0..revision % 5).map(|file| (file, revision / 2));
                let state = having_read(read);
                let commit = Commit {
                    expect: Revision(revision.saturating_add_signed(i64::from(*stale))),
                    entries: &entries,
                    checkpoint: &Checkpoint { last_turn: last_seq, ..state },
                    usage: ends.then_some(&usage),
                    events: &events(*gap),
                    consumed: &[],
                    terminal: ends.then_some(&TerminalReason::Done),
                    now_ms: self.now_ms,
                };
                show(wait_for(self.store.commit(lease, commit)).as_ref())
            }
            Ask::Journal { records, gap, .. } => {
                let records = vec![response(); *records];
                show(wait_for(self.store.journal(lease, &records, &events(*gap))).as_ref())
            }
            Ask::Lease(_)
            | Ask::Drop(_)
            | Ask::Create(_)
            | Ask::Blob { .. }
            | Ask::Delete(_)
            | Ask::Reopen => {
                unreachable!("only writes come here")
            }
        }
    }

    fn picture(&self) -> Vec<String> {
        (0..SESSIONS).map(|session| picture(&self.store, &name(session))).collect()
    }
}

fn check(dir: &Path, asks: &[Ask]) {
    let mut model = Side::new(Arc::new(MemoryStore::new()));
    let mut real = Side::new(open(dir));
    for (n, ask) in asks.iter().enumerate() {
        if matches!(ask, Ask::Reopen) {
            let now_ms = model.now_ms;
            model = Side { now_ms, ..Side::new(model.store) };
            drop(real);
            real = Side { now_ms, ..Side::new(open(dir)) };
        }
        assert_eq!(real.ask(ask), model.ask(ask), "answer {n} to {ask:?}");
        assert_eq!(real.picture(), model.picture(), "after {n}, {ask:?}");
    }
}

fn show<T: std::fmt::Debug>(answer: Result<T, &StoreError>) -> String {
    answer.map_or_else(|error| format!("refused: {error}"), |value| format!("{value:?}"))
}

fn name(session: usize) -> SessionId {
    id(["one", "two"][session])
}

const SESSIONS: usize = 2;

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sqlite_answers_as_memory_does(asks in proptest::collection::vec(ask(), 1..40)) {
        let dir = tempfile::tempdir().unwrap();
        check(dir.path(), &asks);
    }
}
