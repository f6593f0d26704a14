//! Budgets of tokens, money and time.
//!
//! What a call costs is known when it is over. So a budget fires once it is spent, the model gets one last call beyond it
//! to end with words, and the turn ends with [`agent_core::TerminalReason::BudgetExhausted`].

use std::time::Duration;

use crate::stop::{Stop, StopCondition, StopCx};

/// A budget of tokens; see [`token_budget`].
#[derive(Debug, Clone, Copy)]
pub struct TokenBudget {
    tokens: u64,
}

/// A budget of money; see [`cost_budget`].
#[derive(Debug, Clone, Copy)]
pub struct CostBudget {
    usd: f64,
}

/// A budget of time; see [`wall_clock`].
#[derive(Debug, Clone, Copy)]
pub struct WallClock {
    limit: Duration,
}

/// Ends the turn once it spent so many tokens: read, cached and written ones together.
///
/// ```
/// use agent_turn::{StopConditionExt, step_count, token_budget};
/// let stop = step_count(40).or(token_budget(2_000_000));
/// # let _ = stop;
/// ```
pub fn token_budget(tokens: u64) -> TokenBudget {
    TokenBudget { tokens }
}

/// Ends the turn once it cost so many US dollars, by the prices in the model's profile. Of a model without prices nothing
/// is counted, so set another budget too.
///
/// ```
/// use agent_turn::{StopConditionExt, cost_budget, step_count};
/// let stop = step_count(40).or(cost_budget(1.50));
/// # let _ = stop;
/// ```
pub fn cost_budget(usd: f64) -> CostBudget {
    CostBudget { usd }
}

/// Ends the turn once it was at work for so long. It looks after each step and stops nothing in the middle of one; waiting
/// for a person's reply is no work.
///
/// ```
/// use std::time::Duration;
/// use agent_turn::{StopConditionExt, step_count, wall_clock};
/// let stop = step_count(40).or(wall_clock(Duration::from_secs(600)));
/// # let _ = stop;
/// ```
pub fn wall_clock(limit: Duration) -> WallClock {
    WallClock { limit }
}

impl StopCondition for TokenBudget {
    fn check(&self, cx: &StopCx<'_>) -> Option<Stop> {
        let spent = cx.usage.total_input().saturating_add(cx.usage.output);
        (spent >= self.tokens).then(|| Stop::Budget(self.name()))
    }

    fn name(&self) -> String {
        format!("token_budget({})", self.tokens)
    }
}

impl StopCondition for CostBudget {
    fn check(&self, cx: &StopCx<'_>) -> Option<Stop> {
        (cx.cost_usd >= self.usd).then(|| Stop::Budget(self.name()))
    }

    fn name(&self) -> String {
        format!("cost_budget({})", self.usd)
    }
}

impl StopCondition for WallClock {
    fn check(&self, cx: &StopCx<'_>) -> Option<Stop> {
        (cx.elapsed >= self.limit).then(|| Stop::Budget(self.name()))
    }

    fn name(&self) -> String {
        format!("wall_clock({}s)", self.limit.as_secs_f64())
    }
}
