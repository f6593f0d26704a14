//! What is said to a session from outside, by whoever does not hold it (requirement L7).

use agent_core::{
    Checkpoint, Commit, EntryId, Heard, Input, InputId, RawJson, Reply, RequestId, RoundSummary, Text, Usage,
    UserMessage,
};
use agent_store::StoreError;

use super::parts::none;
use super::{Open, Subject, create, plain};

fn said(words: &str) -> Input {
    Input::Message { message: UserMessage::text(words).unwrap(), heard: Heard::NextStep }
}

fn reply(id: &str, words: &str) -> Input {
    Input::Reply { request: RequestId::given(id), reply: Reply::Answer(vec![words.to_owned()]) }
}

fn running() -> Checkpoint {
    Checkpoint { turn: Some(RawJson::empty_object()), last_turn: 1, ..none() }
}

/// A session with an open turn.
async fn open(subject: &Subject, name: &str) -> Open {
    let mut open = create(subject, name).await;
    let checkpoint = running();
    let commit = Commit { checkpoint: &checkpoint, ..plain(&open) };
    open.revision = open.store.commit(&open.lease, commit).await.unwrap().revision;
    open
}

/// Inputs are kept in order without a lease, until a commit uses them.
pub async fn an_input_waits_for_the_commit_that_uses_it(subject: Subject) {
    let mut open = open(&subject, "inbox").await;
    let store = open.store.clone();
    let first = store.put_input(&open.id, &said("one")).await.unwrap();
    let second = store.put_input(&open.id, &reply("req_1", "two")).await.unwrap();
    assert!(first < second);
    let kept = store.inputs(&open.id).await.unwrap();
    let inputs: Vec<_> = kept.iter().map(|kept| kept.input.clone()).collect();
    assert_eq!(inputs, [said("one"), reply("req_1", "two")]);
    assert_eq!(store.load(&open.id).await.unwrap().unwrap().inputs, kept);
    let state = store.state(&open.id).await.unwrap().unwrap();
    assert_eq!((state.inputs, state.revision, state.checkpoint), (kept, open.revision, running()));

    let checkpoint = running();
    let used = [first];
    let commit = Commit { checkpoint: &checkpoint, consumed: &used, ..plain(&open) };
    let committed = store.commit(&open.lease, commit).await.unwrap();
    assert!(committed.has_inputs, "one is left");
    open.revision = committed.revision;
    let used = [second];
    let commit = Commit { consumed: &used, ..plain(&open) };
    let committed = store.commit(&open.lease, commit).await.unwrap();
    assert!(!committed.has_inputs);
    assert!(store.inputs(&open.id).await.unwrap().is_empty());
}

/// What is not there cannot be used, and then nothing of the commit is written.
pub async fn an_input_is_used_once(subject: Subject) {
    let mut open = open(&subject, "once").await;
    let store = open.store.clone();
    let input = store.put_input(&open.id, &said("one")).await.unwrap();
    for used in [vec![input, InputId(input.0 + 1)], vec![input, input], vec![input]] {
        let checkpoint = running();
        let commit = Commit { checkpoint: &checkpoint, consumed: &used, ..plain(&open) };
        let is_whole = used == [input];
        let end = store.commit(&open.lease, commit).await;
        if is_whole {
            open.revision = end.unwrap().revision;
        } else {
            assert!(matches!(end, Err(StoreError::NoInput { .. })), "{used:?}: {end:?}");
            assert_eq!(store.inputs(&open.id).await.unwrap().len(), 1, "{used:?}");
        }
    }
    let checkpoint = running();
    let used = [input];
    let again = Commit { checkpoint: &checkpoint, consumed: &used, ..plain(&open) };
    assert!(matches!(store.commit(&open.lease, again).await, Err(StoreError::NoInput { .. })));
}

/// A request takes one reply for as long as the session lives; another session knows nothing of it.
pub async fn a_second_reply_is_refused(subject: Subject) {
    let open_one = open(&subject, "one").await;
    let open_two = open(&subject, "two").await;
    let store = open_one.store.clone();
    let first = store.put_input(&open_one.id, &reply("req_1", "yes")).await.unwrap();
    let repeated = |end| matches!(end, Err(StoreError::Repeated { key, .. }) if key == "req_1");
    assert!(repeated(store.put_input(&open_one.id, &reply("req_1", "no")).await));
    let checkpoint = running();
    let used = [first];
    let commit = Commit { checkpoint: &checkpoint, consumed: &used, ..plain(&open_one) };
    store.commit(&open_one.lease, commit).await.unwrap();
    assert!(repeated(store.put_input(&open_one.id, &reply("req_1", "late")).await), "also when it was used");
    store.put_input(&open_two.id, &reply("req_1", "yes")).await.unwrap();
    store.put_input(&open_one.id, &said("same")).await.unwrap();
    store.put_input(&open_one.id, &said("same")).await.unwrap();
}

/// Nothing is taken that nothing would hear.
pub async fn only_an_open_turn_is_spoken_to(subject: Subject) {
    let mut session = create(&subject, "idle").await;
    let store = session.store.clone();
    let refused = |end| matches!(end, Err(StoreError::NoTurn(_)));
    assert!(refused(store.put_input(&session.id, &said("x")).await), "before the first turn");
    let checkpoint = running();
    let commit = Commit { checkpoint: &checkpoint, ..plain(&session) };
    session.revision = store.commit(&session.lease, commit).await.unwrap().revision;
    store.put_input(&session.id, &said("x")).await.unwrap();
    session.revision = store.commit(&session.lease, plain(&session)).await.unwrap().revision;
    assert!(refused(store.put_input(&session.id, &said("y")).await), "after it");
    assert_eq!(store.inputs(&session.id).await.unwrap().len(), 1, "what was taken stays");
    let nobody = super::parts::id("nobody");
    let missing = |end| matches!(end, Err(StoreError::Missing(_)));
    assert!(missing(store.put_input(&nobody, &said("x")).await.map(|_| ())));
    assert!(missing(store.inputs(&nobody).await.map(|_| ())));
    assert!(store.state(&nobody).await.unwrap().is_none());
}

/// What was said of turns is kept beside the session, in their order; the newest words of a turn stand (requirement D5).
pub async fn what_was_said_of_turns_is_kept(subject: Subject) {
    let open = create(&subject, "rounds").await;
    let round = |turn: u64, words: &str| RoundSummary {
        since: (turn > 1).then_some(1),
        turn,
        from: EntryId::at(0),
        to: EntryId::at(2),
        text: Text::new(words).unwrap(),
        usage: Usage { input: 3, ..Usage::default() },
        model: Some("scripted/test".to_owned()),
    };
    for said in [round(2, "two"), round(1, "one"), round(2, "again")] {
        open.store.put_round(&open.id, &said).await.unwrap();
    }
    assert_eq!(open.store.rounds(&open.id).await.unwrap(), [round(1, "one"), round(2, "again")]);
    let nobody = super::parts::id("nobody");
    let missing = open.store.put_round(&nobody, &round(1, "x")).await;
    assert!(matches!(missing, Err(StoreError::Missing(_))), "{missing:?}");
    open.store.delete(open.lease).await.unwrap();
    assert!(matches!(subject.store.rounds(&open.id).await, Err(StoreError::Missing(_))));
}
