//! Two conditions, either of which ends the turn.

use crate::stop::{Stop, StopCondition, StopCx};

/// Either of two conditions; see [`crate::StopConditionExt::or`].
#[derive(Debug, Clone)]
pub struct Or<A, B> {
    first: A,
    second: B,
}

impl<A, B> Or<A, B> {
    pub(crate) fn new(first: A, second: B) -> Self {
        Self { first, second }
    }
}

impl<A: StopCondition, B: StopCondition> StopCondition for Or<A, B> {
    fn check(&self, cx: &StopCx<'_>) -> Option<Stop> {
        self.first.check(cx).or_else(|| self.second.check(cx))
    }
}
