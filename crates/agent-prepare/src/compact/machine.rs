//! The machine that runs a cascade: when it begins, which tier is next, and when it gives up.

use agent_core::{CompactionState, Rewrite};

use super::blocked::{Why, blocked};
use super::target::{Scale, low_water};
use super::{Cascade, Cause, CompactCx, Compacted, Move, Tier, TierCx, TierVerdict};
use crate::{Answer, ContextState, Level, Thresholds};

/// One look at a context: asked for its next move until it is settled or blocked.
///
/// The history is changed by the driver between two moves, so that every tier looks at what the one before left. Each
/// tier has one turn, and at most four questions in it, so that every look ends. A look counts as one failure at most
/// (requirement P11): when a tier asked a model in vain, or when what was tried did not reach the target.
#[derive(Debug, Clone)]
pub struct Compacting {
    cause: Cause,
    phase: Phase,
    /// The tier whose turn it is.
    at: usize,
    /// How often it asked.
    asks: u32,
    answer: Option<Answer>,
    tried: Tried,
    state: CompactionState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing was decided yet.
    Fresh,
    /// Tiers have their turns.
    Running(Aim),
    Over,
}

/// What a look that compacts is after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Aim {
    /// Tokens to come down to.
    target: u64,
    scale: Scale,
    /// Whether a model may be asked. When the breaker is open, only what costs nothing is tried, and only where no
    /// request could be sent otherwise.
    may_ask: bool,
}

/// What came of a look so far.
#[derive(Debug, Clone, Copy, Default)]
struct Tried {
    wrote: bool,
    failed: bool,
    asked_in_vain: bool,
}

/// Failures in a row after which nothing is tried any more (requirement P11).
pub(super) const BREAKER: u32 = 3;
/// How often one tier may ask in one look.
const MOST_ASKS: u32 = 4;
/// A twentieth: what lies within it of a threshold does nothing, and what saves less is no progress.
const SLACK: u64 = 20;
/// Steps between two compactions, at least, where they have room in the window.
const FEWEST_STEPS: usize = 5;

impl Compacting {
    pub(super) fn new(cause: Cause) -> Self {
        Self {
            cause,
            phase: Phase::Fresh,
            at: 0,
            asks: 0,
            answer: None,
            tried: Tried::default(),
            state: CompactionState::default(),
        }
    }

    /// Gives the answer to the last [`Move::Ask`].
    pub fn answer(&mut self, answer: Answer) {
        self.answer = Some(answer);
    }

    /// What is to be kept of it, to be stored with the session when the look is over. Before the first move it is
    /// that of a new session.
    pub fn state(&self) -> CompactionState {
        self.state
    }

    /// Whether the first move would let tiers have their turn, so that a driver can fetch what they need only then. Nothing
    /// is decided by it.
    pub fn would_begin(&self, cascade: &Cascade, cx: &CompactCx<'_>) -> bool {
        let tokens = cascade.measure(cx.accountant, cx.model);
        let after = cx.state.after.min(tokens.used);
        let looks = Self { state: CompactionState { after, ..cx.state }, ..Self::new(self.cause) };
        self.phase == Phase::Fresh && looks.begin(cascade, cx, &tokens) != Phase::Over
    }

    /// What to do next. The accountant has followed the history before each call.
    pub fn advance(&mut self, cascade: &Cascade, cx: &CompactCx<'_>) -> Move {
        let mut tokens = cascade.measure(cx.accountant, cx.model);
        if self.phase == Phase::Fresh {
            self.state = cx.state;
            // A provider, another model or a stopped look made it smaller since: it grows from there.
            self.state.after = self.state.after.min(tokens.used);
            self.phase = self.begin(cascade, cx, &tokens);
        }
        let Phase::Running(aim) = self.phase else { return self.settle(cascade, cx, &tokens) };
        if self.tried.wrote {
            // What was reported is gone with the boundary; the estimate goes by what the report was worth.
            tokens.used = tokens.used.max(aim.scale.apply(cx.accountant.estimated(cx.history)));
        }
        while let Some(tier) = cascade.tiers.get(self.at).filter(|_| !self.is_reached(&tokens, aim)) {
            if let Some(next) = self.turn_of(tier.as_ref(), cx, tokens, aim) {
                return next;
            }
        }
        self.end(&tokens, aim);
        self.settle(cascade, cx, &tokens)
    }
}

impl Compacting {
    /// Whether anything is to be done now, and what for (requirements P8, P11).
    fn begin(&self, cascade: &Cascade, cx: &CompactCx<'_>, tokens: &ContextState) -> Phase {
        let is_open = self.state.failures >= BREAKER;
        let (is_due, may_ask) = match self.cause {
            Cause::Manual | Cause::Overflow => (true, true),
            Cause::First | Cause::Continuation => {
                let trigger = tokens.thresholds.autocompact;
                let is_over = tokens.used > trigger.saturating_add(trigger / SLACK);
                let grew = tokens.used > self.state.after.saturating_add(trigger / SLACK)
                    && self.is_worth_it_again(cx, tokens);
                let is_blocked = tokens.level() == Level::Blocked;
                (cascade.auto && (is_blocked || (is_over && grew && !is_open)), !is_open)
            }
        };
        if !is_due {
            return Phase::Over;
        }
        let scale = Scale::of(tokens.used, cx.accountant.estimated(cx.history));
        Phase::Running(Aim { target: low_water(cx, tokens, self.cause, scale), scale, may_ask })
    }

