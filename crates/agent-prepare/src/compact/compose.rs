//! What stands in the place of a conversation: the requests, the summary, evidence of finished work, and how to read again
//! what is covered.

use agent_core::{Accountant, Entry, EntryId, History, Rewrite, Text, ToolCall, ToolOutput, ToolResult};

use super::clip::{fit, one_line};
use super::target::{Requests, Room};
use super::{TierCx, TierVerdict};

/// A summary boundary with all that stands in it beside the words.
pub(super) fn boundary(cx: &TierCx<'_>, words: &str, kept_from: EntryId) -> Rewrite {
    let text = composed(cx, words, kept_from);
    Rewrite::Summary { text, kept_from, strip_reasoning: cx.of.model.binds_thinking_to_prefix }
}

/// The boundary for a model's answer: cut to its room when it is longer, and refused when it says nothing (case P04).
pub(super) fn answered(cx: &TierCx<'_>, answer: &Text, kept_from: EntryId) -> TierVerdict {
    let words = unwrapped(answer.as_str());
    if says_nothing(words) {
        return TierVerdict::Failed("the summary has headings and nothing under them".to_owned());
    }
    let room = Room::of(&cx.tokens.thresholds);
    let words = fit(cx.of.accountant, words, room.summary);
    TierVerdict::Rewrite(boundary(cx, &words, kept_from))
}

/// The model's words out of a text that was composed here; all of it when it was not.
pub(super) fn words_of(composed: &str) -> &str {
    let mut rest = composed;
    while let Some(Fenced { tag, inside, after }) = Fenced::first_of(rest) {
        if tag.starts_with(SUMMARY) {
            return inside;
        }
        rest = after;
    }
    composed
}

fn composed(cx: &TierCx<'_>, words: &str, kept_from: EntryId) -> Text {
    let room = Room::of(&cx.tokens.thresholds);
    let mut text = String::new();
    for (label, request) in requests(cx, kept_from, room.request) {
        text.push_str(&fenced(label, REQUEST, &request));
        text.push('\n');
    }
    text.push_str(&fenced("What was done and found out so far:", SUMMARY, words));
    let finished = finished(cx.of.history, kept_from);
    let (calls, are_more) = evidence(finished, cx.of.accountant, room.evidence);
    if !calls.is_empty() {
        text.push_str(
            "\nCalls that are finished, with what came of them. What succeeded stands; do not do it again",
        );
        text.push_str(if are_more { " (older ones are not listed):\n" } else { ":\n" });
        text.push_str(&calls);
        text.push_str(AGAIN);
    }
    Text::or(text, words)
}

const REQUEST: &str = "user_request";
const SUMMARY: &str = "summary";
const AGAIN: &str = "\nWhat they showed can be seen again: read a file by its path, and an output by the handle (blob:…) named beside its call.\n";

/// A part of a composed text: a line that says what it is, and words between two tags on lines of their own.
#[derive(Debug, Clone, Copy)]
struct Fenced<'t> {
    tag: &'t str,
    inside: &'t str,
    after: &'t str,
}

/// Words as they are, under a label and between tags that they do not hold themselves: `tag`, `tag_2`, `tag_3` and so on.
/// So no words of a user or of a model end their part early.
fn fenced(label: &str, tag: &str, words: &str) -> String {
    let holds = |tag: &String| words.contains(&format!("</{tag}>"));
    let numbered = (2_u32..).map(|n| format!("{tag}_{n}"));
    let tag = std::iter::once(tag.to_owned()).chain(numbered).find(|tag| !holds(tag));
    let tag = tag.unwrap_or_default();
    format!("{label}\n<{tag}>\n{words}\n</{tag}>\n")
}

impl<'t> Fenced<'t> {
    /// The part that a text begins with.
    fn first_of(text: &'t str) -> Option<Self> {
        let (_label, text) = text.trim_start_matches('\n').split_once('\n')?;
        let (tag, text) = text.strip_prefix('<')?.split_once(">\n")?;
        let (inside, after) = text.split_once(&format!("\n</{tag}>\n"))?;
        Some(Self { tag, inside, after })
    }
}

