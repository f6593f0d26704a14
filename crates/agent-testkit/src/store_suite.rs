//! What every store must do, as cases that run over any of them (requirements D1 to D4, D6 and D8).
//!
//! ```
//! use std::sync::Arc;
//!
//! use agent_store::MemoryStore;
//! use agent_testkit::store_suite::Subject;
//!
//! agent_testkit::store_suite!(Subject::volatile(Arc::new(MemoryStore::new())));
//! # fn main() {}
//! ```
#![expect(clippy::unwrap_used, reason = "a case that cannot go on has failed, and says where")]

mod parts;

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use agent_core::{
    BlobHash, Checkpoint, Commit, CompactionState, EntryId, Event, EventBody, History, JournalRecord,
    RawJson, Revision, SessionId, SessionSummary, TerminalReason, ToolOutput, ToolResult, Usage,
};
use agent_store::{Lease, Store, StoreError};

use parts::{EMPTY, RAW, call, event, id, meta, none, pending, slots, step, summary, usage, user};

/// Makes one `#[test]` of every case; the expression gives a fresh [`Subject`](crate::store_suite::Subject) each time.
#[macro_export]
macro_rules! store_suite {
    ($subject:expr) => {
        $crate::store_suite! { @each $subject =>
            loads_the_bytes_that_were_written,
            a_commit_is_all_or_nothing,
            a_stale_revision_is_refused,
            events_are_numbered_without_a_gap,
            events_replay_from_any_number,
            a_session_has_one_worker,
            of_many_workers_one_gets_the_session,
            a_dropped_lease_is_free,
            a_lost_lease_cannot_write,
            the_journal_keeps_order_until_the_commit,
            a_boundary_waits_for_the_journaled_step,
            usage_is_kept_for_each_commit,
            sessions_are_listed_newest_first,
            the_list_shows_how_the_last_turn_ended,
            blobs_live_as_long_as_their_sessions,
            a_deleted_session_leaves_nothing,
            a_session_is_created_once,
            a_session_that_does_not_exist_is_said,
            sessions_do_not_wait_for_each_other,
            reopening_keeps_everything,
        }
    };
    (@each $subject:expr => $($case:ident),+ $(,)?) => {
        $(
            #[test]
            fn $case() {
                $crate::store_suite::wait_for($crate::store_suite::$case($subject));
            }
        )+
    };
}

/// A fresh store to run a case over.
pub struct Subject {
    store: Arc<dyn Store>,
    reopen: Option<Box<dyn Fn() -> Arc<dyn Store>>>,
}

impl Subject {
    /// A store that forgets everything with its process.
    pub fn volatile(store: Arc<dyn Store>) -> Self {
        Self { store, reopen: None }
    }

    /// A store that keeps everything; each call opens the same data. What the closure owns lives as long.
    pub fn durable(open: impl Fn() -> Arc<dyn Store> + 'static) -> Self {
        Self { store: open(), reopen: Some(Box::new(open)) }
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").field("store", &self.store).finish_non_exhaustive()
    }
}

/// Waits for a future on this thread, without any runtime: a store must not need one.
pub fn wait_for<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// A session, leased and at its newest revision.
struct Open {
    store: Arc<dyn Store>,
    id: SessionId,
    lease: Lease,
    revision: Revision,
}

macro_rules! refused {
    ($call:expr, $error:pat $(if $guard:expr)?) => {
        let answer = $call.await;
        assert!(matches!(&answer, Err($error) $(if $guard)?), "{answer:?}");
    };
}

