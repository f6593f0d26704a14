//! What a store says of its sessions: the list, blobs, and what is left of one that is gone.

use agent_core::{BlobHash, Checkpoint, Commit, RawJson, Revision, TerminalReason};
use agent_store::{Lease, StoreError};

use super::parts::{event, id, meta, none, pending, refused, usage, user};
use super::{Subject, create, listed, of, picture, plain};

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
        open.revision = open.store.commit(&open.lease, commit).await.unwrap().revision;
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
