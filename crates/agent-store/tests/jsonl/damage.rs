//! Files that were cut, edited, joined, sorted or sent through a mail program.

use agent_core::{History, TurnId};
use agent_store::{MemoryStore, Store};
use agent_testkit::store_suite::wait_for;

use super::sample::{Parts, full, id, stored, user};
use super::{into, out, sample};

/// Damages the lines and reads what is left of them.
fn check(text: &str, damage: impl Fn(&mut Vec<String>)) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    damage(&mut lines);
    let store = MemoryStore::new();
    let imported = into(&store, &lines.join("\n"), None).unwrap();
    let left: Vec<_> = imported.left_out.iter().map(ToString::to_string).collect();
    let blobs = wait_for(store.blobs(&imported.session)).unwrap().len();
    let events = wait_for(store.events(&imported.session, 0)).unwrap().len();
    let record = wait_for(store.load(&imported.session)).unwrap().unwrap();
    assert_eq!(History::load(&record.entries).unwrap().0.len(), imported.entries);
    let turn = if record.checkpoint.turn.is_some() { ", an open turn" } else { "" };
    format!("{} entries, {blobs} blobs, {events} events{turn}\n{}", imported.entries, left.join("\n"))
}

#[test]
fn what_is_damaged_is_left_out_and_told() {
    let text = sample();
    let check = |damage: &dyn Fn(&mut Vec<String>)| check(&text, damage);
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
    line 3: EOF while parsing a string at line 1 column 30
    entry 1: no line has it; words that say so stand in its place
    ");
    insta::assert_snapshot!(check(&|lines| lines[2] = r#"{"kind":"entry","n":1,"body":{"song":1}}"#.into()), @"
    4 entries, 1 blobs, 3 events
    line 3 (entry 1): unknown variant `song`, expected one of `user`, `step`, `note`, `boundary` at line 1 column 7; words that say so stand in its place
    ");
    insta::assert_snapshot!(check(&|lines| lines.insert(3, r#"{"kind":"song","body":1}"#.into())), @"
    4 entries, 1 blobs, 3 events
    line 4: a kind that this release does not know
    lines that were taken out or put in: the last line counts 11 lines before it, there are 12
    ");
    insta::assert_snapshot!(check(&|lines| { lines.remove(0); }), @"
    4 entries, 1 blobs, 3 events
    lines that were taken out or put in: the last line counts 11 lines before it, there are 10
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
    insta::assert_snapshot!(check(&|lines| { let at = lines.len() - 3; lines.remove(at); }), @"
    4 entries, 1 blobs, 1 events
    lines that were taken out or put in: the last line counts 11 lines before it, there are 10
    line 10 (event 3): it stands behind a gap: no line has event 2
    ");
    insta::assert_snapshot!(check(&|lines| lines.insert(3, lines[2].clone())), @"
    4 entries, 1 blobs, 3 events
    lines that were taken out or put in: the last line counts 11 lines before it, there are 12
    line 4 (entry 1): line 3 is of it too, and was taken
    ");
    insta::assert_snapshot!(check(&|lines| lines.insert(1, lines[0].clone())), @"
    4 entries, 1 blobs, 3 events
    line 2: it stands there twice; the first one was taken
    lines that were taken out or put in: the last line counts 11 lines before it, there are 12
    ");
    insta::assert_snapshot!(check(&|lines| lines[4] = lines[4].replace(r#""n":3"#, r#""n":18446744073709551615"#)), @"
    3 entries, 1 blobs, 3 events
    line 5: its number is none that a session gives
    ");
}

/// Two files in one: the first session is taken whole.
#[test]
fn a_second_session_is_left_out() {
    let other = sample().replace(r#""id":"s""#, r#""id":"t""#);
    insta::assert_snapshot!(check(&sample(), |lines| lines.extend(other.lines().map(str::to_owned))), @"
    4 entries, 1 blobs, 3 events
    line 13: another session begins here; it and what follows are left out, give each a file of its own
    ");
}

/// A turn is left open only where nothing of it can be missing: a call that ran would run again.
#[test]
fn an_open_turn_is_taken_up_as_a_whole_or_not_at_all() {
    let store = MemoryStore::new();
    let events = Vec::new();
    stored(&store, "s", &Parts { entries: vec![user("one")], events, blobs: vec![vec![1]], ..full() });
    let text = out(&store, "s");
    let check = |damage: &dyn Fn(&mut Vec<String>)| check(&text, damage);
    let at = |kind: &str| {
        text.lines().position(|line| line.starts_with(&format!(r#"{{"kind":"{kind}""#))).unwrap()
    };
    let journal = at("journal");
    insta::assert_snapshot!(check(&|_| {}), @"1 entries, 1 blobs, 0 events, an open turn");
    insta::assert_snapshot!(check(&|lines| lines[journal + 4].truncate(9)), @"
    1 entries, 1 blobs, 0 events
    line 9: EOF while parsing a string at line 1 column 9
    the open turn: entries or journal records of it are missing, so it cannot be taken up
    ");
    insta::assert_snapshot!(check(&|lines| { lines.remove(journal + 4); }), @"
    1 entries, 1 blobs, 0 events
    lines that were taken out or put in: the last line counts 17 lines before it, there are 16
    the open turn: entries or journal records of it are missing, so it cannot be taken up
    ");
    insta::assert_snapshot!(check(&|lines| lines[journal + 4] = r#"{"kind":"journal","n":4,"body":{"song":1}}"#.into()), @"
    1 entries, 1 blobs, 0 events
    line 9: unknown variant `song`, expected one of `response`, `active`, `started`, `waits`, `sent`, `returned`, `finished` at line 1 column 7
    the open turn: entries or journal records of it are missing, so it cannot be taken up
    ");
    insta::assert_snapshot!(check(&|lines| lines[1] = r#"{"kind":"entry","n":0}"#.into()), @"
    1 entries, 1 blobs, 0 events
    line 2 (entry 0): it could not be read when it was written out; words that say so stand in its place
    the open turn: entries or journal records of it are missing, so it cannot be taken up
    ");
    insta::assert_snapshot!(check(&|lines| lines[journal + 4] = lines[at("blob")].clone()), @"
    1 entries, 1 blobs, 0 events
    line 9: it stands there twice; the first one was taken
    the open turn: entries or journal records of it are missing, so it cannot be taken up
    ");
    insta::assert_snapshot!(check(&|lines| lines[journal + 4] = lines[at("input")].clone()), @"
    1 entries, 1 blobs, 0 events
    line 10 (input 3): line 9 is of it too, and was taken
    the open turn: entries or journal records of it are missing, so it cannot be taken up
    ");
    insta::assert_snapshot!(check(&|lines| { lines.pop(); }), @"
    1 entries, 1 blobs, 0 events
    what followed line 17: the last line is missing, so the file was cut off here
    the open turn: entries or journal records of it are missing, so it cannot be taken up
    ");
    insta::assert_snapshot!(check(&|lines| { lines.remove(1); }), @"
    0 entries, 1 blobs, 0 events
    lines that were taken out or put in: the last line counts 17 lines before it, there are 16
    the open turn: entries or journal records of it are missing, so it cannot be taken up
    ");
    insta::assert_snapshot!(check(&|lines| lines.insert(journal, lines[journal].clone())), @"
    1 entries, 1 blobs, 0 events, an open turn
    lines that were taken out or put in: the last line counts 17 lines before it, there are 18
    line 6 (journal record 0): line 5 is of it too, and was taken
    ");
    insta::assert_snapshot!(check(&|lines| lines[at("blob")] = r#"{"kind":"blob"}"#.into()), @"
    1 entries, 0 blobs, 0 events, an open turn
    line 3: the bytes of this blob are not base64
    ");
    insta::assert_snapshot!(check(&|lines| lines[at("input")] = r#"{"kind":"input","n":3,"body":{}}"#.into()), @"
    1 entries, 1 blobs, 0 events, an open turn
    line 10: expected value at line 1 column 2
    ");
    insta::assert_snapshot!(check(&|lines| lines[at("used")] = lines[at("input")].clone()), @"
    1 entries, 1 blobs, 0 events
    line 12 (input 3): line 10 is of it too, and was taken
    the open turn: entries or journal records of it are missing, so it cannot be taken up
    ");
}

/// What is done to files on their way changes nothing of what they say.
#[test]
fn a_file_survives_its_way() {
    let store = MemoryStore::new();
    stored(&store, "s", &full());
    let expect = out(&store, "s");
    let check = |what: &str, text: &str| {
        let store = MemoryStore::new();
        assert_eq!(into(&store, text, None).unwrap().left_out, [], "{what}");
        assert_eq!(out(&store, "s"), expect, "{what}");
    };
    check("line endings", &expect.replace('\n', "\r\n"));
    check("a byte order mark", &format!("\u{feff}{expect}"));
    check("no last line ending", expect.trim_end());
    check("empty lines", &expect.replace('\n', "\n\n\r\n"));
    let mut lines: Vec<&str> = expect.lines().collect();
    lines.sort_unstable();
    check("sorted", &lines.join("\n"));
    lines.reverse();
    check("the other way", &lines.join("\n"));
}

#[test]
fn a_line_may_be_long() {
    let store = MemoryStore::new();
    let long = "words and more \u{e9} ".repeat(640_000);
    stored(
        &store,
        "s",
        &Parts { entries: vec![user(&long)], blobs: vec![vec![7; 300_000]], ..Parts::default() },
    );
    let text = out(&store, "s");
    assert!(text.lines().any(|line| line.len() > 10_000_000), "a long line");
    let store = MemoryStore::new();
    assert_eq!(into(&store, &text, None).unwrap().left_out, []);
    assert!(out(&store, "s") == text);
}

/// A release before wrote fewer things, and no numbers of commits.
#[test]
fn the_first_version_is_read() {
    let text = [
        r#"{"kind":"session","version":1,"body":{"id":"s","created_ms":40,"model":"m","system":[],"tools":[]}}"#,
        r#"{"kind":"entry","n":0,"body":{"user":[{"text":"hi"}]}}"#,
        r#"{"kind":"checkpoint","body":{"turn":{"a":1},"last_turn":2}}"#,
        r#"{"kind":"input","body":{"message":{"message":[{"text":"a"}],"heard":"after"}}}"#,
        r#"{"kind":"input","body":{"message":{"message":[{"text":"b"}],"heard":"after"}}}"#,
        r#"{"kind":"end","n":5}"#,
    ];
    let store = MemoryStore::new();
    let imported = into(&store, &text.join("\n"), None).unwrap();
    assert_eq!(imported.left_out, []);
    let record = wait_for(store.load(&id("s"))).unwrap().unwrap();
    assert_eq!((record.revision.0, record.inputs.len()), (1, 2));
    assert!(record.checkpoint.turn.is_some());
}

/// Without a state, turns are counted from where the events left off.
#[test]
fn turns_are_counted_on() {
    let text = sample().replace(r#""kind":"checkpoint""#, r#""kind":"song""#);
    let store = MemoryStore::new();
    into(&store, &text, None).unwrap();
    let record = wait_for(store.load(&id("s"))).unwrap().unwrap();
    assert_eq!(record.checkpoint.last_turn, TurnId::after(0).number());
}