/// Entries, journal and checkpoint come back byte for byte (requirements D2 and M5).
pub async fn loads_the_bytes_that_were_written(subject: Subject) {
    let mut open = create(&subject, "bytes").await;
    let entries = [user("Wie spät ist es? \u{1f570}"), step("c1"), summary(1)];
    let turn = RawJson::parse(RAW).unwrap();
    let checkpoint = Checkpoint {
        turn: Some(turn),
        last_turn: 3,
        slots: slots(),
        usage: usage(7),
        asked_ms: Some(41),
        compaction: CompactionState { failures: 2, after: 900 },
        turn_from: Some(EntryId::at(1)),
        active: Some(["look".to_owned()].into()),
    };
    let commit = Commit { entries: &entries, checkpoint: &checkpoint, ..plain(&open) };
    open.revision = open.store.commit(&open.lease, commit).await.unwrap();
    let found = open.store.load(&open.id).await.unwrap().unwrap();
    let stored = &found.entries;
    let written: Vec<String> = entries.iter().map(|entry| serde_json::to_string(entry).unwrap()).collect();
    assert_eq!(*stored, written);
    assert!(stored[1].contains(RAW), "{}", stored[1]);
    let (history, repairs) = History::load(&found.entries).unwrap();
    assert_eq!((history.entries(), repairs.len()), (&entries[..], 0));
    assert_eq!(found.meta, meta("bytes"));
    assert_eq!(found.checkpoint, checkpoint);
    assert_eq!((found.revision, open.revision, found.last_seq), (Revision(1), Revision(1), 0));
}

/// A commit with one bad part leaves no other part (requirement D1).
pub async fn a_commit_is_all_or_nothing(subject: Subject) {
    let mut open = create(&subject, "atomic").await;
    open.say("first", 1).await;
    let before = picture(&open.store, &open.id).await;
    let (entries, checkpoint) = ([user("second")], Checkpoint { last_turn: 9, ..Checkpoint::default() });
    let events = [event("atomic", 2), event("atomic", 4)];
    let commit = Commit {
        entries: &entries,
        checkpoint: &checkpoint,
        usage: Some(&usage(1)),
        events: &events,
        terminal: Some(&TerminalReason::Done),
        ..plain(&open)
    };
    refused!(open.store.commit(&open.lease, commit), StoreError::EventGap { expected: 3, found: 4, .. });
    let records = [pending("c1")];
    let journaled = open.store.journal(&open.lease, &records, &events);
    refused!(journaled, StoreError::EventGap { expected: 3, found: 4, .. });
    assert_eq!(picture(&open.store, &open.id).await, before);
}

/// A commit names the revision it builds on (requirement D3).
pub async fn a_stale_revision_is_refused(subject: Subject) {
    let mut open = create(&subject, "stale").await;
    open.say("one", 1).await;
    open.say("two", 2).await;
    let before = picture(&open.store, &open.id).await;
    for wrong in [0, 1, 3] {
        let commit = Commit { expect: Revision(wrong), entries: &[user("no")], ..plain(&open) };
        let call = open.store.commit(&open.lease, commit);
        refused!(call, StoreError::Stale { found: Revision(2), expected, .. } if expected.0 == wrong);
    }
    assert_eq!(picture(&open.store, &open.id).await, before);
}

/// Durable events of the session follow the stored ones; nothing else is stored (requirement L9).
pub async fn events_are_numbered_without_a_gap(subject: Subject) {
    let mut open = create(&subject, "gap").await;
    open.say("one", 1).await;
    let before = picture(&open.store, &open.id).await;
    for numbers in [&[0][..], &[1], &[3], &[2, 2], &[2, 4], &[3, 2]] {
        let events: Vec<Event> = numbers.iter().map(|n| event("gap", *n)).collect();
        let commit = Commit { events: &events, ..plain(&open) };
        refused!(open.store.commit(&open.lease, commit), StoreError::EventGap { .. });
        refused!(open.store.journal(&open.lease, &[], &events), StoreError::EventGap { .. });
    }
    let delta = EventBody::TextDelta { attempt: 0, index: 0, text: "x".into() };
    for live in [Event { seq: None, ..event("gap", 2) }, Event { body: delta, ..event("gap", 2) }] {
        let events = [live];
        let commit = Commit { events: &events, ..plain(&open) };
        refused!(open.store.commit(&open.lease, commit), StoreError::LiveEvent(_));
        refused!(open.store.journal(&open.lease, &[], &events), StoreError::LiveEvent(_));
    }
    let events = [event("other", 2)];
    refused!(open.store.journal(&open.lease, &[], &events), StoreError::OtherSession { .. });
    assert_eq!(picture(&open.store, &open.id).await, before);
}

