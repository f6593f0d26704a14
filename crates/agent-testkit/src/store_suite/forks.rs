//! A session begun as a copy of another one's beginning (requirement D7).

use agent_core::{
    Checkpoint, Commit, EntryId, RawJson, ReadExtent, ReadStamp, Revision, RoundSummary, SessionId,
    SessionMeta, Text,
};
use agent_store::{Fork, Lease, StoreError};

use super::parts::{event, id, meta, none, pending, refused, slots, step, summary, usage, user};
use super::{Open, Subject, create, listed, plain};

/// The very bytes up to one entry, the blobs and the state that was given; nothing else of the source, which stays as it was.
pub async fn a_fork_is_a_copy_of_a_beginning(subject: Subject) {
    let mut source = create(&subject, "source").await;
    fill(&mut source).await;
    let blob = source.store.put_blob(&source.id, b"large").await.unwrap();
    source.store.journal(&source.lease, &[pending("open")], &[event("source", 3)]).await.unwrap();
    let before = picture_of(&source).await;
    let all = source.store.load(&source.id).await.unwrap().unwrap().entries;

    for (name, count) in [("none", 0), ("two", 2), ("all", 4)] {
        let stamp = ReadStamp { hash: "0".repeat(64), len: 6, seen: ReadExtent::Full };
        let mut kept = slots();
        kept.reads.insert("a.rs".to_owned(), stamp);
        let state = Checkpoint { slots: kept, usage: usage(0), last_turn: 7, ..none() };
        let lease = source.store.lease(&id(name)).await.unwrap();
        let events = [event(name, 1)];
        let fork = Fork { from: &source.id, entries: count, checkpoint: &state, events: &events, now_ms: 90 };
        assert_eq!(source.store.fork(&lease, fork).await.unwrap(), Revision(0), "{name}");
        let found = source.store.load(&id(name)).await.unwrap().unwrap();
        assert_eq!(found.entries, all[..usize::try_from(count).unwrap()], "{name}");
        assert_eq!(found.meta, SessionMeta { created_ms: 90, ..meta(name) }, "{name}");
        assert_eq!((found.checkpoint, found.journal.len(), found.inputs.len()), (state, 0, 0), "{name}");
        assert_eq!((found.revision, found.last_seq), (Revision(0), 1), "{name}");
        assert_eq!(source.store.events(&id(name), 0).await.unwrap(), events, "{name}");
        assert_eq!(source.store.usage(&id(name)).await.unwrap(), [], "{name}");
        assert_eq!(source.store.blobs(&id(name)).await.unwrap(), std::slice::from_ref(&blob), "{name}");
        let line = listed(&source.store).await.into_iter().find(|line| line.id == id(name)).unwrap();
        assert_eq!((line.entries, line.turns, line.terminal, line.updated_ms), (count, 7, None, 90));
    }
    assert_eq!(picture_of(&source).await, before, "the source stays as it was");
}

/// What was said of turns goes along where all their entries do, and where no later turn will have its number.
pub async fn a_fork_keeps_what_was_said_of_its_turns(subject: Subject) {
    let mut source = create(&subject, "source").await;
    fill(&mut source).await;
    let round = |turn: u64, to: usize| RoundSummary {
        since: None,
        model: None,
        turn,
        from: EntryId::at(0),
        to: EntryId::at(to),
        text: Text::new("They talked.").unwrap(),
        usage: usage(turn),
    };
    let all = [round(1, 1), round(2, 3), round(5, 4)];
    for said in &all {
        source.store.put_round(&source.id, said).await.unwrap();
    }
    for (name, entries, last_turn, expect) in [
        ("a", 0, 9, 0),
        ("b", 1, 9, 1),
        ("c", 2, 9, 1),
        ("d", 3, 9, 2),
        ("e", 4, 9, 3),
        ("f", 4, 2, 2),
        ("g", 4, 0, 0),
    ] {
        let lease = source.store.lease(&id(name)).await.unwrap();
        let checkpoint = Checkpoint { last_turn, ..none() };
        let fork = Fork { from: &source.id, entries, checkpoint: &checkpoint, events: &[], now_ms: 90 };
        source.store.fork(&lease, fork).await.unwrap();
        assert_eq!(source.store.rounds(&id(name)).await.unwrap(), all[..expect], "{name}");
    }
    assert_eq!(source.store.rounds(&source.id).await.unwrap(), all);
}

