//! Sessions as JSON Lines: out of one store and into another, whole and damaged (requirements D7 and D8).
#![expect(clippy::unwrap_used, reason = "helpers of tests: what fails here fails the test")]

use std::sync::Arc;

use agent_core::{
    AssistantPart, CallId, Checkpoint, Commit, Entry, Event, EventBody, History, Input, JournalRecord,
    PendingStep, RawJson, Response, Revision, SessionId, SessionMeta, StepRecord, SystemBlock,
    TerminalReason, ToolCall, ToolInput, ToolOutput, ToolResult, UserMessage,
};
use agent_store::{Imported, JsonlError, MemoryStore, Store, StoreError, export, import};
use agent_testkit::store_suite::wait_for;
use proptest::prelude::*;

/// JSON that a parse into a tree would change.
const RAW: &str = r#"{"z":12345678901234567890,"a":[1.0,1e2,"\u00e9"]}"#;

fn id(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

fn user(text: &str) -> Entry {
    Entry::User(UserMessage::text(text).unwrap())
}

fn asks(call: &str) -> Response {
    let (id, input) = (CallId::new(call).unwrap(), ToolInput::finished(RAW));
    Response::of(vec![AssistantPart::ToolCall(ToolCall { id, name: "look".into(), input, data: None })])
}

fn step(call: &str) -> Entry {
    let result = ToolResult { call: CallId::new(call).unwrap(), output: ToolOutput::text("seen") };
    Entry::Step(StepRecord::new(asks(call), vec![result]).unwrap())
}

/// What a session is made of.
#[derive(Debug, Clone, Default)]
struct Parts {
    entries: Vec<Entry>,
    events: usize,
    blobs: Vec<Vec<u8>>,
    is_open: bool,
    journaled: bool,
}

fn parts() -> impl Strategy<Value = Parts> {
    let entry = prop_oneof![
        "[a-zé\"\\\\]{1,20}"
            .prop_filter_map("blank", |text| { UserMessage::text(text).ok().map(Entry::User) }),
        (0..1_000u32).prop_map(|n| step(&format!("c{n}"))),
    ];
    let blobs = prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..4);
    (prop::collection::vec(entry, 0..8), 0..6usize, blobs, any::<bool>(), any::<bool>()).prop_map(
        |(entries, events, blobs, is_open, journaled)| Parts { entries, events, blobs, is_open, journaled },
    )
}

fn stored(store: &dyn Store, name: &str, parts: &Parts) {
    let session = id(name);
    let meta = SessionMeta {
        id: session.clone(),
        created_ms: 40,
        model: "test/model".into(),
        system: vec![SystemBlock::new("Be brief.").unwrap()],
        static_blocks: 1,
        tools: Vec::new(),
    };
    let lease = wait_for(store.lease(&session)).unwrap();
    let turn = parts.is_open.then(|| RawJson::parse(RAW).unwrap());
    let checkpoint = Checkpoint { turn, last_turn: 3, ..Checkpoint::default() };
    wait_for(store.create(&lease, &meta, &Checkpoint::default())).unwrap();
    let event = |n: usize| Event {
        seq: Some(n as u64 + 1),
        session: session.clone(),
        turn: None,
        step: None,
        body: EventBody::SessionStarted { model: format!("event {n}") },
    };
    let events: Vec<Event> = (0..parts.events).map(event).collect();
    let commit = Commit {
        expect: Revision(0),
        entries: &parts.entries,
        checkpoint: &checkpoint,
        usage: None,
        events: &events,
        consumed: &[],
        terminal: (!parts.is_open).then_some(&TerminalReason::Done),
        now_ms: 41,
    };
    wait_for(store.commit(&lease, commit)).unwrap();
    for bytes in &parts.blobs {
        wait_for(store.put_blob(&session, bytes)).unwrap();
    }
    if parts.is_open && parts.journaled {
        let pending = JournalRecord::Response(PendingStep::new(asks("open")).unwrap());
        wait_for(store.journal(&lease, &[pending], &[])).unwrap();
        let message = UserMessage::text("and this").unwrap();
        let input = Input::Message { message, heard: agent_core::Heard::After };
        wait_for(store.put_input(&session, &input)).unwrap();
    }
}

fn out(store: &dyn Store, name: &str) -> String {
    let mut bytes = Vec::new();
    let left_out = wait_for(export(store, &id(name), &mut bytes)).unwrap();
    assert_eq!(left_out, []);
    String::from_utf8(bytes).unwrap()
}

fn into(store: &dyn Store, text: &str, name: Option<&str>) -> Result<Imported, JsonlError> {
    wait_for(import(store, &mut text.as_bytes(), name.map(id), 50))
}

fn sample() -> String {
    let store = MemoryStore::new();
    let entries = vec![user("one"), step("c1"), user("two"), step("c2")];
    let blobs = vec![b"large".to_vec()];
    stored(&store, "s", &Parts { entries, events: 3, blobs, ..Parts::default() });
    out(&store, "s")
}

