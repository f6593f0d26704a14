//! A limit on the steps of a turn.

use crate::stop::{Stop, StopCondition, StopCx};

/// The limit used when none is given (requirement L4; 30 to 50 is the usual range).
pub const DEFAULT_STEPS: u32 = 40;

/// Ends the turn after so many steps; see [`step_count`].
#[derive(Debug, Clone, Copy)]
pub struct StepCount {
    limit: u32,
}

/// Ends the turn once `limit` steps are complete; 0 counts as 1, because a step cannot be stopped before it began. Before
/// the last one the model is told that it is the last, so that the turn ends with words; a limit of 1 leaves no step to
/// warn before.
///
/// ```
/// use agent_turn::{StopConditionExt, step_count, tool_called};
/// let stop = step_count(40).or(tool_called("complete"));
/// # let _ = stop;
/// ```
pub fn step_count(limit: u32) -> StepCount {
    StepCount { limit: limit.max(1) }
}

impl Default for StepCount {
    fn default() -> Self {
        step_count(DEFAULT_STEPS)
    }
}

impl StopCondition for StepCount {
    fn check(&self, cx: &StopCx<'_>) -> Option<Stop> {
        (cx.steps >= self.limit).then_some(Stop::Steps(self.limit))
    }

    fn ahead(&self, cx: &StopCx<'_>) -> Option<Stop> {
        (cx.steps.saturating_add(1) == self.limit).then_some(Stop::Steps(self.limit))
    }

    fn name(&self) -> String {
        Stop::Steps(self.limit).to_string()
    }
}
