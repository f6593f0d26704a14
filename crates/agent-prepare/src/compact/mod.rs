//! Compaction: one cascade of tiers from cheap to dear, and the machine that runs it.

mod blocked;
mod clear;
mod clip;
mod compose;
mod machine;
mod notes;
mod price;
mod put_back;
mod resume;
mod shrink;
mod summarise;
mod target;
mod transcript;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tier_tests;
#[cfg(test)]
mod world;

use std::fmt;
use std::sync::Arc;

use agent_core::{Accountant, CompactionState, EntryId, History, ModelProfile, Note, Rewrite, Slots};

use crate::{Answer, Ask, ContextState, Synthesised};

pub use clear::Clear;
pub use machine::Compacting;
pub use notes::Notes;
pub use resume::{resumed, round_words};
pub use shrink::Shrink;
pub use summarise::Summarise;
pub use transcript::in_words;

/// The tiers of compaction in their order, and when they begin (requirement P5).
///
/// ```
/// use agent_core::{Accountant, CompactionState, EntryId, History, ModelProfile, Slots};
/// use agent_prepare::{Cascade, Cause, Clear, CompactCx, Move, Notes, Shrink};
///
/// // Never asks a model, and begins when seven tenths of the window are used.
/// let cascade = Cascade::new().then(Clear::default()).then(Notes).then(Shrink).threshold_percent(70);
///
/// let model = ModelProfile::conservative("acme", "harbour-1");
/// let (history, accountant, slots) = (History::new(), Accountant::default(), Slots::default());
/// let cx = CompactCx {
///     history: &history,
///     accountant: &accountant,
///     model: &model,
///     apart: None,
///     cached: false,
///     slots: &slots,
///     state: CompactionState::default(),
///     turn_from: EntryId::at(0),
/// };
/// let mut look = cascade.begin(Cause::Continuation);
/// assert_eq!(look.advance(&cascade, &cx), Move::Settled);
/// ```
#[derive(Debug, Clone)]
pub struct Cascade {
    tiers: Vec<Arc<dyn Tier>>,
    /// Whether it begins by itself.
    auto: bool,
    /// The share of the window at which it begins at the latest, in percent.
    percent: u8,
}

/// Makes the context smaller in one way. Synchronous and pure, like a stage: called again with the same context, it
/// offers the same.
///
/// A tier lands under [`TierCx::target`] or passes, so that the next one has its turn: what slides down step by step
/// costs the provider's cache each time. A boundary that saves less than a twentieth is not written and counts as a
/// failure.
///
/// ```
/// use agent_core::{Rewrite, Text};
/// use agent_prepare::{Cascade, Tier, TierCx, TierVerdict};
///
/// /// Forgets what was said before this turn.
/// #[derive(Debug)]
/// struct Forget;
///
/// impl Tier for Forget {
///     fn name(&self) -> &'static str {
///         "forget"
///     }
///
///     fn run(&self, cx: &TierCx<'_>) -> TierVerdict {
///         let text = Text::or("What was said before is forgotten.", "Forgotten.");
///         let strip_reasoning = cx.of.model.binds_thinking_to_prefix;
///         let rewrite = Rewrite::Summary { text, kept_from: cx.of.turn_from, strip_reasoning };
///         if cx.after(&rewrite) <= cx.target { TierVerdict::Rewrite(rewrite) } else { TierVerdict::Pass }
///     }
/// }
///
/// let cascade = Cascade::standard().then(Forget);
/// # let _ = cascade;
/// ```
pub trait Tier: fmt::Debug + Send + Sync {
    /// Its name, as events tell it.
    fn name(&self) -> &'static str;

    /// What it offers.
    fn run(&self, cx: &TierCx<'_>) -> TierVerdict;
}

/// Why the context is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "each cause has its own rules")]
pub enum Cause {
    /// A turn's first step: nothing is in flight, so dear tiers may come at once (requirement P4).
    First,
    /// A later step: cheap tiers come first.
    Continuation,
    /// The provider refused a request because it is too long (requirement P10). The breaker is passed by once.
    Overflow,
    /// The user asked for it. The breaker and the blocking limit are passed by.
    Manual,
}

/// What the machine looks at. All of it is lent.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "written as a literal by drivers and tests")]
pub struct CompactCx<'a> {
    /// The conversation.
    pub history: &'a History,
    /// Its tokens; it has followed the history.
    pub accountant: &'a Accountant,
    /// The model of the session.
    pub model: &'a ModelProfile,
    /// The model that is asked apart, when it is another one.
    pub apart: Option<&'a ModelProfile>,
    /// Whether the provider may still have in its cache what the last request held, and would find it there for a question
    /// to the session's model behind the conversation.
    pub cached: bool,
    /// The todo list and other state that tools share.
    pub slots: &'a Slots,
    /// What compactions before left.
    pub state: CompactionState,
    /// Position of the turn's first entry.
    pub turn_from: EntryId,
}

