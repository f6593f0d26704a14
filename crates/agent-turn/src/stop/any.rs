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
        match self.first.check(cx) {
            // Who reached the goal with the last of the budget reached it.
            Some(limit) if limit.is_limit() => {
                Some(self.second.check(cx).filter(|other| !other.is_limit()).unwrap_or(limit))
            }
            Some(first) => Some(first),
            None => self.second.check(cx),
        }
    }

    fn ahead(&self, cx: &StopCx<'_>) -> Option<Stop> {
        self.first.ahead(cx).or_else(|| self.second.ahead(cx))
    }

    fn advise(&self, cx: &StopCx<'_>) -> Option<String> {
        self.first.advise(cx).or_else(|| self.second.advise(cx))
    }

    fn name(&self) -> String {
        format!("{} or {}", self.first.name(), self.second.name())
    }
}
