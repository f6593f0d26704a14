//! What must hold after every kill, whatever was killed where.

use std::collections::BTreeSet;

use crate::look::{Note, Picture};
use crate::trial::Scene;

/// A moment at which a process was killed: what it left.
#[derive(Clone, Debug)]
pub(crate) struct Left {
    pub(crate) picture: Option<Picture>,
    /// How many notes there were.
    pub(crate) notes: usize,
}

/// What is wrong with a trial, in words; nothing when all is as it must be.
pub(crate) fn faults(scene: &Scene, kills: &[Left], end: &Scene, idempotent: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    let Some(last) = &end.picture else { return vec!["the session is gone".to_owned()] };
    let Some(whole) = &scene.picture else { return vec!["nothing was played without a kill".to_owned()] };
    for left in kills {
        found.extend(left.picture.iter().flat_map(|picture| picture.faults.clone()));
        judge_kill(left, last, &end.notes, idempotent, &mut found);
    }
    found.extend(last.faults.iter().cloned());
    judge_runs(&end.notes, last, idempotent, &mut found);
    judge_end(whole, last, &mut found);
    let unknown = last.results.values().any(|(_, text)| is_unknown(text));
    if !unknown && scene.files != end.files {
        found.push(format!("the files are {:?}, not {:?}", end.files, scene.files));
    }
    let mut lines: Vec<_> = end.files.get("log.txt").iter().flat_map(|text| text.lines()).collect();
    lines.sort_unstable();
    if lines.windows(2).any(|pair| pair.first() == pair.last()) {
        found.push(format!("a command had its effect twice: {lines:?}"));
    }
    found
}

/// Whether a result says that nobody knows what a call did.
pub(crate) fn is_unknown(result: &str) -> bool {
    result.starts_with("Outcome unknown")
}

/// A call whose result was kept does not begin again, and one whose end is not known is known as such.
fn judge_kill(left: &Left, last: &Picture, notes: &[Note], idempotent: &[String], found: &mut Vec<String>) {
    let (before, after) = notes.split_at(left.notes.min(notes.len()));
    let mut kept: BTreeSet<&str> = calls(before, "kept").collect();
    kept.extend(left.picture.iter().flat_map(|picture| picture.results.keys()).map(String::as_str));
    for call in calls(after, "begin").filter(|call| kept.contains(call)) {
        found.push(format!("{call} ran again although its result was journaled"));
    }
    // A result that says it is unknown is noted as such, not as kept.
    for call in calls(before, "kept") {
        let result = last.results.get(call).map(|(_, text)| text.as_str());
        if result.is_none_or(is_unknown) {
            found.push(format!("the journaled result of {call} is lost: the model is told {result:?}"));
        }
    }
    let started = left.picture.iter().flat_map(|picture| &picture.started);
    for (call, _) in started.filter(|(_, tool)| !idempotent.contains(tool)) {
        let told = last.results.get(call).map_or("", |(_, text)| text);
        if !is_unknown(told) {
            found
                .push(format!("{call} was started and its end is not known, and the model is told {told:?}"));
        }
    }
}

fn calls<'n>(notes: &'n [Note], what: &'n str) -> impl Iterator<Item = &'n str> {
    notes.iter().filter(move |(noted, _)| noted == what).map(|(_, call)| call.as_str())
}

/// A call that is not idempotent begins once.
fn judge_runs(notes: &[Note], last: &Picture, idempotent: &[String], found: &mut Vec<String>) {
    let begun: Vec<&str> = calls(notes, "begin").collect();
    let distinct: BTreeSet<&str> = begun.iter().copied().collect();
    for call in distinct {
        let times = begun.iter().filter(|other| **other == call).count();
        let tool = last.results.get(call).map_or("", |(tool, _)| tool);
        if times > 1 && !idempotent.iter().any(|name| name == tool) {
            found.push(format!("{call} (`{tool}`) ran {times} times"));
        }
    }
}

