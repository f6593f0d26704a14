//! A session created with all it has (requirement D7).

use std::collections::BTreeMap;

use agent_core::{
    Checkpoint, EntryId, Input, InputId, RawJson, ReadExtent, ReadStamp, Reply, RequestId, Revision,
    RoundSummary, StoredInput, Text, UserMessage,
};
use agent_store::{Lease, StoreError, WholeSession};

use super::parts::{RAW, event, held, id, meta, pending, refused, slots, usage};
use super::{Subject, create, listed};

fn reply(request: &str) -> Input {
    Input::Reply { request: RequestId::given(request), reply: Reply::Allow }
}

/// A session with something of everything.
fn whole(name: &str) -> WholeSession {
    let stamp = ReadStamp { hash: "0".repeat(64), len: 6, seen: ReadExtent::Full };
    let mut slots = slots();
    slots.reads.insert("a.rs".to_owned(), stamp);
    let turn = Some(RawJson::parse(RAW).unwrap());
    let checkpoint =
        Checkpoint { turn, slots, last_turn: 4, requests: vec![held("c1")], ..Checkpoint::default() };
    let message = UserMessage::text("and this").unwrap();
    let said = Input::Message { message, heard: agent_core::Heard::After };
    let round = |turn| RoundSummary {
        since: None,
        model: None,
        turn,
        from: EntryId::at(0),
        to: EntryId::at(1),
        text: Text::new("They talked.").unwrap(),
        usage: usage(turn),
    };
    WholeSession {
        meta: meta(name),
        revision: Revision(7),
        // Spaces and a field of another release: bytes, not what they mean.
        entries: vec![format!(r#"{{ "note": {{"kind":"state","text":"hi","later":{RAW}}} }}"#)],
        checkpoint,
        journal: vec![pending("c1")],
        inputs: vec![
            StoredInput { id: InputId(3), input: said },
            StoredInput { id: InputId(5), input: reply("req_5") },
        ],
        used: vec![(InputId(2), "req_2".to_owned())],
        last_input: 6,
        terminal: None,
        events: vec![event(name, 1), event(name, 2)],
        usage: [3, 7].map(|at| (Revision(at), usage(at))).into(),
        rounds: vec![round(1), round(3)],
        blobs: vec![b"large".to_vec(), b"other".to_vec()],
        now_ms: 77,
    }
}

/// All of it is there as it was given, and the session goes on from there.
pub async fn an_imported_session_has_all_it_had(subject: Subject) {
    let store = subject.store.clone();
    let lease = store.lease(&id("in")).await.unwrap();
    let given = whole("in");
    assert_eq!(store.import(&lease, given.clone()).await.unwrap(), Revision(7));
    let found = store.load(&id("in")).await.unwrap().unwrap();
    assert_eq!(
        (&found.entries, &found.checkpoint, &found.journal),
        (&given.entries, &given.checkpoint, &given.journal)
    );
    assert_eq!((&found.inputs, &found.meta, found.last_seq), (&given.inputs, &given.meta, 2));
    assert_eq!(store.events(&id("in"), 0).await.unwrap(), given.events);
    assert_eq!(store.usage(&id("in")).await.unwrap().into_iter().collect::<BTreeMap<_, _>>(), given.usage);
    assert_eq!(store.rounds(&id("in")).await.unwrap(), given.rounds);
    assert_eq!(store.blobs(&id("in")).await.unwrap().len(), 2);
    let list = listed(&store).await;
    let lines: Vec<_> =
        list.iter().map(|line| (line.entries, line.turns, line.updated_ms, &line.terminal)).collect();
    assert_eq!(lines, [(1, 4, 77, &None)]);
    let salvaged = store.salvage(&id("in")).await.unwrap().unwrap();
    assert_eq!((salvaged.used, salvaged.last_input, salvaged.revision), (given.used, 6, Revision(7)));
    assert!(salvaged.damage.is_empty(), "{:?}", salvaged.damage);

    refused!(store.put_input(&id("in"), &reply("req_2")), StoreError::Repeated { .. });
    refused!(store.put_input(&id("in"), &reply("req_5")), StoreError::Repeated { .. });
    assert_eq!(store.put_input(&id("in"), &reply("req_7")).await.unwrap(), InputId(7));
    let mut open = super::Open { store: store.clone(), id: id("in"), lease, revision: Revision(7) };
    open.say("on", 3).await;
    assert_eq!(open.revision, Revision(8));
}

/// Nothing is there after a refusal, blobs included.
pub async fn an_import_is_refused_as_a_whole(subject: Subject) {
    let store = subject.store.clone();
    let open = create(&subject, "there").await;
    refused!(store.import(&open.lease, whole("there")), StoreError::Exists(_));
    assert!(store.load(&id("there")).await.unwrap().unwrap().entries.is_empty());
    let lease = store.lease(&id("in")).await.unwrap();
    refused!(store.import(&lease, whole("other")), StoreError::OtherSession { .. });
    let gap = WholeSession { events: vec![event("in", 1), event("in", 3)], ..whole("in") };
    refused!(store.import(&lease, gap), StoreError::EventGap { expected: 2, .. });
    let twice = WholeSession { used: vec![(InputId(1), "req_5".to_owned())], ..whole("in") };
    refused!(store.import(&lease, twice), StoreError::Repeated { .. });
    let one_number = WholeSession { used: vec![(InputId(3), "req_1".to_owned())], ..whole("in") };
    refused!(store.import(&lease, one_number), StoreError::NoInput { input: 3, .. });
    let zombie = Lease::new(id("in"), lease.epoch() - 1, ());
    refused!(store.import(&zombie, whole("in")), StoreError::LeaseLost { .. });
    assert!(store.load(&id("in")).await.unwrap().is_none());
    assert_eq!(listed(&store).await.len(), 1);
    let blob = store.put_blob(&open.id, b"large").await.unwrap();
    store.delete(open.lease).await.unwrap();
    assert_eq!(store.get_blob(&blob).await.unwrap(), None, "nobody else keeps it");
    store.import(&lease, whole("in")).await.unwrap();
    assert!(store.get_blob(&blob).await.unwrap().is_some());
}
