//! Sessions as JSON Lines: out of one store and into another, whole and damaged (requirements D7 and D8).
#![expect(clippy::unwrap_used, reason = "helpers of tests: what fails here fails the test")]

mod damage;
mod sample;

use std::sync::Arc;

use agent_core::{History, Input, InputId, Reply, RequestId, Revision};
use agent_store::{Imported, JsonlError, MemoryStore, Store, StoreError, export, import};
use agent_testkit::store_suite::wait_for;
use proptest::prelude::*;

use sample::{Parts, RAW, full, id, parts, step, stored, user};

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
    let event = |n: usize| agent_core::EventBody::SessionStarted { model: format!("event {n}") };
    let (blobs, events) = (vec![b"large".to_vec()], (0..3).map(event).collect());
    stored(&store, "s", &Parts { entries, events, blobs, ..Parts::default() });
    out(&store, "s")
}

type Opened = (Arc<dyn Store>, Option<tempfile::TempDir>);

fn stores() -> Vec<Opened> {
    let mut stores: Vec<Opened> = vec![(Arc::new(MemoryStore::new()), None)];
    #[cfg(feature = "sqlite")]
    {
        let dir = tempfile::tempdir().unwrap();
        stores.push((Arc::new(agent_store::SqliteStore::open(dir.path()).unwrap()), Some(dir)));
    }
    stores
}

/// Everything that can be read of a session but the time it was written to.
fn picture(store: &dyn Store, name: &str) -> String {
    let found = wait_for(store.load(&id(name))).unwrap();
    let state = wait_for(store.state(&id(name))).unwrap();
    let (usage, rounds) = (wait_for(store.usage(&id(name))), wait_for(store.rounds(&id(name))));
    let (events, blobs) = (wait_for(store.events(&id(name), 0)), wait_for(store.blobs(&id(name))));
    format!("{found:#?} {state:#?} {usage:#?} {rounds:#?} {events:#?} {blobs:?}")
}

