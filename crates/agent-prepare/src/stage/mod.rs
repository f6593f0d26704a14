//! A stage: one type, one file, one function that looks and decides.

mod choose;
mod force_while_todos;
mod narrow;
mod reminders;
mod server_edits;
mod switch_model;

use std::fmt;

use agent_core::{Entry, ModelProfile, StepRecord, TerminalReason, Text};

use crate::{Answer, Ask, Context, Overrides, StepCx};

pub use choose::Choose;
pub use force_while_todos::ForceWhileTodos;
pub use narrow::{ActiveTools, Narrow};
pub use reminders::{ActiveReminders, Reminders};
pub use server_edits::{ClearToolUses, ServerCompaction, ServerEdits};
pub use switch_model::SwitchModel;

/// Decides something of one step. Synchronous and pure: the same context gives the same verdict, and slow look-ups are
/// made before the pipeline, by a source of context. Nor may its work grow with the history: look at the newest entries
/// ([`StageCx::steps`] gives the newest first when reversed), not at all of them (requirement P16).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a stage",
    note = "implement `Stage`, or make one of a function with `agent_prepare::stage_fn`"
)]
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
    /// What all stages of the step look at, the same for each of them.
    pub of: &'a StepCx<'a>,
    /// The model of the step, as stages before chose it.
    pub model: &'a ModelProfile,
    /// What the program shares with its stages, with what stages before added.
    pub context: &'a Context,
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

/// A stage made of a function; see [`stage_fn`].
pub struct FnStage {
    name: &'static str,
    run: Rule<Verdict>,
}

/// A stage made of a function, for one that is too small for a type of its own.
///
/// ```
/// use agent_prepare::{Overrides, Pipeline, stage_fn};
///
/// let brief = stage_fn("brief", |cx| match cx.of.tokens.percent() {
///     0..80 => Overrides::default().into(),
///     _ => Overrides::default().remind("Room is short: be brief.").into(),
/// });
/// assert_eq!(Pipeline::standard().then(brief).names().collect::<Vec<_>>(), ["brief"]);
/// ```
pub fn stage_fn(
    name: &'static str,
    run: impl Fn(&StageCx<'_>) -> Verdict + Send + Sync + 'static,
) -> FnStage {
    FnStage { name, run: Rule::new(run) }
}

impl fmt::Debug for FnStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FnStage").field(&self.name).finish()
    }
}

impl Stage for FnStage {
    fn name(&self) -> &'static str {
        self.name
    }

    fn run(&self, cx: &StageCx<'_>) -> Verdict {
        self.run.of(cx)
    }
}

impl<'a> StageCx<'a> {
    /// The finished steps of this turn, in order.
    pub fn steps(&self) -> impl DoubleEndedIterator<Item = &'a StepRecord> + use<'a> {
        let entries = self.of.history.entries().get(self.of.turn_from.position()..).unwrap_or_default();
        entries.iter().filter_map(Entry::as_step)
    }

    /// Whether a note with these words stands since the user spoke last: within the last 64 entries, and covered by no
    /// summary.
    ///
    /// A step that was prepared and then lost with its process is prepared again. Ask this before you append a note, so
    /// that it is not there twice.
    pub fn stands(&self, words: &str) -> bool {
        crate::words::stands(self.of.history, words)
    }

    /// Whether a tool can be forced in this step: by the model, and with the settings that stages before left.
    pub fn can_force(&self) -> bool {
        self.model.can_force(&self.of.settings.clone().overlaid(&self.so_far.settings))
    }

    /// Whether the session has a tool of this name, and no stage before left it out.
    pub fn has_tool(&self, name: &str) -> bool {
        let is_active = |names: &Vec<String>| names.iter().any(|active| active == name);
        self.of.tools.iter().any(|card| card.name() == name)
            && self.so_far.active_tools.as_ref().is_none_or(is_active)
    }
}

impl Verdict {
    /// Nothing is changed.
    pub fn unchanged() -> Self {
        Self::Pass(Overrides::default())
    }
}

impl From<Overrides> for Verdict {
    fn from(changes: Overrides) -> Self {
        Self::Pass(changes)
    }
}

/// What a stage is told by a function of the program.
pub(crate) struct Rule<T>(Box<RuleFn<T>>);

type RuleFn<T> = dyn Fn(&StageCx<'_>) -> T + Send + Sync;

impl<T> Rule<T> {
    pub(crate) fn new(rule: impl Fn(&StageCx<'_>) -> T + Send + Sync + 'static) -> Self {
        Self(Box::new(rule))
    }

    pub(crate) fn of(&self, cx: &StageCx<'_>) -> T {
        (self.0)(cx)
    }
}

impl<T> fmt::Debug for Rule<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rule")
    }
}