/// A watcher that saw `n` events asks for those after `n`.
pub async fn events_replay_from_any_number(subject: Subject) {
    let mut open = create(&subject, "replay").await;
    open.say("one", 1).await;
    let journaled = [event("replay", 2), event("replay", 3)];
    open.store.journal(&open.lease, &[], &journaled).await.unwrap();
    assert_eq!(open.store.load(&open.id).await.unwrap().unwrap().last_seq, 3);
    open.say("two", 4).await;
    let all = open.store.events(&open.id, 0).await.unwrap();
    assert_eq!(all, (1..=4).map(|n| event("replay", n)).collect::<Vec<_>>());
    for after in 0..6 {
        let skipped = usize::try_from(after).unwrap().min(all.len());
        assert_eq!(open.store.events(&open.id, after).await.unwrap(), all[skipped..], "after {after}");
    }
    assert_eq!(open.store.events(&open.id, u64::MAX).await.unwrap(), []);
}

/// While a session is held it can be read, and not taken (case D02).
pub async fn a_session_has_one_worker(subject: Subject) {
    let mut open = create(&subject, "mine").await;
    open.say("hello", 1).await;
    let again = open.store.lease(&open.id);
    let own = std::process::id();
    refused!(again, StoreError::Busy { session, pid } if session == &open.id && *pid == Some(own));
    assert!(open.store.load(&open.id).await.unwrap().is_some());
    let other = create(&subject, "yours").await;
    assert_eq!(other.lease.session(), &id("yours"));
    open.say("still mine", 2).await;
}

/// A race for a session has one winner.
pub async fn of_many_workers_one_gets_the_session(subject: Subject) {
    let session = id("race");
    let race = |_| {
        let (store, session) = (Arc::clone(&subject.store), session.clone());
        thread::spawn(move || wait_for(store.lease(&session)))
    };
    let racers: Vec<_> = (0..8).map(race).collect();
    let answers: Vec<_> = racers.into_iter().map(|racer| racer.join().unwrap()).collect();
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1, "{answers:?}");
    let lost = |answer: &&Result<Lease, StoreError>| matches!(answer, Err(StoreError::Busy { .. }));
    assert_eq!(answers.iter().filter(lost).count(), 7, "{answers:?}");
}

/// A lease ends when it is dropped, and the next one is a later one.
pub async fn a_dropped_lease_is_free(subject: Subject) {
    let first = subject.store.lease(&id("free")).await.unwrap();
    let epoch = first.epoch();
    drop(first);
    let second = subject.store.lease(&id("free")).await.unwrap();
    assert!(second.epoch() > epoch, "{} after {epoch}", second.epoch());
}

/// Whoever thinks he still has a session that another one took can write nothing (requirement D3).
pub async fn a_lost_lease_cannot_write(subject: Subject) {
    let mut open = create(&subject, "zombie").await;
    open.say("hello", 1).await;
    let before = picture(&open.store, &open.id).await;
    let held = open.lease.epoch();
    // The lock was lost (a file removed by hand, say), the worker does not know it.
    let forged = || Lease::new(id("zombie"), held, ());
    let zombie = forged();
    let Open { store, lease, revision, id } = open;
    drop(lease);
    let next = store.lease(&id).await.unwrap();
    let checkpoint = Checkpoint::default();
    let commit = Commit { expect: revision, entries: &[user("braains")], ..of(&checkpoint) };
    refused!(store.commit(&zombie, commit), StoreError::LeaseLost { .. });
    refused!(store.journal(&zombie, &[pending("c1")], &[]), StoreError::LeaseLost { .. });
    refused!(store.create(&zombie, &meta("zombie"), &checkpoint), StoreError::LeaseLost { .. });
    refused!(store.delete(forged()), StoreError::LeaseLost { .. });
    assert_eq!(picture(&store, &id).await, before);
    assert_eq!(store.commit(&next, commit).await.unwrap(), Revision(2));
}

