//! What stands in the place of a conversation: the request, the summary, evidence of finished work, and how to read again
//! what is covered.

use agent_core::{Entry, EntryId, History, Rewrite, Text, ToolCall, ToolOutput, ToolResult};

use super::clip::{fit, one_line};
use super::target::{Room, request_before};
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
    let after_request = composed.find(REQUEST_END).map_or(0, |at| at + REQUEST_END.len());
    let Some(open) = composed[after_request..].find(OPEN) else { return composed };
    let inner = &composed[after_request + open + OPEN.len()..];
    // Evidence stands in single lines, so that the last closing tag on a line of its own is ours.
    inner.rfind(CLOSE).map_or(composed, |close| &inner[..close])
}

const REQUEST_END: &str = "\n</user_request>\n";
const OPEN: &str = "<summary>\n";
const CLOSE: &str = "\n</summary>\n";

fn composed(cx: &TierCx<'_>, words: &str, kept_from: EntryId) -> Text {
    let room = Room::of(&cx.tokens.thresholds);
    let mut text = String::new();
    if let Some(request) = request(cx, kept_from, room.request) {
        text.push_str("The user's last request before what follows, word for word:\n<user_request>\n");
        text.push_str(&request);
        text.push_str(REQUEST_END);
        text.push('\n');
    }
    text.push_str("What was done and found out so far:\n");
    text.push_str(OPEN);
    text.push_str(words);
    text.push_str(CLOSE);
    let (calls, left_out) = evidence(cx, kept_from, room.evidence);
    if !calls.is_empty() {
        text.push_str(
            "\nCalls that are finished, with what came of them. What succeeded stands; do not do it again",
        );
        if left_out > 0 {
            text.push_str(&format!(" ({left_out} older ones are not listed)"));
        }
        text.push_str(":\n");
        text.push_str(&calls);
        text.push_str(AGAIN);
    }
    Text::or(text, words)
}

const AGAIN: &str = "\nWhat they showed can be seen again: read a file by its path, and an output by the handle (blob:…) named beside its call.\n";

/// What the user asked, word for word unless it is huge.
fn request(cx: &TierCx<'_>, kept_from: EntryId, tokens: u64) -> Option<String> {
    let id = request_before(cx.of.history, kept_from)?;
    let Entry::User(said) = cx.of.history.entries().get(id.position())? else { return None };
    Some(fit(cx.of.accountant, &said.plain(), tokens).into_owned())
}

/// The newest finished calls, oldest first, a line each; and how many more there were.
fn evidence(cx: &TierCx<'_>, kept_from: EntryId, tokens: u64) -> (String, usize) {
    let mut lines: Vec<String> = Vec::new();
    let mut room = tokens;
    let mut left_out = 0;
    for (call, result) in finished(cx.of.history, kept_from) {
        if left_out > 0 || lines.len() == MOST_LINES {
            left_out += 1;
            continue;
        }
        let line = evidence_line(call, result);
        if lines.contains(&line) {
            continue;
        }
        match room.checked_sub(cx.of.accountant.text(&line)) {
            Some(rest) => {
                room = rest;
                lines.push(line);
            }
            None => left_out += 1,
        }
    }
    lines.reverse();
    (lines.concat(), left_out)
}

const MOST_LINES: usize = 24;

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
    use super::*;

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
