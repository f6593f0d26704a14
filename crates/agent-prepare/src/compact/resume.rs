//! A session that is taken up again: what was said of its older turns stands for them (requirement D5).

use agent_core::{Entry, EntryId, History, Rewrite, RoundSummary, Text};

use super::{CompactCx, Compacted, put_back, target};

/// The boundary that lets the words of rounds stand for all but the newest `keep` of them, without asking a model; `None`
/// where rounds are missing between the newest boundary and there, or where that would make nothing smaller.
///
/// Where no provider has the conversation cached any more, nothing is lost by it.
pub fn resumed(rounds: &[RoundSummary], keep: usize, cx: &CompactCx<'_>) -> Option<Compacted> {
    let (from, before) = start(cx.history);
    let mut newer = RoundSummary::standing(rounds);
    newer.retain(|round| round.to > from);
    let covered = newer.get(..newer.len().checked_sub(keep)?).filter(|covered| !covered.is_empty())?;
    let kept_from = newer.get(covered.len()).map_or(cx.turn_from, |round| round.from);
    if !follows(from, &newer, cx.turn_from) {
        return None;
    }
    let rewrite = Rewrite::Summary {
        text: text(before, covered)?,
        kept_from,
        strip_reasoning: cx.model.binds_thinking_to_prefix,
    };
    let used = cx.accountant.used();
    let after = target::after(cx.accountant, cx.history, used, &rewrite);
    let notes = put_back::notes(&rewrite, cx.slots);
    (after < used).then_some(Compacted { tier: RESUME, rewrite, notes, before: used, after })
}

/// The tier's name in events.
const RESUME: &str = "resume";

/// Where the conversation begins that a model sees, and what stands for what is before it.
fn start(history: &History) -> (EntryId, Option<&Text>) {
    let newest = history.entries().iter().rev().find_map(|entry| match entry {
        Entry::Boundary(Rewrite::Summary { text, kept_from, .. }) => Some((*kept_from, Some(text))),
        Entry::Boundary(Rewrite::Cleared { .. }) | Entry::User(_) | Entry::Step(_) | Entry::Note(_) => None,
    });
    newest.unwrap_or((EntryId::at(0), None))
}

/// Whether each round begins where the one before ended, from the beginning to the turn at work.
fn follows(from: EntryId, rounds: &[&RoundSummary], end: EntryId) -> bool {
    let begins = rounds.first().is_some_and(|first| first.from <= from);
    let ends = rounds.last().is_some_and(|last| last.to == end);
    begins && ends && rounds.windows(2).all(|pair| pair[0].to == pair[1].from)
}

fn text(before: Option<&Text>, covered: &[&RoundSummary]) -> Option<Text> {
    let mut lines: Vec<String> = before.map(|text| text.as_str().to_owned()).into_iter().collect();
    lines.extend(covered.iter().map(|round| round_words(round)));
    Text::new(lines.join("\n\n"))
}

/// What was said of a turn, or of several, under a heading.
pub fn round_words(round: &RoundSummary) -> String {
    let (turn, words) = (round.turn, round.text.as_str());
    match round.since {
        Some(since) => format!("## Turns {since} to {turn}\n{words}"),
        None => format!("## Turn {turn}\n{words}"),
    }
}