/// What the user asked first and last, word for word unless it is huge; once when it is the same.
fn requests(cx: &TierCx<'_>, kept_from: EntryId, tokens: u64) -> Vec<(&'static str, String)> {
    let history = cx.of.history;
    let accountant = cx.of.accountant;
    let words = |id: EntryId| match history.entries().get(id.position()) {
        Some(Entry::User(said)) => said.plain(),
        Some(Entry::Step(_) | Entry::Note(_) | Entry::Boundary(_)) | None => String::new(),
    };
    let Some(Requests { first, last }) = Requests::before(history, kept_from) else { return Vec::new() };
    let last = words(last);
    let Some(first) = first.map(words) else {
        return vec![("The user's request, word for word:", fit(accountant, &last, tokens).into_owned())];
    };
    let (for_first, for_last) = share(tokens, accountant.text(&first), accountant.text(&last));
    let first = fit(accountant, &first, for_first).into_owned();
    let last = fit(accountant, &last, for_last).into_owned();
    vec![
        ("The user's first request, word for word:", first),
        ("The user's last request before what follows, word for word:", last),
    ]
}

/// Room for the first and for the last request, which need so many tokens: the last one goes before, but for a quarter.
/// Together they take no more than they need, and no more than there is.
fn share(room: u64, first: u64, last: u64) -> (u64, u64) {
    let for_last = last.min(room - first.min(room / 4));
    (first.min(room - for_last), for_last)
}

/// The newest finished calls, oldest first, a line each, as many as have room; and whether there were more. The work is
/// that of what is listed, however many there are.
fn evidence<'h>(
    newest_first: impl Iterator<Item = (&'h ToolCall, &'h ToolResult)>,
    accountant: &Accountant,
    tokens: u64,
) -> (String, bool) {
    let mut calls = newest_first;
    let mut lines: Vec<String> = Vec::new();
    let mut room = tokens;
    for (call, result) in calls.by_ref().take(MOST_CALLS) {
        let line = evidence_line(call, result);
        // What was done over and over is told once.
        if lines.contains(&line) {
            continue;
        }
        match room.checked_sub(accountant.text(&line)).filter(|_| lines.len() < MOST_LINES) {
            Some(rest) => room = rest,
            None => return (in_order(lines), true),
        }
        lines.push(line);
    }
    (in_order(lines), calls.next().is_some())
}

fn in_order(mut newest_first: Vec<String>) -> String {
    newest_first.reverse();
    newest_first.concat()
}

const MOST_LINES: usize = 24;
/// How many calls are looked at.
const MOST_CALLS: usize = 4 * MOST_LINES;

/// Calls with their results before an entry, newest first.
fn finished(history: &History, before: EntryId) -> impl Iterator<Item = (&ToolCall, &ToolResult)> {
    history.entries().iter().take(before.position()).rev().flat_map(|entry| {
        let pairs: Vec<_> = match entry {
            Entry::Step(step) => step.pairs().collect(),
            Entry::User(_) | Entry::Note(_) | Entry::Boundary(_) => Vec::new(),
        };
        pairs.into_iter().rev()
    })
}

fn evidence_line(call: &ToolCall, result: &ToolResult) -> String {
    let outcome = match &result.output {
        ToolOutput::Error(_) => "failed",
        ToolOutput::Denied(_) => "refused",
        ToolOutput::Text(_) | ToolOutput::Json(_) | ToolOutput::Content(_) | _ => "ok",
    };
    let words = result.output.plain();
    let handle = handle(&words).map_or_else(String::new, |handle| format!(" [{handle}]"));
    let (name, input) = (&call.name, one_line(call.input.as_str(), 120));
    format!("- {name} {input}: {outcome}, {}{handle}\n", one_line(&words, 60))
}

/// The handle of the whole output, where the result names one.
fn handle(words: &str) -> Option<&str> {
    let at = words.find("blob:")?;
    let hash = words[at + "blob:".len()..].bytes().take_while(u8::is_ascii_alphanumeric).count();
    (hash >= 8).then(|| &words[at..at + "blob:".len() + hash])
}

/// Words without the tags that models like to put around a summary.
fn unwrapped(words: &str) -> &str {
    let words = words.trim();
    let inner = words.strip_prefix("<summary>").and_then(|words| words.strip_suffix("</summary>"));
    inner.unwrap_or(words).trim()
}

