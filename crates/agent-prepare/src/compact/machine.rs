//! The machine that runs a cascade: when it begins, which tier is next, and when it gives up.

use agent_core::{CompactionState, Rewrite, TerminalReason, Text};

use super::target::low_water;
use super::{Cascade, Cause, CompactCx, Compacted, Move, TierCx, TierVerdict};
use crate::{Answer, ContextState, Level, Synthesised};

/// One look at a context: asked for its next move until it is settled. The history is changed by the driver between two
/// moves, so that every tier looks at what the one before left.
#[derive(Debug, Clone)]
pub struct Compacting {
    cause: Cause,
    /// The next tier.
    at: usize,
    phase: Phase,
    answer: Option<Answer>,
    /// Whether something was tried that did not reach its target.
    failed: bool,
    /// Whether the history was rewritten.
    wrote: bool,
    state: CompactionState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing was decided yet.
    Fresh,
    /// Tiers have their turns, down to this many tokens.
    Running {
        target: u64,
    },
    Over,
}

/// Failures in a row after which nothing is tried any more (requirement P11).
const BREAKER: u32 = 3;

impl Compacting {
    pub(super) fn new(cause: Cause) -> Self {
        Self {
            cause,
            at: 0,
            phase: Phase::Fresh,
            answer: None,
            failed: false,
            wrote: false,
            state: CompactionState::default(),
        }
    }

    /// Gives the answer to the last [`Move::Ask`].
    pub fn answer(&mut self, answer: Answer) {
        self.answer = Some(answer);
    }

    /// What is to be kept of it, to be stored with the session after every move.
    pub fn state(&self) -> CompactionState {
        self.state
    }

    /// What to do next.
    pub fn advance(&mut self, cascade: &Cascade, cx: &CompactCx<'_>) -> Move {
        let tokens = cascade.measure(cx.accountant, cx.model);
        if self.phase == Phase::Fresh {
            self.state = cx.state;
            self.phase = if self.is_due(cascade, &tokens) {
                Phase::Running { target: low_water(cx, &tokens, self.cause) }
            } else {
                Phase::Over
            };
        }
        let Phase::Running { target } = self.phase else { return self.settle(&tokens) };
        while let Some(tier) = cascade.tiers.get(self.at) {
            if self.is_reached(&tokens, target) {
                break;
            }
            let answer = self.answer.take();
            let tier_cx = TierCx { of: *cx, cause: self.cause, tokens, target, answer: answer.as_ref() };
            match tier.run(&tier_cx) {
                TierVerdict::Pass => self.at += 1,
                TierVerdict::Ask(ask) => return Move::Ask { tier: tier.name(), ask },
                TierVerdict::Failed(why) => {
                    (self.at, self.failed) = (self.at + 1, true);
                    return Move::Failed { tier: tier.name(), why };
                }
                TierVerdict::Rewrite(rewrite) => {
                    self.at += 1;
                    return self.rewrite(tier.name(), rewrite, &tokens, cx);
                }
            }
        }
        self.end(&tokens, target)
    }
}

impl Compacting {
    /// Whether anything is to be done now (requirements P8, P11, P12).
    fn is_due(&mut self, cascade: &Cascade, tokens: &ContextState) -> bool {
        match self.cause {
            Cause::Manual | Cause::Overflow => true,
            Cause::First | Cause::Continuation => {
                let trigger = tokens.thresholds.autocompact;
                let is_over = tokens.used > trigger.saturating_add(trigger / SLACK);
                let grew = tokens.used > self.state.after.saturating_add(trigger / SLACK);
                let is_open = self.state.failures >= BREAKER;
                let blocked = tokens.level() == Level::Blocked;
                cascade.auto && (blocked || (is_over && grew)) && !is_open
            }
        }
    }

    /// Whether no further tier is needed.
    fn is_reached(&self, tokens: &ContextState, target: u64) -> bool {
        // What the user or the provider asked for is done at least once.
        let must_try = self.at == 0 && matches!(self.cause, Cause::Manual | Cause::Overflow);
        tokens.used <= target && !must_try
    }

    /// A boundary is worth writing when it makes the context smaller by a margin.
    fn rewrite(
        &mut self,
        tier: &'static str,
        rewrite: Rewrite,
        tokens: &ContextState,
        cx: &CompactCx<'_>,
    ) -> Move {
        let notes = super::put_back::notes(&rewrite, cx.slots);
        let more: u64 = notes.iter().map(|note| cx.accountant.text(note.text.as_str())).sum();
        let after = cx.accountant.would_be(cx.history, &rewrite).saturating_add(more);
        // What was reported and what is estimated differ; both sides of the comparison are estimates.
        let before = cx.accountant.estimated(cx.history);
        if after.saturating_add(before / SLACK) > before {
            self.failed = true;
            let why = format!("it would leave {after} of {before} tokens, which is no progress");
            return Move::Failed { tier, why };
        }
        self.wrote = true;
        Move::Rewrite(Compacted { tier, rewrite, notes, before: tokens.used, after })
    }

    /// No tier is left, or none is needed: counts what came of it.
    fn end(&mut self, tokens: &ContextState, target: u64) -> Move {
        let reached = tokens.used <= target;
        if self.wrote {
            self.state.after = tokens.used;
        }
        if reached {
            self.state.failures = 0;
        } else if self.wrote || self.failed {
            // What does not reach its target counts as a failure, for it would be tried again at once.
            self.state.failures = self.state.failures.saturating_add(1);
        }
        self.phase = Phase::Over;
        self.settle(tokens)
    }

    fn settle(&self, tokens: &ContextState) -> Move {
        let may_be_sent = tokens.level() < Level::Blocked || self.cause == Cause::Manual;
        if may_be_sent { Move::Settled } else { Move::Blocked(blocked(tokens, self.state.failures)) }
    }
}

/// The answer in place of a model that cannot be asked (requirement P9).
fn blocked(tokens: &ContextState, failures: u32) -> Synthesised {
    let ContextState { used, fixed, thresholds } = tokens;
    let why = if *fixed >= thresholds.autocompact {
        format!(
            "The system prompt and the tools alone take {fixed} of them, and nothing of the conversation can make that smaller: give the agent fewer tools or a shorter system prompt, or a model with a larger window."
        )
    } else if failures >= BREAKER {
        format!(
            "Compaction failed {failures} times in a row and is no longer tried by itself: compact the session by hand, or begin a new one."
        )
    } else {
        "Compact the session by hand, or begin a new one.".to_owned()
    };
    let words = format!(
        "I cannot go on: the conversation has about {used} tokens, and at most {limit} can be sent to this model. {why}",
        limit = thresholds.blocking
    );
    // Words that begin with "I" are not blank.
    let text = Text::new(words).unwrap_or_else(|| unreachable!("the words are not blank"));
    Synthesised { text, reason: TerminalReason::BlockingLimit }
}

/// A twentieth: what lies within it of a threshold does nothing, and what saves less is no progress.
const SLACK: u64 = 20;
