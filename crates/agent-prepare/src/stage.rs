//! A stage: one type, one file, one function that looks and decides.

use std::fmt;

use agent_core::{Cancel, HistoryView, ModelProfile, Slots, StepNo, TerminalReason, Text, ToolCard};

use crate::{Answer, Ask, Context, ContextState, Overrides};

/// Decides something of one step. Synchronous and pure: the same context gives the same verdict, and slow look-ups are
/// made before the pipeline, by a source of context.
pub trait Stage: fmt::Debug + Send + Sync {
    /// Its name, for errors and traces.
    fn name(&self) -> &'static str;

    /// What it changes of the step.
    fn run(&self, cx: &StageCx<'_>) -> Verdict;
}

/// What a stage sees (requirement P1). All of it is lent.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "written as a literal by drivers and by tests of stages")]
pub struct StageCx<'a> {
    /// The step's number in its turn, from 0.
    pub step: StepNo,
    /// Position of the turn's first entry: what lies from there on was said in this turn.
    pub turn_from: agent_core::EntryId,
    /// The model of the step, as stages before chose it.
    pub model: &'a ModelProfile,
    /// The conversation.
    pub history: HistoryView<'a>,
    /// The tools of the session, active or not.
    pub tools: &'a [ToolCard],
    /// The todo list and other state that tools share.
    pub slots: &'a Slots,
    /// What the program shares with its stages.
    pub context: &'a Context,
    /// How full the context is: the step's token budget.
    pub tokens: ContextState,
    /// Whether the run was stopped.
    pub cancel: &'a Cancel,
    /// What stages before changed.
    pub so_far: &'a Overrides,
    /// The answer to what this stage asked.
    pub answer: Option<&'a Answer>,
}

/// What a stage decided.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_enums, reason = "a driver must handle every verdict")]
#[expect(clippy::large_enum_variant, reason = "made a few times a step, and moved once")]
pub enum Verdict {
    /// Go on with these changes; none by default.
    Pass(Overrides),
    /// Ask a model, and call the stage again with the answer.
    Ask(Ask),
    /// End the turn with words in the model's place.
    Finish(Synthesised),
}

/// An answer in the model's place that ends a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a record of words and a reason")]
pub struct Synthesised {
    /// The words.
    pub text: Text,
    /// Why the turn ends.
    pub reason: TerminalReason,
}

impl Verdict {
    /// Nothing is changed.
    pub fn unchanged() -> Self {
        Self::Pass(Overrides::default())
    }
}
