//! The opposite of a condition.

use crate::stop::{Stop, StopCondition, StopCx};

/// The opposite of a condition; see [`crate::StopConditionExt::not`].
///
/// ```
/// use agent_turn::{StopConditionExt, step_count, todos_done, tool_called};
///
/// // The todo list is done, and the last step was not yet another edit.
/// let rest = todos_done().and(tool_called("edit_file").not());
/// let stop = step_count(40).or(rest);
/// # let _ = stop;
/// ```
#[derive(Debug, Clone)]
pub struct Not<C>(C);

impl<C> Not<C> {
    pub(crate) fn new(condition: C) -> Self {
        Self(condition)
    }
}

impl<C: StopCondition> StopCondition for Not<C> {
    fn check(&self, cx: &StopCx<'_>) -> Option<Stop> {
        self.0.check(cx).is_none().then(|| Stop::Custom(self.name()))
    }

    fn name(&self) -> String {
        format!("not({})", self.0.name())
    }
}