/// What was journaled is there in order until the step is committed (requirement D4).
pub async fn the_journal_keeps_order_until_the_commit(subject: Subject) {
    let mut open = create(&subject, "journal").await;
    let result = ToolResult { call: call("c1"), output: ToolOutput::Json(RawJson::parse(RAW).unwrap()) };
    let records = [
        pending("c1"),
        JournalRecord::Active(["look", "put"].map(str::to_owned).into()),
        JournalRecord::Started(call("c1")),
        JournalRecord::Finished { result, slots: Some(slots()) },
        JournalRecord::Started(call("c2")),
    ];
    open.store.journal(&open.lease, &records[..2], &[event("journal", 1)]).await.unwrap();
    for record in &records[2..] {
        open.store.journal(&open.lease, std::slice::from_ref(record), &[]).await.unwrap();
    }
    let found = open.store.load(&open.id).await.unwrap().unwrap();
    assert_eq!(found.journal, records);
    assert_eq!((found.revision, found.last_seq, found.entries.len()), (Revision(0), 1, 0));
    open.say("done", 2).await;
    assert_eq!(open.store.load(&open.id).await.unwrap().unwrap().journal, []);
    open.store.journal(&open.lease, &records[..1], &[]).await.unwrap();
    assert_eq!(open.store.load(&open.id).await.unwrap().unwrap().journal, records[..1]);
}

/// Nothing is rewritten between a call and its result.
pub async fn a_boundary_waits_for_the_journaled_step(subject: Subject) {
    let mut open = create(&subject, "boundary").await;
    open.say("hello", 1).await;
    open.store.journal(&open.lease, &[pending("c1")], &[]).await.unwrap();
    let before = picture(&open.store, &open.id).await;
    for entries in [vec![summary(0)], vec![step("c1"), summary(0)]] {
        let commit = Commit { entries: &entries, ..plain(&open) };
        refused!(open.store.commit(&open.lease, commit), StoreError::Pending(_));
    }
    assert_eq!(picture(&open.store, &open.id).await, before);
    let commit = Commit { entries: &[step("c1")], ..plain(&open) };
    open.revision = open.store.commit(&open.lease, commit).await.unwrap();
    // A call that started without a response in the journal is no open step.
    open.store.journal(&open.lease, &[JournalRecord::Started(call("c1"))], &[]).await.unwrap();
    let commit = Commit { entries: &[summary(0)], ..plain(&open) };
    assert_eq!(open.store.commit(&open.lease, commit).await.unwrap(), Revision(3));
}

/// Each model call's usage stands with the commit that recorded it (requirement D1).
pub async fn usage_is_kept_for_each_commit(subject: Subject) {
    let mut open = create(&subject, "usage").await;
    let raw = Usage { raw: Some(RawJson::parse(RAW).unwrap()), ..usage(5) };
    for spent in [Some(&raw), None, Some(&usage(6))] {
        let commit = Commit { usage: spent, ..plain(&open) };
        open.revision = open.store.commit(&open.lease, commit).await.unwrap();
    }
    let found = open.store.usage(&open.id).await.unwrap();
    assert_eq!(found, [(Revision(1), raw), (Revision(3), usage(6))]);
}

async fn listed(store: &Arc<dyn Store>) -> Vec<SessionSummary> {
    store.sessions().await.unwrap().into_iter().collect::<Result<_, _>>().unwrap()
}

/// The list is in order of the last write and shows what a person chooses by.
pub async fn sessions_are_listed_newest_first(subject: Subject) {
    assert!(subject.store.sessions().await.unwrap().is_empty());
    let (checkpoint, entries) = (Checkpoint { last_turn: 2, usage: usage(9), ..none() }, [user("hi")]);
    for (name, now_ms) in [("a", 50), ("b", 70), ("d", 60), ("c", 60)] {
        let open = create(&subject, name).await;
        let commit = Commit { entries: &entries, checkpoint: &checkpoint, now_ms, ..plain(&open) };
        open.store.commit(&open.lease, commit).await.unwrap();
    }
    let list = listed(&subject.store).await;
    let names: Vec<&str> = list.iter().map(|line| line.id.as_str()).collect();
    assert_eq!(names, ["b", "c", "d", "a"]);
    let first = &list[0];
    assert_eq!((first.created_ms, first.updated_ms, first.entries, first.turns), (40, 70, 1, 2));
    assert_eq!((first.model.as_str(), &first.usage, &first.terminal), ("test/model", &usage(9), &None));
}

