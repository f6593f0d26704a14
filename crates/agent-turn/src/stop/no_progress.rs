//! The same calls with the same results, again and again.

use crate::stop::{Stop, StopCondition, StopCx};

/// Ends a turn that goes in circles; see [`no_progress`].
#[derive(Debug, Clone, Copy)]
pub struct NoProgress {
    patience: u32,
}

/// Ends a turn whose steps only repeat calls that were made lately, with the same input and the same result. After two
/// such steps in a row the model is told so, and only when two more follow the turn ends, as `no_progress`
/// (requirement L4).
///
/// Calls of a circle (read, test, read, test) are found too. A poll that waits for a change is a repetition: let the tool
/// wait instead.
///
/// ```
/// use agent_turn::{StopConditionExt, no_progress, step_count};
/// let stop = step_count(40).or(no_progress().patience(3));
/// # let _ = stop;
/// ```
pub fn no_progress() -> NoProgress {
    NoProgress { patience: 2 }
}

impl NoProgress {
    /// How many repeated steps in a row bring the advice, at least one; twice as many end the turn.
    #[must_use]
    pub fn patience(self, steps: u32) -> Self {
        Self { patience: steps.max(1) }
    }
}

impl StopCondition for NoProgress {
    fn check(&self, cx: &StopCx<'_>) -> Option<Stop> {
        (cx.streak.repeated >= self.patience.saturating_mul(2)).then_some(Stop::NoProgress)
    }

    fn advise(&self, cx: &StopCx<'_>) -> Option<String> {
        (cx.streak.repeated == self.patience).then(|| ADVICE.to_owned())
    }

    fn name(&self) -> String {
        Stop::NoProgress.to_string()
    }
}

const ADVICE: &str = "Your last calls repeat calls you made before, with the same results. Repeating them will not change what comes back. Try another way: other input, another tool, or another idea of the cause. If nothing is left to try, say what you found and what blocks you. If you go on as before, the turn will be ended.";
