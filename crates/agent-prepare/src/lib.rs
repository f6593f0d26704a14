//! prepareStep: what one step's request is made of, decided by stages that only look.
//!
//! Depend on this crate to write a stage or a tier of compaction of your own, or to run the pipeline in a driver of your
//! own: everything here is synchronous and does no I/O.
//!
//! **This crate knows** the [`Pipeline`] and its stages (reminders, narrowing, choosing and forcing a tool, model switch,
//! edits on the provider's side), the [`Thresholds`] of a context window, and compaction as one [`Cascade`] of tiers from
//! cheap to dear. A [`Scene`] tries stages without a driver.
//!
//! **It never knows** how a model is called: who needs words from one returns an [`Ask`] and is called again with the
//! [`Answer`].
//!
//! Only a [`Tier`] can rewrite what was said: a stage adds words for one step ([`Overrides::ephemeral`]) or notes that stay
//! ([`Overrides::append`]).
//!
//! A driver runs the two as machines: [`Compacting`] until it is settled or blocked, with each boundary appended between two
//! [`Move`]s, and then [`Preparing`] until the step is [`Prepared`].
//!
//! A stage is a type with one function. It returns what it changes, and what it does not name stays as it is:
//!
//! ```
//! use agent_prepare::{Overrides, Pipeline, Stage, StageCx, Verdict};
//!
//! /// Asks for an end when the turn grows long.
//! #[derive(Debug)]
//! struct WindUp;
//!
//! impl Stage for WindUp {
//!     fn name(&self) -> &'static str {
//!         "wind_up"
//!     }
//!
//!     fn run(&self, cx: &StageCx<'_>) -> Verdict {
//!         if cx.of.step.number() < 30 {
//!             return Verdict::unchanged();
//!         }
//!         Verdict::Pass(Overrides::default().remind("Finish what you are at, and report."))
//!     }
//! }
//!
//! let pipeline = Pipeline::standard().then(WindUp);
//! assert_eq!(pipeline.names().collect::<Vec<_>>(), ["wind_up"]);
//! ```

mod ask;
mod compact;
mod error;
mod overrides;
mod pipeline;
mod prepared;
mod scene;
mod stage;
mod thresholds;
mod words;

pub use agent_core::Context;
pub use ask::{Answer, Ask, AskFailure, Way};
pub use compact::{
    Cascade, Cause, Clear, CompactCx, Compacted, Compacting, Move, Notes, Shrink, Summarise, Tier, TierCx,
    TierVerdict, in_words, resumed, round_words,
};
pub use error::PrepareError;
pub use overrides::Overrides;
pub use pipeline::{Need, Pipeline, Preparing, StepCx};
pub use prepared::Prepared;
pub use scene::Scene;
pub use stage::{
    ActiveReminders, ActiveTools, Choose, ClearToolUses, FnStage, ForceWhileTodos, Narrow, Reminders,
    ServerCompaction, ServerEdits, Stage, StageCx, SwitchModel, Synthesised, Verdict, stage_fn,
};
pub use thresholds::{ContextState, Level, Thresholds};
pub use words::DIRECTIVE;
