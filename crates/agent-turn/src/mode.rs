//! What a step of words alone means: the end of what was said, or perhaps not yet the end of a task.

use std::fmt;
use std::sync::Arc;

use agent_core::StepRecord;

use crate::StopCondition;

/// How a turn goes on and ends (requirement L3).
#[derive(Debug, Clone, Default)]
#[expect(clippy::exhaustive_enums, reason = "the machine must know every mode")]
pub enum Mode {
    /// Words without calls end the turn.
    #[default]
    Conversation,
    /// There is a task to be done: words without calls may be nudged on, a final output may be due, and open todos make
    /// the end [`agent_core::TerminalReason::TodosIncomplete`].
    Task(Task),
}

/// What a task asks for beyond words.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "a config struct: a literal with ..Task::default()")]
pub struct Task {
    /// Looks at a step of words alone, and may have the model go on.
    pub continue_hook: Option<Arc<dyn ContinueHook>>,
    /// How often it may in one turn; 3 by default.
    pub most_nudges: u32,
    /// The tool whose successful call ends the turn as completed, whatever else the step called.
    pub output_tool: Option<String>,
}

impl Default for Task {
    fn default() -> Self {
        Self { continue_hook: None, most_nudges: 3, output_tool: None }
    }
}

/// Decides whether words without calls were the end. Pure: the same step gives the same answer.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a continue hook",
    note = "make one of a closure with `continue_when(|step| ..)`, or implement `ContinueHook`"
)]
pub trait ContinueHook: fmt::Debug + Send + Sync {
    /// What the model is told so that it goes on; `None` when it is done.
    fn nudge(&self, last: &StepRecord) -> Option<String>;
}

/// A hook made of a function; see [`continue_when`].
#[derive(Clone)]
pub struct ContinueWhen(Arc<Nudge>);

type Nudge = dyn Fn(&StepRecord) -> Option<String> + Send + Sync;

/// A continue hook made of a function.
///
/// ```
/// use agent_turn::continue_when;
/// let tested = continue_when(|step| {
///     (!step.text().contains("tests pass")).then(|| "Run the tests before you end.".to_owned())
/// });
/// # let _ = tested;
/// ```
pub fn continue_when(nudge: impl Fn(&StepRecord) -> Option<String> + Send + Sync + 'static) -> ContinueWhen {
    ContinueWhen(Arc::new(nudge))
}

impl ContinueHook for ContinueWhen {
    fn nudge(&self, last: &StepRecord) -> Option<String> {
        (self.0)(last)
    }
}

impl fmt::Debug for ContinueWhen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ContinueWhen")
    }
}

/// What a turn goes by: the conditions that end it, and its mode. A condition alone is a conversation.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "two borrows, written as a literal by drivers")]
pub struct Rules<'a> {
    /// When the turn ends although the model would go on.
    pub stop: &'a dyn StopCondition,
    /// Whether words without calls end it.
    pub mode: &'a Mode,
}

static CONVERSATION: Mode = Mode::Conversation;

impl<'a> From<&'a dyn StopCondition> for Rules<'a> {
    fn from(stop: &'a dyn StopCondition) -> Self {
        Self { stop, mode: &CONVERSATION }
    }
}

impl<'a, C: StopCondition> From<&'a C> for Rules<'a> {
    fn from(stop: &'a C) -> Self {
        Self { stop, mode: &CONVERSATION }
    }
}

impl Mode {
    /// Whether the step gave the final output.
    pub(crate) fn is_delivered(&self, step: &StepRecord) -> bool {
        let Self::Task(Task { output_tool: Some(tool), .. }) = self else { return false };
        step.pairs().any(|(call, result)| call.name == *tool && !result.output.is_error())
    }
}