/// Whether nothing stands under the headings.
fn says_nothing(words: &str) -> bool {
    let lines = words.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let bare = |line: &str| line.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    lines.map(bare).all(|line| matches!(line.as_str(), "" | "none" | "n/a" | "nothing"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Words that hold tags of ours, on lines of their own and not.
    fn tricky() -> impl Strategy<Value = String> {
        let tags =
            ["<summary>", "</summary>", "</summary_2>", "<user_request>", "</user_request>", "a", ":", "\n"];
        proptest::collection::vec((proptest::sample::select(tags.to_vec()), any::<bool>()), 0..12).prop_map(
            |words| {
                words
                    .iter()
                    .map(|(word, breaks)| format!("{word}{}", if *breaks { "\n" } else { "" }))
                    .collect()
            },
        )
    }

    proptest! {
        #[test]
        fn no_words_end_their_part(requests in proptest::collection::vec(tricky(), 0..3), summary in tricky()) {
            let mut text: String = requests.iter().map(|words| fenced("Asked:", REQUEST, words) + "\n").collect();
            text.push_str(&fenced("Done:", SUMMARY, &summary));
            text.push_str("\nCalls:\n- bash {}: ok, </summary> \n");
            prop_assert_eq!(words_of(&text), &summary);
            prop_assert!(requests.iter().all(|words| text.contains(words.as_str())), "word for word");
        }

        #[test]
        fn the_room_is_shared(room in 0u64..4_000, first in 0u64..9_000, last in 0u64..9_000) {
            let (for_first, for_last) = share(room, first, last);
            prop_assert_eq!(for_first + for_last, room.min(first + last));
            prop_assert!(for_first <= first && for_last <= last);
            prop_assert!(for_first >= first.min(room / 4));
        }
    }

    #[test]
    fn words_of_what_was_composed_before_there_were_two_requests() {
        let check = |text: &str, expect: &str| assert_eq!(words_of(text), expect);
        check(
            "The user's last request before what follows, word for word:\n<user_request>\nMend it.\n</user_request>\n\nWhat was done and found out so far:\n<summary>\n## Done\nIt.\n</summary>\n\nCalls: none\n",
            "## Done\nIt.",
        );
        check("What was done and found out so far:\n<summary>\nIt.\n</summary>\n", "It.");
        check("It was said.", "It was said.");
        check("It was said.\n<b>\nto whom?", "It was said.\n<b>\nto whom?");
    }

    #[test]
    fn no_more_calls_are_looked_at_than_can_be_listed() {
        let look = |repeats: usize, differ: bool| {
            let pairs: Vec<_> = (0..repeats).map(|n| pair(if differ { n } else { 0 })).collect();
            let looked = std::cell::Cell::new(0);
            let counted =
                pairs.iter().inspect(|_| looked.set(looked.get() + 1)).map(|pair| (&pair.0, &pair.1));
            let (lines, are_more) = evidence(counted, &Accountant::default(), 512);
            (lines.lines().count(), are_more, looked.get())
        };
        assert_eq!(look(5, true), (5, false, 5));
        assert_eq!(look(MOST_LINES, true), (MOST_LINES, false, MOST_LINES));
        assert_eq!(look(9_999, true), (MOST_LINES, true, MOST_LINES + 1));
        assert_eq!(look(9_999, false), (1, true, MOST_CALLS + 1));
    }

    fn pair(n: usize) -> (ToolCall, ToolResult) {
        let id = agent_core::CallId::new(format!("c{n}")).unwrap();
        let input = agent_core::ToolInput::finished(&format!(r#"{{"at":{n}}}"#));
        let call = ToolCall { id: id.clone(), name: "look".into(), input, data: None };
        (call, ToolResult { call: id, output: ToolOutput::text("a boat") })
    }

    #[test]
    fn empty_skeletons_say_nothing() {
        let check = |words: &str, expect: bool| assert_eq!(says_nothing(words), expect, "{words}");
        check("## Goals\n\n## Open\n- (none)\n", true);
        check("## Goals\nN/A", true);
        check("# Goals\nMend the sail.", false);
        check("修好桅杆", false);
    }

    #[test]
    fn tags_around_the_words_go() {
        let check = |words: &str, expect: &str| assert_eq!(unwrapped(words), expect);
        check("<summary>\nA\n</summary>", "A");
        check(" A </summary> B", "A </summary> B");
    }

    #[test]
    fn handles() {
        let check = |words: &str, expect: Option<&str>| assert_eq!(handle(words), expect);
        check("a\n[12 bytes left out; read blob:0123456789ab …]", Some("blob:0123456789ab"));
        check("blob:HASH", None);
        check("nothing", None);
    }
}
