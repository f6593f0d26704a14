//! Conditions that end a turn after a completed step; one file each.

mod any;
mod step_count;
mod tool_called;

use std::fmt::Debug;
use std::sync::Arc;

use agent_core::{StepRecord, Usage};

pub use any::Or;
pub use step_count::{DEFAULT_STEPS, StepCount, step_count};
pub use tool_called::{ToolCalled, tool_called};

/// Decides after each completed step whether the turn ends. Pure: the same step gives the same answer.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a stop condition",
    note = "use `step_count(n)`, `tool_called(name)`, join them with `.or(..)`, or implement `StopCondition`"
)]
pub trait StopCondition: Debug + Send + Sync {
    /// Which condition fired, or `None` to go on.
    fn check(&self, cx: &StopCx<'_>) -> Option<Stop>;
}

/// Joins conditions.
pub trait StopConditionExt: StopCondition + Sized {
    /// Ends the turn when either fires; this one is asked first.
    fn or<C: StopCondition>(self, other: C) -> Or<Self, C> {
        Or::new(self, other)
    }
}

impl<C: StopCondition> StopConditionExt for C {}

impl<C: StopCondition + ?Sized> StopCondition for Arc<C> {
    fn check(&self, cx: &StopCx<'_>) -> Option<Stop> {
        (**self).check(cx)
    }
}

/// What a condition may look at.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "built by tests of conditions too")]
pub struct StopCx<'a> {
    /// Completed steps of this turn, the last one included.
    pub steps: u32,
    /// The last completed step.
    pub last: &'a StepRecord,
    /// Tokens of this turn.
    pub usage: &'a Usage,
}

/// Which condition fired. The terminal reason is derived from it by the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the machine derives a reason from each")]
pub enum Stop {
    /// The step limit.
    Steps(u32),
    /// A tool was called and gave a result.
    Tool(String),
    /// A condition of the user's own, by name.
    Custom(String),
}
