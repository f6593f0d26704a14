//! A session with a damaged row goes on from what can be read, or says how; nothing runs twice (requirement D8).

use std::path::Path;
use std::sync::Arc;

use agent_core::{EntryId, Event, History, SessionId};
use agent_harness::{AskLater, Harness, HarnessConfig, fork_stored};
use agent_store::{SqliteStore, Store};
use agent_testkit::{Reply, ScriptedModel};
use agent_tools::PermissionMode;
use tokio::task::yield_now;

use crate::support::{Effects, block, id, log, talk, tools};

/// How the turn was left.
#[derive(Clone, Copy, PartialEq)]
enum Left {
    /// Killed while its last call ran.
    Killed,
    /// It waits for leave.
    Parked,
    /// It is over.
    Done,
}

fn harness(dir: &Path, effects: &Effects, (left, replies): (Left, Vec<Reply>)) -> Harness {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(dir).unwrap());
    let mut config = HarnessConfig::new(Arc::new(ScriptedModel::new(replies)), store);
    config.tools = tools(effects);
    config.asker = Arc::new(AskLater);
    config.permissions.mode =
        if left == Left::Parked { PermissionMode::Default } else { PermissionMode::Bypass };
    Harness::new(config)
}

/// What the model says to the first process.
fn first(left: Left) -> Vec<Reply> {
    let second = match left {
        Left::Killed => Reply::tool("put", r#"{"what":"b"}"#).call("slow", r#"{"what":"c"}"#),
        Left::Parked => Reply::tool("put", r#"{"what":"b"}"#),
        Left::Done => Reply::text("Done."),
    };
    vec![Reply::tool("look", r#"{"what":"a"}"#), second]
}

/// What it says to the next one, whatever it is asked.
fn then() -> Vec<Reply> {
    vec![Reply::text("Went on.")]
}

/// Plays the first process to its end.
async fn begin(dir: &Path, effects: &Effects, left: Left) {
    let session = harness(dir, effects, (left, first(left))).session(id());
    let mut work = Box::pin(session.send("go").await.unwrap().finish());
    while !effects.all().contains(&"slow began".to_owned()) {
        let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(work.as_mut().poll(cx))).await;
        if polled.is_ready() {
            return;
        }
        yield_now().await;
    }
}

fn tamper(dir: &Path, sql: &str) {
    let db = rusqlite::Connection::open(dir.join("sessions.db")).unwrap();
    db.execute_batch("PRAGMA foreign_keys = OFF; DROP TRIGGER entries_stay; DROP TRIGGER entries_remain")
        .unwrap();
    db.execute_batch("DROP TRIGGER events_stay").unwrap();
    assert!(db.execute(sql, ()).unwrap() > 0, "{sql}");
}

/// What the next process does with a session of which something was damaged: resume it, then say something.
fn check(left: Left, sql: &str) -> String {
    block(async {
        let (dir, effects) = (tempfile::tempdir().unwrap(), Effects::default());
        begin(dir.path(), &effects, left).await;
        let store = SqliteStore::open(dir.path()).unwrap();
        let before = store.load(&id()).await.unwrap().unwrap().last_seq;
        tamper(dir.path(), sql);
        let session = harness(dir.path(), &effects, (left, then())).session(id());
        let resumed = match session.resume().await {
            Ok(_) => "goes on".to_owned(),
            Err(error) => error.to_string(),
        };
        let said = match session.send("and now?").await {
            Ok(run) => run.finish().await.map_or_else(|error| error.to_string(), |end| end.text),
            Err(error) => error.to_string(),
        };
        let events = match store.events(&id(), before).await {
            Ok(events) => closing(&events),
            Err(error) => error.to_string(),
        };
        let talk = match store.load(&id()).await {
            Ok(record) => History::load(&record.unwrap().entries)
                .map_or_else(|error| error.to_string(), |(history, _)| talk(&history)),
            Err(error) => error.to_string(),
        };
        format!("resume: {resumed}\nsend: {said}\n{events}\n{talk}\neffects: {}", effects.all().join(", "))
    })
}

/// The events up to the next turn; they follow the ones before without a gap.
fn closing(events: &[Event]) -> String {
    let log = log(events);
    let lines: Vec<&str> = log.lines().take_while(|line| !line.contains("turn.started")).collect();
    lines.join("\n")
}

const NEWEST: &str = "(SELECT max(revision) FROM checkpoints)";

#[test]
fn a_checkpoint_that_cannot_be_read() {
    let damage = format!("UPDATE checkpoints SET body = x'7b' WHERE revision = {NEWEST}");
    insta::assert_snapshot!(check(Left::Killed, &damage), @r#"
    resume: session s: the checkpoint cannot be read (it is not readable (EOF while parsing an object at line 1 column 1)); what tools share is as of 1 commits before; the conversation is whole. The turn that was open is closed, and nothing of it runs again; look at what it did, then send a message
    send: Went on.
    13 [turn_1/1] action.result failed
    14 [turn_1/1] step.completed
    15 [turn_1] turn.failed interrupted
    16 [] session.waiting
    user: 1
    step: look -> saw a
    step: put -> put b; slow -> Outcome unknown: what was stored of this call is damaged. It may have had all, part or none of its effect. Look at the present state before you decide whether to call it again.
    user: 1
    step: 
    effects: b, slow began
    "#);
    insta::assert_snapshot!(check(Left::Parked, &damage), @r#"
    resume: session s: the checkpoint cannot be read (it is not readable (EOF while parsing an object at line 1 column 1)); what tools share is as of 1 commits before; the conversation is whole. The turn that was open is closed, and nothing of it runs again; look at what it did, then send a message
    send: Went on.
    14 [turn_1/1] action.result failed
    15 [turn_1/1] step.failed interrupted
    16 [turn_1/1] input.closed
    17 [turn_1] turn.failed interrupted
    18 [] session.waiting
    user: 1
    step: look -> saw a
    note: Your last answer before this note is lost, because what was stored of it is damaged. It asked for the calls below. Each may have had all, part or none of its effect: look at the present state before you decide whether to call it again.
    - put({"what":"b"})
    user: 1
    step: 
    effects:
    "#);
    insta::assert_snapshot!(check(Left::Done, &damage), @r#"
    resume: session s: the checkpoint cannot be read (it is not readable (EOF while parsing an object at line 1 column 1)); what tools share is as of 1 commits before; the conversation is whole; look at what it did, then send a message
    send: Went on.

    user: 1
    step: look -> saw a
    step: 
    user: 1
    step: 
    effects:
    "#);
    insta::assert_snapshot!(check(Left::Killed, "DELETE FROM checkpoints"), @r#"
    resume: session s: the checkpoint cannot be read (it is missing); what tools share is lost, and begins anew; the conversation is whole. The turn that was open is closed, and nothing of it runs again; look at what it did, then send a message
    send: Went on.
    13 [turn_1/1] action.result failed
    14 [turn_1/1] step.completed
    15 [turn_1] turn.failed interrupted
    16 [] session.waiting
    user: 1
    step: look -> saw a
    step: put -> put b; slow -> Outcome unknown: what was stored of this call is damaged. It may have had all, part or none of its effect. Look at the present state before you decide whether to call it again.
    user: 1
    step: 
    effects: b, slow began
    "#);
}

#[test]
fn a_journal_that_cannot_be_read() {
    insta::assert_snapshot!(check(Left::Killed, "UPDATE journal SET body = x'7b' WHERE pos = 0"), @r#"
    resume: session s: journal record 0 cannot be read (it is not readable (EOF while parsing an object at line 1 column 1)); what tools share is kept; the conversation is whole. The turn that was open is closed, and nothing of it runs again; look at what it did, then send a message
    send: Went on.
    13 [turn_1/1] action.result failed
    14 [turn_1/1] step.failed interrupted
    15 [turn_1] turn.failed interrupted
    16 [] session.waiting
    user: 1
    step: look -> saw a
    note: Your last answer before this note is lost, because what was stored of it is damaged. It asked for the calls below. Each may have had all, part or none of its effect: look at the present state before you decide whether to call it again.
    - put({"what":"b"})
    - slow({"what":"c"})
    user: 1
    step: 
    effects: b, slow began
    "#);
    insta::assert_snapshot!(check(Left::Killed, "UPDATE journal SET body = x'7b' WHERE pos = 2"), @r#"
    resume: session s: journal record 2 cannot be read (it is not readable (EOF while parsing an object at line 1 column 1)); what tools share is kept; the conversation is whole. The turn that was open is closed, and nothing of it runs again; look at what it did, then send a message
    send: Went on.
    13 [turn_1/1] action.result failed
    14 [turn_1/1] step.completed
    15 [turn_1] turn.failed interrupted
    16 [] session.waiting
    user: 1
    step: look -> saw a
    step: put -> Outcome unknown: what was stored of this call is damaged. It may have had all, part or none of its effect. Look at the present state before you decide whether to call it again.; slow -> Outcome unknown: what was stored of this call is damaged. It may have had all, part or none of its effect. Look at the present state before you decide whether to call it again.
    user: 1
    step: 
    effects: b, slow began
    "#);
}

#[test]
fn an_event_that_cannot_be_read_hides_no_turn() {
    insta::assert_snapshot!(check(Left::Done, "UPDATE events SET body = x'7b' WHERE seq = 4"), @r#"
    resume: session s has no open turn; send it a message
    send: Went on.

    user: 1
    step: look -> saw a
    step: 
    user: 1
    step: 
    effects:
    "#);
}

#[test]
fn an_entry_that_cannot_be_read_names_the_way_on() {
    insta::assert_snapshot!(check(Left::Done, "DELETE FROM entries WHERE seq = 1"), @r#"
    resume: entry 1 of session s is damaged: it is missing; restore a copy of the store, or go on from what is before it: `agent sessions fork s --at 0`
    send: entry 1 of session s is damaged: it is missing; restore a copy of the store, or go on from what is before it: `agent sessions fork s --at 0`

    entry 1 of session s is damaged: it is missing; restore a copy of the store, or go on from what is before it: `agent sessions fork s --at 0`
    effects:
    "#);
    insta::assert_snapshot!(check(Left::Done, "UPDATE entries SET body = x'ff' WHERE seq = 2"), @r#"
    resume: entry 2 of session s is damaged: it is not UTF-8 (invalid utf-8 sequence of 1 bytes from index 0); restore a copy of the store, or go on from what is before it: `agent sessions fork s --at 1`
    send: entry 2 of session s is damaged: it is not UTF-8 (invalid utf-8 sequence of 1 bytes from index 0); restore a copy of the store, or go on from what is before it: `agent sessions fork s --at 1`

    entry 2 of session s is damaged: it is not UTF-8 (invalid utf-8 sequence of 1 bytes from index 0); restore a copy of the store, or go on from what is before it: `agent sessions fork s --at 1`
    effects:
    "#);
    insta::assert_snapshot!(check(Left::Done, "UPDATE entries SET body = x'7b' WHERE seq = 1"), @r#"
    resume: session s: entry 1 of the history is not readable (EOF while parsing an object at line 1 column 1); export the session up to it, or restore a copy; `agent sessions fork s --at ENTRY` goes on from an entry before it
    send: session s: entry 1 of the history is not readable (EOF while parsing an object at line 1 column 1); export the session up to it, or restore a copy; `agent sessions fork s --at ENTRY` goes on from an entry before it

    entry 1 of the history is not readable (EOF while parsing an object at line 1 column 1); export the session up to it, or restore a copy
    effects:
    "#);
}

/// The way on works, and a fork that nobody could read is not made.
#[test]
fn what_is_before_a_damaged_entry_can_be_forked() {
    let check = |sql: &str, at: usize| {
        block(async {
            let (dir, effects) = (tempfile::tempdir().unwrap(), Effects::default());
            begin(dir.path(), &effects, Left::Done).await;
            tamper(dir.path(), sql);
            let store = SqliteStore::open(dir.path()).unwrap();
            let fork = SessionId::new("fork").unwrap();
            if let Err(error) = fork_stored(&store, (&id(), EntryId::at(at)), &fork, 9).await {
                return error.to_string();
            }
            let session = harness(dir.path(), &effects, (Left::Done, then())).session(fork.clone());
            let end = session.send("and now?").await.unwrap().finish().await.unwrap();
            format!("{} entries before; {}", at + 1, end.text)
        })
    };
    insta::assert_snapshot!(check("UPDATE entries SET body = x'ff' WHERE seq = 2", 1), @"2 entries before; Went on.");
    insta::assert_snapshot!(check("UPDATE entries SET body = x'ff' WHERE seq = 2", 2), @"entry 2 of session s is damaged: it is not UTF-8 (invalid utf-8 sequence of 1 bytes from index 0); restore a copy of the store, or go on from what is before it: `agent sessions fork s --at 1`");
    insta::assert_snapshot!(check("UPDATE entries SET body = x'7b' WHERE seq = 1", 0), @"1 entries before; Went on.");
    insta::assert_snapshot!(check("UPDATE entries SET body = x'7b' WHERE seq = 1", 1), @"entry 1 of session s is damaged: it is not readable (EOF while parsing an object at line 1 column 1); restore a copy of the store, or go on from what is before it: `agent sessions fork s --at 0`");
    insta::assert_snapshot!(check("DELETE FROM checkpoints", 2), @"3 entries before; Went on.");
}
