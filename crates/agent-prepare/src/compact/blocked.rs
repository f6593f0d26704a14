//! The answer in place of a model that cannot be asked (requirement P9).

use agent_core::{Entry, EntryId, Rendered, TerminalReason, Text};

use super::machine::BREAKER;
use super::{Cause, CompactCx};
use crate::{ContextState, Level, Synthesised};

/// What the words need to know beside the context.
#[derive(Debug, Clone, Copy)]
pub(super) struct Why {
    pub(super) cause: Cause,
    pub(super) auto: bool,
    pub(super) failures: u32,
}

/// Says how full the context is, which part of it is fixed, what is in the way, and what can be done.
pub(super) fn blocked(cx: &CompactCx<'_>, tokens: &ContextState, why: Why) -> Synthesised {
    let ContextState { used, fixed, thresholds } = tokens;
    let begin = if why.cause == Cause::Overflow && tokens.level() < Level::Blocked {
        format!(
            "I cannot go on: the provider refused the conversation as too long, and it could not be made smaller. By count it has about {used} tokens."
        )
    } else {
        let limit = thresholds.blocking;
        format!(
            "I cannot go on: the conversation has about {used} tokens, and at most {limit} can be sent to this model."
        )
    };
    let what = advice(cx, tokens, why);
    let words = format!(
        "{begin} Of these, {fixed} are the system prompt and the tools, which no compaction makes smaller. {what}"
    );
    Synthesised { text: Text::or(words, "I cannot go on."), reason: TerminalReason::BlockingLimit }
}

fn advice(cx: &CompactCx<'_>, tokens: &ContextState, why: Why) -> String {
    let ContextState { fixed, thresholds, .. } = tokens;
    let largest = largest_message(cx);
    if *fixed >= thresholds.autocompact {
        return "They leave no room for a conversation: give the agent fewer tools or a shorter system prompt, or a model with a larger window.".to_owned();
    }
    if largest > thresholds.blocking.saturating_sub(*fixed) / 2 {
        return format!(
            "One message of the user has {largest} of them: begin a new session, and put what it holds into a file that can be read in parts."
        );
    }
    if !why.auto {
        return "Compaction does not begin by itself in this session: compact it by hand, and go on."
            .to_owned();
    }
    let failures = why.failures;
    if failures >= BREAKER {
        return format!(
            "Compaction failed {failures} times in a row and is not tried again by itself: compact the session by hand, or begin a new one."
        );
    }
    "Compact the session by hand, or begin a new one.".to_owned()
}

/// Tokens of the largest message of the user that is shown.
fn largest_message(cx: &CompactCx<'_>) -> u64 {
    let said = cx.history.view().rendered().filter_map(|piece| match piece {
        Rendered::Entry { id, entry: Entry::User(_), .. } => Some(id),
        Rendered::Entry { .. } | Rendered::Summary { .. } | Rendered::Continue => None,
    });
    said.map(|id: EntryId| cx.accountant.entry_tokens(id)).max().unwrap_or(0)
}
