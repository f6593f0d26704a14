//! Who may write: one worker a session, and workers on many sessions at once.

use std::sync::Arc;
use std::thread;

use agent_core::{Checkpoint, Commit, RawJson, Revision};
use agent_store::{Lease, Store, StoreError};

use super::parts::{id, meta, none, pending, refused, user};
use super::{Open, Subject, begin, create, listed, of, picture, plain, wait_for};

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
    assert_eq!(store.commit(&next, commit).await.unwrap().revision, Revision(2));
}

/// What becomes of a worker, and how many attempts the next one is told of (requirement D5).
pub async fn attempts_at_an_open_turn_are_counted(subject: Subject) {
    let (open, over) = (Checkpoint { turn: Some(RawJson::empty_object()), last_turn: 1, ..none() }, none());
    let Open { mut store, id, mut lease, mut revision } = create(&subject, "tried").await;
    let steps = [
        ("nothing", 0),
        ("opens", 1),
        ("dies", 2),
        ("commits", 3),
        ("stops", 3),
        ("restarts", 4),
        ("is forgiven", 1),
        ("stops", 1),
        ("dies", 2),
        ("ends", 0),
        ("opens", 1),
    ];
    for (step, (what, expect)) in steps.into_iter().enumerate() {
        match what {
            "opens" | "commits" | "ends" => {
                let checkpoint = if what == "ends" { &over } else { &open };
                let commit = Commit { expect: revision, ..of(checkpoint) };
                revision = store.commit(&lease, commit).await.unwrap().revision;
            }
            "stops" => store.withdraw_attempt(&lease).await.unwrap(),
            "is forgiven" => store.reset_attempts(&id).await.unwrap(),
            _ => {}
        }
        drop(lease);
        if let Some(reopen) = subject.reopen.as_ref().filter(|_| what == "restarts") {
            store = reopen();
        }
        lease = store.lease(&id).await.unwrap();
        assert_eq!(lease.attempts(), expect, "step {step}: a worker {what}");
    }
    assert_eq!(store.meta(&id).await.unwrap(), Some(meta("tried")));
    store.delete(lease).await.unwrap();
    refused!(store.reset_attempts(&id), StoreError::Missing(_));
    assert_eq!(store.meta(&id).await.unwrap(), None);
    assert_eq!(begin(store, "tried").await.lease.attempts(), 0, "a new session of the name");
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

async fn hammer(store: Arc<dyn Store>, name: &str) {
    let mut open = begin(store, name).await;
    for n in 1..=HAMMERED {
        let stale = Commit { expect: Revision(n + 1), entries: &[user("no")], ..plain(&open) };
        refused!(open.store.commit(&open.lease, stale), StoreError::Stale { .. });
        open.store.journal(&open.lease, &[pending("c1")], &[]).await.unwrap();
        open.say("yes", n).await;
    }
}

const HAMMERED: u64 = 12;