    /// Whether several steps were made since the last compaction. A threshold can lie below what no compaction makes
    /// smaller, so that each of the next steps is over it again; where the window has room, these come first.
    fn is_worth_it_again(&self, cx: &CompactCx<'_>, tokens: &ContextState) -> bool {
        let is_first = self.state.after == 0;
        let is_full = || tokens.used > Thresholds::of(cx.model, 99).autocompact;
        let steps = || {
            let scale = Scale::of(tokens.used, cx.accountant.estimated(cx.history));
            let growth = cx.accountant.growth(cx.history, FEWEST_STEPS);
            scale.apply(growth.saturating_mul(FEWEST_STEPS as u64))
        };
        is_first || is_full() || tokens.used >= self.state.after.saturating_add(steps())
    }

    /// Whether no further tier is needed.
    fn is_reached(&self, tokens: &ContextState, aim: Aim) -> bool {
        // What the user or the provider asked for is tried, however few tokens are counted.
        let must_try = !self.tried.wrote && matches!(self.cause, Cause::Manual | Cause::Overflow);
        tokens.used <= aim.target && !must_try
    }

    /// Lets a tier have its turn; `None` when it has nothing to offer.
    fn turn_of(
        &mut self,
        tier: &dyn Tier,
        cx: &CompactCx<'_>,
        tokens: ContextState,
        aim: Aim,
    ) -> Option<Move> {
        let answer = self.answer.take();
        let (cause, target, asked) = (self.cause, aim.target, self.asks);
        let verdict = tier.run(&TierCx { of: *cx, cause, tokens, target, asked, answer: answer.as_ref() });
        match verdict {
            TierVerdict::Ask(ask) if aim.may_ask && self.asks < MOST_ASKS => {
                self.asks += 1;
                Some(Move::Ask { tier: tier.name(), ask })
            }
            TierVerdict::Ask(_) if aim.may_ask => {
                let why = format!("it asked {MOST_ASKS} times and was still not content");
                Some(self.failed(tier.name(), why))
            }
            TierVerdict::Pass if self.asks > 0 => {
                let why = "it asked a model, and had nothing to offer then".to_owned();
                Some(self.failed(tier.name(), why))
            }
            TierVerdict::Pass | TierVerdict::Ask(_) => {
                self.next();
                None
            }
            TierVerdict::Failed(why) => Some(self.failed(tier.name(), why)),
            TierVerdict::Rewrite(rewrite) => Some(self.rewrite(tier.name(), rewrite, &tokens, cx)),
        }
    }

    fn next(&mut self) {
        (self.at, self.asks) = (self.at + 1, 0);
    }

    fn failed(&mut self, tier: &'static str, why: String) -> Move {
        self.tried.failed = true;
        self.tried.asked_in_vain |= self.asks > 0;
        self.next();
        Move::Failed { tier, why }
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
        let (before, used) = (tokens.used, tokens.used);
        let after = super::target::after(cx.accountant, cx.history, used, &rewrite).saturating_add(more);
        if after.saturating_add((before / SLACK).max(1)) > before {
            let why = format!("it would leave {after} of {before} tokens, which is no progress");
            return self.failed(tier, why);
        }
        self.tried.wrote = true;
        self.next();
        Move::Rewrite(Compacted { tier, rewrite, notes, before, after })
    }

    /// No tier is left, or none is needed: counts what came of it.
    fn end(&mut self, tokens: &ContextState, aim: Aim) {
        let Tried { wrote, failed, asked_in_vain } = self.tried;
        if wrote {
            self.state.after = tokens.used;
        }
        let reached = wrote && tokens.used <= aim.target;
        if asked_in_vain || (!reached && (wrote || failed)) {
            self.state.failures = self.state.failures.saturating_add(1);
        } else if reached && aim.may_ask {
            self.state.failures = 0;
        }
        self.phase = Phase::Over;
    }

    fn settle(&self, cascade: &Cascade, cx: &CompactCx<'_>, tokens: &ContextState) -> Move {
        let is_blocked = match self.cause {
            Cause::Manual => false,
            // The same request would be refused again.
            Cause::Overflow => !self.tried.wrote || tokens.level() == Level::Blocked,
            Cause::First | Cause::Continuation => tokens.level() == Level::Blocked,
        };
        let why = Why { cause: self.cause, auto: cascade.auto, failures: self.state.failures };
        if is_blocked { Move::Blocked(blocked(cx, tokens, why)) } else { Move::Settled }
    }
}