/// What a tier looks at.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "written as a literal by tests of tiers")]
pub struct TierCx<'a> {
    /// What the machine looks at.
    pub of: CompactCx<'a>,
    /// Why.
    pub cause: Cause,
    /// How full the context is.
    pub tokens: ContextState,
    /// Tokens to come down to.
    pub target: u64,
    /// How often this tier asked before in this look.
    pub asked: u32,
    /// The answer to what this tier asked.
    pub answer: Option<&'a Answer>,
}

/// What a tier offers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the machine must handle every verdict")]
pub enum TierVerdict {
    /// It has nothing to offer here. That is no failure, unless it asked a model before: then it asked in vain.
    Pass,
    /// This boundary.
    Rewrite(Rewrite),
    /// It needs words of a model, and is called again with the answer.
    Ask(Ask),
    /// It tried and could not.
    Failed(String),
}

/// What the driver does next.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must handle every move")]
pub enum Move {
    /// Compaction is over, or was not needed. A request may be sent; after [`Cause::Manual`], whether the context is
    /// below the blocking limit is looked at when the next turn begins.
    Settled,
    /// Ask, and give the answer to [`Compacting::answer`].
    Ask {
        /// The tier.
        tier: &'static str,
        /// The question.
        ask: Ask,
    },
    /// Store whole what the boundary will clip, where it says so ([`Rewrite::Cleared`], `offloaded`); then append it and the
    /// notes behind it, clear the read stamps, and commit. A driver without a store for that says `offloaded: false` in it.
    Rewrite(Compacted),
    /// A tier failed; the history stays as it is and the next tier has its turn.
    Failed {
        /// The tier.
        tier: &'static str,
        /// Why, for people.
        why: String,
    },
    /// No request may be sent: the turn ends with these words (requirement P9).
    Blocked(Synthesised),
}

/// A compaction to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a record read by drivers")]
pub struct Compacted {
    /// The tier.
    pub tier: &'static str,
    /// The boundary.
    pub rewrite: Rewrite,
    /// State put back behind it (requirement P14).
    pub notes: Vec<Note>,
    /// Tokens before.
    pub before: u64,
    /// Tokens after, estimated.
    pub after: u64,
}

impl TierCx<'_> {
    /// Tokens of the next request if the history got this boundary now, in the measure of [`Self::tokens`]: an estimate
    /// scaled by what the provider's count was worth.
    pub fn after(&self, rewrite: &Rewrite) -> u64 {
        target::after(self.of.accountant, self.of.history, self.tokens.used, rewrite)
    }
}

impl Default for Cascade {
    fn default() -> Self {
        Self::standard()
    }
}

impl Cascade {
    /// Clearing of old tool results, session notes, a summary, and at last shrinking what is too large by itself.
    pub fn standard() -> Self {
        Self::new().then(Clear::default()).then(Notes).then(Summarise::default()).then(Shrink)
    }

    /// A cascade without tiers.
    pub fn new() -> Self {
        Self { tiers: Vec::new(), auto: true, percent: 90 }
    }

    /// Appends a tier.
    #[must_use]
    pub fn then(mut self, tier: impl Tier + 'static) -> Self {
        self.tiers.push(Arc::new(tier));
        self
    }

    /// Compacts only when asked to, or when the provider refuses a request as too long.
    #[must_use]
    pub fn manual(mut self) -> Self {
        self.auto = false;
        self
    }

    /// The share of the window, 1 to 99 percent, at which it begins at the latest; 90 by default.
    #[must_use]
    pub fn threshold_percent(mut self, percent: u8) -> Self {
        self.percent = percent.clamp(1, 99);
        self
    }

    /// The tiers' names, in order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.tiers.iter().map(|tier| tier.name())
    }

    /// Whether it begins by itself.
    pub fn is_auto(&self) -> bool {
        self.auto
    }

    /// How full a context is.
    pub fn measure(&self, accountant: &Accountant, model: &ModelProfile) -> ContextState {
        ContextState {
            used: accountant.used(),
            fixed: accountant.fixed(),
            thresholds: crate::Thresholds::of(model, self.percent),
        }
    }

    /// The machine for one look at a context.
    pub fn begin(&self, cause: Cause) -> Compacting {
        Compacting::new(cause)
    }
}