/// A reason stays until a turn opens again (requirement L6).
pub async fn the_list_shows_how_the_last_turn_ended(subject: Subject) {
    let mut open = create(&subject, "ends").await;
    let turn = Some(RawJson::empty_object());
    let (closed, running) = (none(), Checkpoint { turn, ..none() });
    let stopped = TerminalReason::Stopped("step_count".into());
    let parked = TerminalReason::Parked(agent_core::ParkKind::Approval);
    let table = [
        (&running, None, None),
        (&closed, Some(&stopped), Some(&stopped)),
        (&closed, None, Some(&stopped)),
        (&running, None, None),
        (&running, Some(&parked), Some(&parked)),
        (&running, None, None),
        (&closed, Some(&TerminalReason::Done), Some(&TerminalReason::Done)),
    ];
    for (step, (checkpoint, terminal, shown)) in table.into_iter().enumerate() {
        let commit = Commit { checkpoint, terminal, ..plain(&open) };
        open.revision = open.store.commit(&open.lease, commit).await.unwrap();
        let list = listed(&open.store).await;
        assert_eq!(list[0].terminal.as_ref(), shown, "step {step}");
    }
}

/// Bytes are kept once, and until the last session that put them is gone (requirement D6).
pub async fn blobs_live_as_long_as_their_sessions(subject: Subject) {
    let (one, two) = (create(&subject, "one").await, create(&subject, "two").await);
    let store = &subject.store;
    let (shared, own) = (b"\x00\xff shared".as_slice(), b"".as_slice());
    let both = store.put_blob(&one.id, shared).await.unwrap();
    assert_eq!(store.put_blob(&one.id, shared).await.unwrap(), both);
    assert_eq!(store.put_blob(&two.id, shared).await.unwrap(), both);
    let single = store.put_blob(&one.id, own).await.unwrap();
    let of_nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(single.as_str(), of_nothing);
    assert_eq!(store.get_blob(&both).await.unwrap().as_deref(), Some(shared));
    assert_eq!(store.get_blob(&single).await.unwrap().as_deref(), Some(own));
    assert_eq!(store.get_blob(&BlobHash::parse(&"0".repeat(64)).unwrap()).await.unwrap(), None);
    store.delete(one.lease).await.unwrap();
    assert_eq!(store.get_blob(&single).await.unwrap(), None);
    assert_eq!(store.get_blob(&both).await.unwrap().as_deref(), Some(shared));
    store.delete(two.lease).await.unwrap();
    assert_eq!(store.get_blob(&both).await.unwrap(), None);
}

/// A name that is used again begins anew, and old workers do not get in (requirement D7).
pub async fn a_deleted_session_leaves_nothing(subject: Subject) {
    let mut open = create(&subject, "again").await;
    open.say("hello", 1).await;
    open.store.journal(&open.lease, &[pending("c1")], &[event("again", 2)]).await.unwrap();
    let zombie = Lease::new(id("again"), open.lease.epoch(), ());
    open.store.delete(open.lease).await.unwrap();
    assert!(subject.store.load(&id("again")).await.unwrap().is_none());
    assert!(subject.store.sessions().await.unwrap().is_empty());
    let fresh = create(&subject, "again").await;
    let found = fresh.store.load(&fresh.id).await.unwrap().unwrap();
    let kept = (found.revision, found.entries.len(), found.journal.len(), found.last_seq);
    assert_eq!(kept, (Revision(0), 0, 0, 0));
    assert_eq!(fresh.store.events(&fresh.id, 0).await.unwrap(), []);
    refused!(fresh.store.commit(&zombie, of(&none())), StoreError::LeaseLost { .. });
}

/// A session is not begun twice, nor under the lease of another one.
pub async fn a_session_is_created_once(subject: Subject) {
    let mut open = create(&subject, "once").await;
    open.say("hello", 1).await;
    let before = picture(&open.store, &open.id).await;
    refused!(open.store.create(&open.lease, &meta("once"), &none()), StoreError::Exists(_));
    refused!(open.store.create(&open.lease, &meta("twice"), &none()), StoreError::OtherSession { .. });
    assert_eq!(picture(&open.store, &open.id).await, before);
}