fn round_trip(parts: &Parts) {
    for (first, _dir) in stores() {
        stored(&*first, "s", parts);
        let text = out(&*first, "s");
        assert!(
            text.lines().all(|line| serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok()),
            "{text}"
        );
        for (second, _dir) in stores() {
            let imported = into(&*second, &text, None).unwrap();
            assert_eq!((&imported.left_out[..], &imported.repairs[..]), (&[][..], &[][..]));
            assert_eq!(imported.entries, parts.entries.len());
            assert_eq!(picture(&*second, "s"), picture(&*first, "s"));
            assert_eq!(out(&*second, "s"), text);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn out_and_in_and_out_again_is_the_same_bytes(mut parts in parts()) {
        parts.entries = distinct(parts.entries);
        round_trip(&parts);
    }

    #[test]
    fn no_damage_breaks_the_reader(cut in 0..9_000usize, flip in 0..9_000usize, byte in any::<u8>()) {
        let mut bytes = FULL.with(Clone::clone);
        let (cut, flip) = (cut.min(bytes.len()), flip % bytes.len());
        bytes[flip] = byte;
        if cut % 2 == 0 {
            bytes.truncate(cut.max(1));
        }
        let store = MemoryStore::new();
        if let Ok(imported) = wait_for(import(&store, &mut &*bytes, Some(id("x")), 50)) {
            let record = wait_for(store.load(&imported.session)).unwrap().unwrap();
            let (history, repairs) = History::load(&record.entries).unwrap();
            prop_assert_eq!((history.len(), repairs.len()), (imported.entries, imported.repairs.len()));
            // What was taken is whole: it goes out and comes in again.
            let text = out(&store, "x");
            let again = MemoryStore::new();
            prop_assert_eq!(into(&again, &text, None).unwrap().left_out, vec![]);
            prop_assert_eq!(out(&again, "x"), text);
        }
    }
}

thread_local! {
    static FULL: Vec<u8> = {
        let store = MemoryStore::new();
        stored(&store, "s", &full());
        out(&store, "s").into_bytes()
    };
}

/// No call twice, so that nothing is mended.
fn distinct(entries: Vec<agent_core::Entry>) -> Vec<agent_core::Entry> {
    let mut history = History::new();
    entries.into_iter().filter(|entry| history.push(entry.clone()).is_ok()).collect()
}

#[test]
fn a_session_with_everything_is_the_same_elsewhere() {
    round_trip(&full());
    let text = String::from_utf8(FULL.with(Clone::clone)).unwrap();
    let kinds: std::collections::BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix(r#"{"kind":""#)?.split('"').next()).collect();
    let all = "blob checkpoint end entry event input journal round session usage used";
    assert_eq!(kinds.into_iter().collect::<Vec<_>>().join(" "), all);
    let escaped = serde_json::to_string(RAW).unwrap();
    assert!(text.contains(escaped.trim_matches('"')), "what a model wrote stays as it wrote it");
}

/// It is the same session, which goes on as it would have where it was.
#[test]
fn an_imported_session_goes_on() {
    for (store, _dir) in stores() {
        let text = String::from_utf8(FULL.with(Clone::clone)).unwrap();
        into(&*store, &text, None).unwrap();
        let found = wait_for(store.load(&id("s"))).unwrap().unwrap();
        let reply = |n| Input::Reply { request: RequestId::given(&format!("req_{n}")), reply: Reply::Allow };
        for used in 0..2 {
            let again = wait_for(store.put_input(&id("s"), &reply(used)));
            assert!(matches!(again, Err(StoreError::Repeated { .. })), "it was answered before: {again:?}");
        }
        assert_eq!(wait_for(store.put_input(&id("s"), &reply(7))).unwrap(), InputId(5));
        let lease = wait_for(store.lease(&id("s"))).unwrap();
        let consumed: Vec<InputId> = found.inputs.iter().map(|input| input.id).collect();
        let usage = agent_core::Usage { input: 9, ..agent_core::Usage::default() };
        let commit = agent_core::Commit {
            expect: found.revision,
            entries: &[user("four")],
            checkpoint: &found.checkpoint,
            usage: Some(&usage),
            events: &[],
            consumed: &consumed,
            terminal: None,
            now_ms: 60,
        };
        let committed = wait_for(store.commit(&lease, commit)).unwrap();
        assert_eq!(committed.revision, Revision(found.revision.0 + 1));
        assert!(committed.has_inputs, "the reply that came since");
        assert_eq!(wait_for(store.usage(&id("s"))).unwrap().len(), 3);
    }
}

/// Entries of another release, and steps that have to be mended, are kept as they are (requirement M5).
#[test]
fn entries_of_another_release_keep_their_bytes() {
    let odd = r#"{"note" : {"text":"hi", "kind" : "state", "later":{"b":1e2,"a":1.0}} }"#;
    let unpaired = r#"{"step":{"response":{"parts":[{"tool_call":{"id":"a","name":"t","input":{"json":{}}}}],"finish":{"kind":"tool_calls","raw":"tool_use"}},"results":[]}}"#;
    for (store, _dir) in stores() {
        let text = sample();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines[1] = format!(r#"{{"kind":"entry","n":0,"body":{odd}}}"#);
        lines[2] = format!(r#"{{"kind":"entry","n":1,"body":{unpaired}}}"#);
        let imported = into(&*store, &lines.join("\n"), None).unwrap();
        assert_eq!((imported.left_out.len(), imported.repairs.len()), (0, 1), "{imported:?}");
        let found = wait_for(store.load(&id("s"))).unwrap().unwrap();
        assert_eq!(found.entries[..2], [odd, unpaired]);
        assert_eq!(out(&*store, "s"), lines.join("\n") + "\n");
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

/// The one that is there stays as it is, whether a worker has it or not.
#[test]
fn a_session_that_is_there_is_not_replaced() {
    for (store, _dir) in stores() {
        let text = sample();
        into(&*store, &text, None).unwrap();
        let before = picture(&*store, "s");
        let lease = wait_for(store.lease(&id("s"))).unwrap();
        let at_work = into(&*store, &text, None).unwrap_err().to_string();
        drop(lease);
        assert_eq!(into(&*store, &text, None).unwrap_err().to_string(), at_work);
        insta::allow_duplicates! {
            insta::assert_snapshot!(at_work, @"session s exists already; load it to go on with it, or choose another name");
        }
        assert_eq!(picture(&*store, "s"), before);
    }
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
    insta::assert_snapshot!(check(r#"{"kind":"session","version":3}"#), @"the file has version 3, this program reads up to 2; use the newer program");
    insta::assert_snapshot!(check("{\"kind\":\"end\",\"n\":1}\n{\"kind\":\"session\",\"version\":9}"), @"the file has version 9, this program reads up to 2; use the newer program");
    insta::assert_snapshot!(check(r#"{"kind":"entry","n":0,"body":{"user":[{"text":"hi"}]}}"#), @"the head of the file cannot be read, so the session has no name; give it one");
}
