//! A condition made of a function.

use std::fmt;
use std::sync::Arc;

use crate::stop::{Stop, StopCondition, StopCx};

type Rule = dyn Fn(&StopCx<'_>) -> bool + Send + Sync;

/// A condition made of a function; see [`stop_when`].
#[derive(Clone)]
pub struct StopWhen {
    name: String,
    rule: Arc<Rule>,
}

/// Ends the turn when the function says so, as `stopped(NAME)`. It must say the same of the same step each time.
///
/// ```
/// use agent_turn::{StopConditionExt, step_count, stop_when};
/// let found = stop_when("found", |cx| cx.last.text().contains("Found it"));
/// let stop = step_count(40).or(found);
/// # let _ = stop;
/// ```
pub fn stop_when(
    name: impl Into<String>,
    rule: impl Fn(&StopCx<'_>) -> bool + Send + Sync + 'static,
) -> StopWhen {
    StopWhen { name: name.into(), rule: Arc::new(rule) }
}

impl StopCondition for StopWhen {
    fn check(&self, cx: &StopCx<'_>) -> Option<Stop> {
        (self.rule)(cx).then(|| Stop::Custom(self.name.clone()))
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

impl fmt::Debug for StopWhen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StopWhen").field("name", &self.name).finish_non_exhaustive()
    }
}
