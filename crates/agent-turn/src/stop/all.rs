//! Two conditions that end the turn together.

use crate::stop::{Stop, StopCondition, StopCx};

/// Both of two conditions; see [`crate::StopConditionExt::and`].
#[derive(Debug, Clone)]
pub struct And<A, B> {
    first: A,
    second: B,
}

impl<A, B> And<A, B> {
    pub(crate) fn new(first: A, second: B) -> Self {
        Self { first, second }
    }
}

impl<A: StopCondition, B: StopCondition> StopCondition for And<A, B> {
    fn check(&self, cx: &StopCx<'_>) -> Option<Stop> {
        let (first, second) = (self.first.check(cx)?, self.second.check(cx)?);
        Some(Stop::Both(Box::new(first), Box::new(second)))
    }

    fn name(&self) -> String {
        format!("({} and {})", self.first.name(), self.second.name())
    }
}
