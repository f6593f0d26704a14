//! The limits of a turn, as the command line sets them.

use std::sync::Arc;

use agent::{
    StopCondition, StopConditionExt, cost_budget, step_count, token_budget, tool_called, wall_clock,
};
use agent_core::{COMPLETE_TOOL, ModelProfile};

use crate::args::BudgetArgs;
use crate::error::CliError;

/// The step limit, the tool `complete`, and each budget that was given.
pub(crate) fn of_run(
    max_steps: u32,
    budget: &BudgetArgs,
    model: &ModelProfile,
) -> Result<Arc<dyn StopCondition>, CliError> {
    let mut stop: Arc<dyn StopCondition> = Arc::new(step_count(max_steps).or(tool_called(COMPLETE_TOOL)));
    if let Some(tokens) = budget.max_tokens_total {
        stop = Arc::new(stop.or(token_budget(tokens)));
    }
    if let Some(usd) = budget.max_cost {
        if model.prices.is_none() {
            let model = format!("{}/{}", model.provider, model.model);
            return Err(CliError::NoPrices { model });
        }
        stop = Arc::new(stop.or(cost_budget(usd)));
    }
    if let Some(time) = budget.time() {
        stop = Arc::new(stop.or(wall_clock(time)));
    }
    Ok(stop)
}