fn stores() -> Vec<(Arc<dyn Store>, Option<tempfile::TempDir>)> {
    let mut stores: Vec<(Arc<dyn Store>, Option<tempfile::TempDir>)> =
        vec![(Arc::new(MemoryStore::new()), None)];
    #[cfg(feature = "sqlite")]
    {
        let dir = tempfile::tempdir().unwrap();
        stores.push((Arc::new(agent_store::SqliteStore::open(dir.path()).unwrap()), Some(dir)));
    }
    stores
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn out_and_in_and_out_again_is_the_same_bytes(parts in parts()) {
        let first = MemoryStore::new();
        stored(&first, "s", &parts);
        let text = out(&first, "s");
        for (second, _dir) in stores() {
            let imported = into(&*second, &text, None).unwrap();
            prop_assert_eq!(&imported.left_out, &[]);
            prop_assert_eq!(imported.entries, parts.entries.len());
            prop_assert_eq!(out(&*second, "s"), text.clone());
            let again = into(&*second, &text, None).unwrap_err();
            prop_assert!(matches!(again, JsonlError::Store(StoreError::Exists(_) | StoreError::Busy { .. })), "{again}");
        }
    }

    #[test]
    fn no_damage_breaks_the_reader(cut in 0..2_000usize, flip in 0..2_000usize, byte in any::<u8>()) {
        let mut bytes = sample().into_bytes();
        let (cut, flip) = (cut.min(bytes.len()), flip % bytes.len());
        bytes[flip] = byte;
        bytes.truncate(cut.max(1));
        let store = MemoryStore::new();
        if let Ok(imported) = wait_for(import(&store, &mut &*bytes, Some(id("x")), 50)) {
            let record = wait_for(store.load(&imported.session)).unwrap().unwrap();
            let (history, repairs) = History::load(&record.entries).unwrap();
            prop_assert_eq!((history.len(), repairs.len()), (imported.entries, 0));
        }
    }
}

#[test]
fn a_new_name_is_everywhere() {
    let store = MemoryStore::new();
    let imported = into(&store, &sample(), Some("other")).unwrap();
    assert_eq!((imported.session.as_str(), imported.entries), ("other", 4));
    let events = wait_for(store.events(&id("other"), 0)).unwrap();
    assert!(events.len() == 3 && events.iter().all(|event| event.session == id("other")), "{events:?}");
    assert_eq!(wait_for(store.load(&id("other"))).unwrap().unwrap().meta.id, id("other"));
}

#[test]
fn what_is_damaged_is_left_out_and_told() {
    let text = sample();
    let lines: Vec<&str> = text.lines().collect();
    let check = |damage: &dyn Fn(&mut Vec<String>)| {
        let mut lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        damage(&mut lines);
        let store = MemoryStore::new();
        let imported = into(&store, &lines.join("\n"), None).unwrap();
        let left: Vec<_> = imported.left_out.iter().map(ToString::to_string).collect();
        let blobs = wait_for(store.blobs(&imported.session)).unwrap().len();
        let events = wait_for(store.events(&imported.session, 0)).unwrap().len();
        format!("{} entries, {blobs} blobs, {events} events\n{}", imported.entries, left.join("\n"))
    };
    insta::assert_snapshot!(check(&|lines| lines.truncate(4)), @"
    3 entries, 0 blobs, 0 events
    what followed line 4: the last line is missing, so the file was cut off here
    the checkpoint: there is no state, so the session begins between turns, with nothing shared by tools
    ");
    insta::assert_snapshot!(check(&|lines| { lines.pop(); lines.last_mut().unwrap().truncate(20); }), @"
    4 entries, 1 blobs, 2 events
    line 11: EOF while parsing a value at line 1 column 20
    what followed line 11: the last line is missing, so the file was cut off here
    ");
    insta::assert_snapshot!(check(&|lines| lines[2].truncate(30)), @"
    4 entries, 1 blobs, 3 events
    line 3: EOF while parsing an object at line 2 column 0
    entry 1: it is missing; words that say so stand in its place
    ");
    insta::assert_snapshot!(check(&|lines| lines[2] = r#"{"kind":"entry","n":1,"body":{"song":1}}"#.into()), @"
    4 entries, 1 blobs, 3 events
    entry 1: unknown variant `song`, expected one of `user`, `step`, `note`, `boundary` at line 1 column 7; words that say so stand in its place
    ");
    insta::assert_snapshot!(check(&|lines| lines.insert(3, r#"{"kind":"song","body":1}"#.into())), @"
    4 entries, 1 blobs, 3 events
    line 4: a kind that this release does not know
    lines that were taken out or put in: it counts 11 lines before it
    ");
    insta::assert_snapshot!(check(&|lines| { lines.remove(0); }), @"
    4 entries, 1 blobs, 3 events
    lines that were taken out or put in: it counts 11 lines before it
    the system prompt and the tools: the head cannot be read, so the session has no system prompt and no tools
    ");
    insta::assert_snapshot!(check(&|lines| lines[5] = lines[5].replace("bGFy", "bGFz")), @"
    4 entries, 0 blobs, 3 events
    line 6: the bytes of this blob do not have its hash
    ");
    insta::assert_snapshot!(check(&|lines| lines[5] = lines[5].replace("bGFy", "b*Fy")), @"
    4 entries, 0 blobs, 3 events
    line 6: the bytes of this blob are not base64
    ");
    insta::assert_snapshot!(check(&|lines| { lines.remove(8); }), @"
    4 entries, 1 blobs, 0 events
    lines that were taken out or put in: it counts 11 lines before it
    events after 0: 2 of them stand behind a gap
    ");
}

#[test]
fn what_is_no_session_is_refused() {
    let check = |text: &str| {
        let store = MemoryStore::new();
        let error = into(&store, text, None).unwrap_err().to_string();
        assert!(wait_for(store.sessions()).unwrap().is_empty());
        error
    };
    insta::assert_snapshot!(check(""), @"line 1 is not the head of an exported session, and no entry follows; give a file that `export` wrote");
    insta::assert_snapshot!(check("[1]\nnot json\n"), @"line 1 is not the head of an exported session, and no entry follows; give a file that `export` wrote");
    insta::assert_snapshot!(check(r#"{"kind":"session","version":2}"#), @"the file has version 2, this program reads up to 1; use the newer program");
    insta::assert_snapshot!(check(r#"{"kind":"entry","n":0,"body":{"user":{"parts":[{"text":"hi"}]}}}"#), @"the head of the file cannot be read, so the session has no name; give it one");
}
