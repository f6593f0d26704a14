//! Steps that fail one after the other.

use crate::stop::{Stop, StopCondition, StopCx};

/// How many are usual (requirement L4).
pub const DEFAULT_FAILURES: u32 = 3;

/// Ends the turn after so many failed steps in a row; see [`consecutive_failures`].
#[derive(Debug, Clone, Copy)]
pub struct ConsecutiveFailures {
    steps: u32,
}

/// Ends the turn, as `circuit_open`, when all calls of `steps` steps in a row failed or were refused; 0 counts as 1.
///
/// ```
/// use agent_turn::{DEFAULT_FAILURES, StopConditionExt, consecutive_failures, step_count};
/// let stop = step_count(40).or(consecutive_failures(DEFAULT_FAILURES));
/// # let _ = stop;
/// ```
pub fn consecutive_failures(steps: u32) -> ConsecutiveFailures {
    ConsecutiveFailures { steps: steps.max(1) }
}

impl StopCondition for ConsecutiveFailures {
    fn check(&self, cx: &StopCx<'_>) -> Option<Stop> {
        (cx.streak.failed >= self.steps).then_some(Stop::Failures(self.steps))
    }

    fn name(&self) -> String {
        Stop::Failures(self.steps).to_string()
    }
}
