//! A conversation as words, for a model that is asked apart: no tools, no reasoning, and never longer than it may be.

use agent_core::{Accountant, AssistantPart, Entry, EntryId, NoteKind, StepRecord};

use super::TierCx;
use super::clip::{clip, fit};

/// How much stays of each thing, in bytes.
#[derive(Debug, Clone, Copy)]
struct Cut {
    result: usize,
    input: usize,
    words: usize,
}

/// From generous to least; old results go first (case P04).
const CUTS: [Cut; 4] = [
    Cut { result: 4_000, input: 2_000, words: 16_000 },
    Cut { result: 2_000, input: 1_000, words: 8_000 },
    Cut { result: 600, input: 400, words: 4_000 },
    Cut { result: 280, input: 200, words: 1_000 },
];

/// The newest step keeps so much more of its results: the model has not seen them yet.
const NEWEST: usize = 4;

/// Entries `from..to` in at most so many tokens: old results are cut first, then words, then the oldest entries go.
pub(super) fn transcript(cx: &TierCx<'_>, from: EntryId, to: EntryId, tokens: u64) -> String {
    let all = cx.of.history.entries();
    in_words(cx.of.accountant, all.get(from.position()..to.position()).unwrap_or_default(), tokens)
}

/// Entries as words in at most so many tokens, for a model that is asked apart.
pub fn in_words(accountant: &Accountant, entries: &[Entry], tokens: u64) -> String {
    for cut in &CUTS {
        let whole = pieces(entries, cut).concat();
        if accountant.text(&whole) <= tokens {
            return whole;
        }
    }
    let [.., least] = &CUTS;
    newest(accountant, &pieces(entries, least), tokens)
}

/// As many of the newest pieces as fit; a single one that does not is cut.
fn newest(accountant: &Accountant, pieces: &[String], tokens: u64) -> String {
    let mut room = tokens.saturating_sub(NOTICE);
    let fitting = pieces.iter().rev().take_while(|piece| match room.checked_sub(accountant.text(piece)) {
        Some(rest) => {
            room = rest;
            true
        }
        None => false,
    });
    let gone = pieces.len() - fitting.count();
    let notice = format!("[{gone} older entries left out]\n\n");
    match pieces.get(gone..).filter(|kept| !kept.is_empty()) {
        Some(kept) => notice + &kept.concat(),
        None => fit(accountant, pieces.last().map_or("", String::as_str), tokens).into_owned(),
    }
}

/// Tokens of the line that says how many entries are gone.
const NOTICE: u64 = 12;

fn pieces(entries: &[Entry], cut: &Cut) -> Vec<String> {
    let newest = entries.iter().rposition(|entry| matches!(entry, Entry::Step(_)));
    let piece = |(at, entry): (usize, &Entry)| {
        let larger = Cut { result: cut.result * NEWEST, ..*cut };
        piece(entry, if Some(at) == newest { &larger } else { cut })
    };
    entries.iter().enumerate().map(piece).collect()
}

fn piece(entry: &Entry, cut: &Cut) -> String {
    match entry {
        Entry::User(said) => format!("### User\n{}\n\n", clip(&said.plain(), cut.words)),
        Entry::Step(step) => said(step, cut),
        // It is put back from where it is kept, so that a summary of it would only be older. What a stage or the
        // environment told of the state of other things is put back by nobody.
        Entry::Note(note) if note.kind == NoteKind::PutBack => String::new(),
        Entry::Note(note) => format!("### Harness\n{}\n\n", clip(note.text.as_str(), cut.words)),
        Entry::Boundary(_) => String::new(),
    }
}

fn said(step: &StepRecord, cut: &Cut) -> String {
    let mut text = "### Agent\n".to_owned();
    for part in step.parts() {
        match part {
            AssistantPart::Text(words) => {
                text.push_str(&clip(words.text.as_str(), cut.words));
                text.push('\n');
            }
            AssistantPart::ToolCall(call) => {
                let input = clip(call.input.as_str(), cut.input);
                text.push_str(&format!("[called {} {input}]\n", call.name));
            }
            AssistantPart::Provider(part) => text.push_str(&format!("[{}]\n", part.kind)),
            AssistantPart::Reasoning(_) | _ => {}
        }
    }
    text.push('\n');
    for (call, result) in step.pairs() {
        let failed = if result.output.is_error() { ", failed" } else { "" };
        let words = result.output.plain();
        text.push_str(&format!("### Result of {}{failed}\n{}\n\n", call.name, clip(&words, cut.result)));
    }
    text
}