/// Of many workers that fork to one name, one has it; the others are told that it is taken, and change nothing.
pub async fn of_many_forks_to_one_name_one_wins(subject: Subject) {
    let mut source = create(&subject, "source").await;
    fill(&mut source).await;
    let one = |worker: u64| {
        let (store, from) = (source.store.clone(), source.id.clone());
        move || {
            super::wait_for(async {
                let lease = store.lease(&id("fork")).await?;
                let checkpoint = Checkpoint { last_turn: worker, ..none() };
                let fork = Fork { from: &from, entries: 4, checkpoint: &checkpoint, events: &[], now_ms: 90 };
                store.fork(&lease, fork).await.map(|_| worker)
            })
        }
    };
    let workers: Vec<_> = (1..5).map(|worker| std::thread::spawn(one(worker))).collect();
    let ends: Vec<_> = workers.into_iter().map(|worker| worker.join().unwrap()).collect();
    let winners: Vec<u64> = ends.iter().filter_map(|end| end.as_ref().ok().copied()).collect();
    let are_told =
        ends.iter().all(|end| matches!(end, Ok(_) | Err(StoreError::Busy { .. } | StoreError::Exists(_))));
    assert!(winners.len() == 1 && are_told, "{ends:?}");
    let found = source.store.load(&id("fork")).await.unwrap().unwrap();
    assert_eq!((found.checkpoint.last_turn, found.entries.len()), (winners[0], 4));
}

/// Both go on, and what they keep outlives the other.
pub async fn a_forked_session_goes_its_own_way(subject: Subject) {
    let mut source = create(&subject, "source").await;
    fill(&mut source).await;
    let blob = source.store.put_blob(&source.id, b"large").await.unwrap();
    let lease = source.store.lease(&id("fork")).await.unwrap();
    let fork = Fork { from: &source.id, entries: 2, checkpoint: &none(), events: &[], now_ms: 90 };
    let revision = source.store.fork(&lease, fork).await.unwrap();
    let mut fork = Open { store: source.store.clone(), id: id("fork"), lease, revision };
    fork.say("another way", 1).await;
    source.say("the old way", 3).await;
    let entries = fork.store.load(&fork.id).await.unwrap().unwrap().entries;
    assert!(entries.len() == 3 && entries[2].contains("another way"), "{entries:?}");
    let before = picture_of(&fork).await;
    fork.store.delete(source.lease).await.unwrap();
    assert_eq!(picture_of(&fork).await, before, "it does not need its source");
    assert_eq!(fork.store.get_blob(&blob).await.unwrap().as_deref(), Some(b"large".as_slice()));
    fork.store.delete(fork.lease).await.unwrap();
    assert_eq!(fork.store.get_blob(&blob).await.unwrap(), None);
}

/// Nothing is there after a refusal.
pub async fn a_fork_is_refused_as_a_whole(subject: Subject) {
    let mut source = create(&subject, "source").await;
    fill(&mut source).await;
    let other = create(&subject, "other").await;
    let before = picture_of(&source).await;
    let (store, state) = (&source.store, none());
    let fork = |from| Fork { from, entries: 1, checkpoint: &state, events: &[], now_ms: 90 };
    let lease = store.lease(&id("fork")).await.unwrap();
    let nobody: SessionId = id("nobody");
    refused!(store.fork(&lease, fork(&nobody)), StoreError::Missing(_));
    refused!(store.fork(&other.lease, fork(&source.id)), StoreError::Exists(_));
    let beyond = Fork { entries: 5, ..fork(&source.id) };
    refused!(store.fork(&lease, beyond), StoreError::NoEntry { head: 4, entries: 5, .. });
    let gap = [event("fork", 2)];
    refused!(store.fork(&lease, Fork { events: &gap, ..fork(&source.id) }), StoreError::EventGap { .. });
    let zombie = Lease::new(id("fork"), lease.epoch() - 1, ());
    refused!(store.fork(&zombie, fork(&source.id)), StoreError::LeaseLost { .. });
    refused!(store.blobs(&id("fork")), StoreError::Missing(_));
    assert!(store.load(&id("fork")).await.unwrap().is_none());
    assert_eq!(picture_of(&source).await, before);
    store.fork(&lease, fork(&source.id)).await.unwrap();
}

/// A conversation with a boundary, and an open turn.
async fn fill(open: &mut Open) {
    open.say("one", 1).await;
    let open_turn = Checkpoint { turn: Some(RawJson::empty_object()), usage: usage(4), ..none() };
    let (entries, events) = ([step("c1"), summary(1), user("two")], [event(open.id.as_str(), 2)]);
    let commit = Commit { entries: &entries, events: &events, checkpoint: &open_turn, ..plain(open) };
    open.revision = open.store.commit(&open.lease, commit).await.unwrap().revision;
}

/// What can be read of one session, to compare.
async fn picture_of(open: &Open) -> String {
    let found = open.store.load(&open.id).await.unwrap();
    let events = open.store.events(&open.id, 0).await.unwrap();
    let blobs = open.store.blobs(&open.id).await.unwrap();
    format!("{found:#?}\n{events:#?}\n{blobs:?}\n{:?}", open.store.usage(&open.id).await.unwrap())
}
