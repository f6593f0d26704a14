//! Conditions that end a turn after a completed step; one file each.

mod all;
mod any;
mod budget;
mod custom;
mod failures;
mod no_progress;
mod not;
mod step_count;
mod todos_done;
mod tool_called;

use std::fmt::{self, Debug};
use std::sync::Arc;
use std::time::Duration;

use agent_core::{COMPLETE_TOOL, StepRecord, Usage};

pub use all::And;
pub use any::Or;
pub use budget::{CostBudget, TokenBudget, WallClock, cost_budget, token_budget, wall_clock};
pub use custom::{StopWhen, stop_when};
pub use failures::{ConsecutiveFailures, DEFAULT_FAILURES, consecutive_failures};
pub use no_progress::{NoProgress, no_progress};
pub use not::Not;
pub use step_count::{DEFAULT_STEPS, StepCount, step_count};
pub use todos_done::{TodosDone, todos_done};
pub use tool_called::{ToolCalled, tool_called};

/// Decides after each completed step whether the turn ends. Pure: the same step gives the same answer, in whichever
/// process it is asked (requirement L4).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a stop condition",
    note = "use `step_count(n)`, `tool_called(name)`, `stop_when(name, |cx| ..)`, join them with `.or(..)`, or implement `StopCondition`"
)]
pub trait StopCondition: Debug + Send + Sync {
    /// Which condition fired, or `None` to go on.
    fn check(&self, cx: &StopCx<'_>) -> Option<Stop>;

    /// The limit that the next step reaches: the model is warned that it is the last one, and the turn ends after it.
    fn ahead(&self, _cx: &StopCx<'_>) -> Option<Stop> {
        None
    }

    /// What the model is told before its next step, because the condition will fire when it goes on as it does.
    fn advise(&self, _cx: &StopCx<'_>) -> Option<String> {
        None
    }

    /// Its name, for the names of what it is joined in.
    fn name(&self) -> String {
        "custom".to_owned()
    }
}

/// Joins conditions.
pub trait StopConditionExt: StopCondition + Sized {
    /// Ends the turn when either fires. When both do this one is named, unless it is a limit and the other one is not.
    fn or<C: StopCondition>(self, other: C) -> Or<Self, C> {
        Or::new(self, other)
    }

    /// Ends the turn when both fire after the same step. The model is not warned or advised by either alone.
    fn and<C: StopCondition>(self, other: C) -> And<Self, C> {
        And::new(self, other)
    }

    /// Ends the turn when this one does not fire; join it with another by `and`.
    fn not(self) -> Not<Self> {
        Not::new(self)
    }
}

impl<C: StopCondition> StopConditionExt for C {}

impl<C: StopCondition + ?Sized> StopCondition for Arc<C> {
    fn check(&self, cx: &StopCx<'_>) -> Option<Stop> {
        (**self).check(cx)
    }

    fn ahead(&self, cx: &StopCx<'_>) -> Option<Stop> {
        (**self).ahead(cx)
    }

    fn advise(&self, cx: &StopCx<'_>) -> Option<String> {
        (**self).advise(cx)
    }

    fn name(&self) -> String {
        (**self).name()
    }
}

/// What a condition may look at. All of it is saved with the turn, so that a resumed turn decides alike.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "built by tests of conditions too")]
pub struct StopCx<'a> {
    /// Completed steps of this turn, the last one included.
    pub steps: u32,
    /// The last completed step.
    pub last: &'a StepRecord,
    /// Tokens of this turn: those of its completed steps, and those that the driver spent beside them, for example on
    /// attempts that failed.
    pub usage: &'a Usage,
    /// What the turn cost so far, in US dollars, as far as prices are known.
    pub cost_usd: f64,
    /// How long the turn was at work. What it waited for a reply is not in it.
    pub elapsed: Duration,
    /// The todo list after the step.
    pub todos: Todos,
    /// What happened in a row.
    pub streak: Streak,
}

impl<'a> StopCx<'a> {
    /// A look at a step with nothing spent, no todos and no streak.
    pub fn new(steps: u32, last: &'a StepRecord, usage: &'a Usage) -> Self {
        let (elapsed, todos, streak) = Default::default();
        Self { steps, last, usage, cost_usd: 0.0, elapsed, todos, streak }
    }
}

/// The todo list in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "two numbers, written as a literal by drivers")]
pub struct Todos {
    /// Items that are not done.
    pub open: u32,
    /// All items.
    pub all: u32,
}

/// Steps in a row that went the same way, up to the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "built by tests of conditions too")]
pub struct Streak {
    /// Steps whose calls all failed. A step without calls does not count and ends nothing.
    pub failed: u32,
    /// Steps that brought nothing new: each of their calls was made lately with the same input and the same result.
    pub repeated: u32,
}

/// Which condition fired. The terminal reason is derived from it by the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the machine derives a reason from each")]
pub enum Stop {
    /// The step limit.
    Steps(u32),
    /// A tool was called and gave a result.
    Tool(String),
    /// Every item of the todo list is done.
    Todos,
    /// Tokens, money or time ran out; the condition's name.
    Budget(String),
    /// So many steps in a row failed.
    Failures(u32),
    /// The same calls gave the same results.
    NoProgress,
    /// A condition of the user's own, by name.
    Custom(String),
    /// Two at once.
    Both(Box<Stop>, Box<Stop>),
}

impl Stop {
    /// Whether the turn ran into a limit of steps, tokens, money or time.
    pub fn is_limit(&self) -> bool {
        match self {
            Self::Steps(_) | Self::Budget(_) => true,
            Self::Both(first, second) => first.is_limit() && second.is_limit(),
            Self::Tool(_) | Self::Todos | Self::Failures(_) | Self::NoProgress | Self::Custom(_) => false,
        }
    }

    /// Whether a budget of tokens, money or time is spent.
    pub(crate) fn is_spent(&self) -> bool {
        match self {
            Self::Budget(_) => true,
            Self::Both(first, second) => first.is_spent() && second.is_spent(),
            Self::Steps(_)
            | Self::Tool(_)
            | Self::Todos
            | Self::Failures(_)
            | Self::NoProgress
            | Self::Custom(_) => false,
        }
    }

    /// Whether the model said that it is done, by the tool for it.
    pub(crate) fn completes(&self) -> bool {
        match self {
            Self::Tool(tool) => tool == COMPLETE_TOOL,
            Self::Both(first, second) => first.completes() || second.completes(),
            Self::Steps(_)
            | Self::Todos
            | Self::Budget(_)
            | Self::Failures(_)
            | Self::NoProgress
            | Self::Custom(_) => false,
        }
    }
}

/// The name of the condition.
impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Steps(limit) => write!(f, "step_count({limit})"),
            Self::Tool(tool) => write!(f, "tool_called({tool})"),
            Self::Todos => f.write_str("todos_done"),
            Self::Budget(name) | Self::Custom(name) => f.write_str(name),
            Self::Failures(steps) => write!(f, "consecutive_failures({steps})"),
            Self::NoProgress => f.write_str("no_progress"),
            Self::Both(first, second) => write!(f, "{first} and {second}"),
        }
    }
}