/// A wrong name is an error that says so; only `load` answers `None`.
pub async fn a_session_that_does_not_exist_is_said(subject: Subject) {
    let (store, nobody) = (&subject.store, id("nobody"));
    assert!(store.load(&nobody).await.unwrap().is_none());
    let lease = store.lease(&nobody).await.unwrap();
    refused!(store.commit(&lease, of(&none())), StoreError::Missing(_));
    refused!(store.journal(&lease, &[], &[]), StoreError::Missing(_));
    refused!(store.events(&nobody, 0), StoreError::Missing(_));
    refused!(store.usage(&nobody), StoreError::Missing(_));
    refused!(store.put_blob(&nobody, b"x"), StoreError::Missing(_));
    refused!(store.delete(lease), StoreError::Missing(_));
    assert!(store.sessions().await.unwrap().is_empty());
}

/// Workers on many sessions at once: each gets its own answers, refusals among them.
pub async fn sessions_do_not_wait_for_each_other(subject: Subject) {
    let work = |n: u64| {
        let store = Arc::clone(&subject.store);
        thread::spawn(move || wait_for(hammer(store, &format!("worker-{n}"))))
    };
    let workers: Vec<_> = (0..8).map(work).collect();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    for line in listed(&subject.store).await {
        let found = subject.store.load(&line.id).await.unwrap().unwrap();
        let expect = (Revision(HAMMERED), HAMMERED, usize::try_from(HAMMERED).unwrap());
        assert_eq!((found.revision, found.last_seq, found.entries.len()), expect, "{}", line.id);
    }
}

/// What was answered is there for the next process (requirement D5).
pub async fn reopening_keeps_everything(subject: Subject) {
    let mut open = create(&subject, "kept").await;
    let Subject { store, reopen } = subject;
    let Some(reopen) = reopen else { return };
    open.say("one", 1).await;
    open.say("two", 2).await;
    let hash = store.put_blob(&open.id, b"big").await.unwrap();
    store.journal(&open.lease, &[pending("c1")], &[event("kept", 3)]).await.unwrap();
    let before = picture(&store, &open.id).await;
    let epoch = open.lease.epoch();
    drop((store, open));
    let store = reopen();
    assert_eq!(picture(&store, &id("kept")).await, before);
    assert_eq!(store.get_blob(&hash).await.unwrap().as_deref(), Some(b"big".as_slice()));
    assert!(store.lease(&id("kept")).await.unwrap().epoch() > epoch);
}

impl Open {
    /// Commits a message together with the event of the given number.
    async fn say(&mut self, text: &str, seq: u64) {
        let (entries, events) = ([user(text)], [event(self.id.as_str(), seq)]);
        let commit = Commit { entries: &entries, events: &events, ..plain(self) };
        self.revision = self.store.commit(&self.lease, commit).await.unwrap();
    }
}

/// Everything that can be read of a session, to compare.
async fn picture(store: &Arc<dyn Store>, id: &SessionId) -> String {
    let session = store.load(id).await.unwrap();
    let events = store.events(id, 0).await.unwrap();
    let usage = store.usage(id).await.unwrap();
    format!("{session:#?}\n{events:#?}\n{usage:#?}\n{:#?}", store.sessions().await.unwrap())
}

async fn create(subject: &Subject, name: &str) -> Open {
    begin(Arc::clone(&subject.store), name).await
}

async fn begin(store: Arc<dyn Store>, name: &str) -> Open {
    let lease = store.lease(&id(name)).await.unwrap();
    let revision = store.create(&lease, &meta(name), &none()).await.unwrap();
    assert_eq!(revision, Revision(0));
    Open { store, id: id(name), lease, revision }
}

async fn hammer(store: Arc<dyn Store>, name: &str) {
    let mut open = begin(store, name).await;
    for n in 1..=HAMMERED {
        let stale = Commit { expect: Revision(n + 1), entries: &[user("no")], ..plain(&open) };
        refused!(open.store.commit(&open.lease, stale), StoreError::Stale { .. });
        open.store.journal(&open.lease, &[pending("c1")], &[]).await.unwrap();
        open.say("yes", n).await;
    }
}

/// A commit of nothing on the newest revision.
fn plain(open: &Open) -> Commit<'_> {
    Commit { expect: open.revision, ..of(&EMPTY) }
}

fn of(checkpoint: &Checkpoint) -> Commit<'_> {
    let expect = Revision(0);
    Commit { expect, entries: &[], checkpoint, usage: None, events: &[], terminal: None, now_ms: 41 }
}

const HAMMERED: u64 = 12;