/// The conversation is the one of the script, each result the usual one or unknown.
fn judge_end(whole: &Picture, last: &Picture, found: &mut Vec<String>) {
    if last.is_open != whole.is_open || last.pending != whole.pending {
        found.push(format!(
            "the turn is open: {}, with {} records in the journal",
            last.is_open, last.pending
        ));
    }
    if last.said != whole.said {
        found.push(format!("the conversation is {:?}, not {:?}", last.said, whole.said));
    }
    for (call, (_, usual)) in &whole.results {
        let told = last.results.get(call).map(|(_, text)| text.as_str());
        if told != Some(usual) && !told.is_some_and(is_unknown) && !follows_unknown(last, told) {
            found.push(format!("the result of {call} is {told:?}, not {usual:?}"));
        }
    }
    if last.requests != whole.requests {
        found.push(format!("it waits for {:?}, not {:?}", last.requests, whole.requests));
    }
    if last.asked != whole.asked {
        found.push(format!("it asked {:?}, not {:?}", last.asked, whole.asked));
    }
    if last.output_tokens != whole.output_tokens {
        found.push(format!(
            "{} tokens of output are counted, not {}",
            last.output_tokens, whole.output_tokens
        ));
    }
}

/// The edit of a file that was perhaps never written may fail; that is told too.
fn follows_unknown(last: &Picture, told: Option<&str>) -> bool {
    told.is_some() && last.results.values().any(|(tool, text)| tool == "write_file" && is_unknown(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scene(results: &[(&str, &str, &str)], notes: &str) -> Scene {
        let results = results
            .iter()
            .map(|(call, tool, text)| ((*call).to_owned(), ((*tool).to_owned(), (*text).to_owned())));
        let picture = Picture { results: results.collect(), ..Picture::default() };
        let note = |word: &str| word.split_once(':').map(|(what, call)| (what.to_owned(), call.to_owned()));
        let notes = notes.split_whitespace().filter_map(note).collect();
        Scene { picture: Some(picture), notes, ..Scene::default() }
    }

    /// Notes before and after the kill stand on both sides of a bar.
    #[track_caller]
    fn check(started: &[(&str, &str)], notes: &str, end: &[(&str, &str, &str)], expect: &[&str]) {
        let (before, after) = notes.split_once('|').unwrap();
        let started = started.iter().map(|(call, tool)| ((*call).to_owned(), (*tool).to_owned()));
        let left = Picture { started: started.collect(), ..Picture::default() };
        let kill = Left { picture: Some(left), notes: before.split_whitespace().count() };
        let whole = scene(&[("a", "bash", "done"), ("b", "glob", "done")], "");
        let end = scene(end, &format!("{before} {after}"));
        assert_eq!(faults(&whole, &[kill], &end, &["glob".to_owned()]), expect);
    }

    #[test]
    fn what_may_be_left_and_what_may_not() {
        let done = [("a", "bash", "done"), ("b", "glob", "done")];
        let unknown = [("a", "bash", "Outcome unknown: look."), ("b", "glob", "done")];
        check(&[], "begin:a end:a kept:a | begin:b kept:b", &done, &[]);
        check(&[("b", "glob")], "begin:b | begin:b kept:b begin:a kept:a", &done, &[]);
        check(&[("a", "bash")], "begin:a | begin:b kept:b", &unknown, &[]);
        check(
            &[],
            "begin:a kept:a | begin:a",
            &done,
            &["a ran again although its result was journaled", "a (`bash`) ran 2 times"],
        );
        check(&[], "begin:a | begin:a", &done, &["a (`bash`) ran 2 times"]);
        check(
            &[],
            "begin:a kept:a | ",
            &unknown,
            &[r#"the journaled result of a is lost: the model is told Some("Outcome unknown: look.")"#],
        );
        check(
            &[("a", "bash")],
            "begin:a | ",
            &done,
            &[r#"a was started and its end is not known, and the model is told "done""#],
        );
    }
}
