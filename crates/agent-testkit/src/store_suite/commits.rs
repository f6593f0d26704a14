//! What one commit and its journal write: all of it, once, in order.

use agent_core::{
    Checkpoint, Commit, CompactionState, EntryId, Event, EventBody, History, JournalRecord, OfChildren,
    RawJson, Retried, Revision, Spent, TerminalReason, ToolOutput, ToolResult, Usage,
};
use agent_store::StoreError;

use super::parts::{RAW, call, event, held, meta, pending, refused, slots, step, summary, usage, user};
use super::{Subject, create, picture, plain};

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
        asked_otherwise: true,
        compaction: CompactionState { failures: 2, after: 900 },
        turn_from: Some(EntryId::at(1)),
        active: Some(["look".to_owned()].into()),
        requests: vec![held("c2")],
        retried: Retried { step: 1, turn: 3 },
        nano_usd: 250_000_000,
        elapsed_ms: 1_500,
        children: OfChildren { session: of_child(3), turn: of_child(2) },
    };
    let commit = Commit { entries: &entries, checkpoint: &checkpoint, ..plain(&open) };
    open.revision = open.store.commit(&open.lease, commit).await.unwrap().revision;
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
        JournalRecord::Waits(held("c2").request),
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
    open.revision = open.store.commit(&open.lease, commit).await.unwrap().revision;
    // A call that started without a response in the journal is no open step.
    open.store.journal(&open.lease, &[JournalRecord::Started(call("c1"))], &[]).await.unwrap();
    let commit = Commit { entries: &[summary(0)], ..plain(&open) };
    assert_eq!(open.store.commit(&open.lease, commit).await.unwrap().revision, Revision(3));
}

/// Each model call's usage stands with the commit that recorded it (requirement D1).
pub async fn usage_is_kept_for_each_commit(subject: Subject) {
    let mut open = create(&subject, "usage").await;
    let raw = Usage { raw: Some(RawJson::parse(RAW).unwrap()), ..usage(5) };
    for spent in [Some(&raw), None, Some(&usage(6))] {
        let commit = Commit { usage: spent, ..plain(&open) };
        open.revision = open.store.commit(&open.lease, commit).await.unwrap().revision;
    }
    let found = open.store.usage(&open.id).await.unwrap();
    assert_eq!(found, [(Revision(1), raw), (Revision(3), usage(6))]);
}

fn of_child(n: u64) -> Spent {
    Spent { usage: Usage { input: n, output: 1, ..Usage::default() }, nano_usd: n, elapsed_ms: 7 * n }
}
