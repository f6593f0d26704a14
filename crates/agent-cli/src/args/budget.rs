//! What a turn may spend, and whether it is a task.

use std::time::Duration;

use clap::Parser;

/// What a turn may spend. When it is spent the model gets one last call, to end with words.
#[derive(Debug, Parser)]
pub(crate) struct BudgetArgs {
    /// Most tokens of the turn: read, cached and written ones together
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens_total: Option<u64>,
    /// Most US dollars of the turn, by the prices in the table of models
    #[arg(long, value_name = "USD", value_parser = usd)]
    pub(crate) max_cost: Option<f64>,
    /// Most minutes that the turn is at work; waiting for an answer is no work
    #[arg(long, value_name = "N")]
    pub(crate) max_minutes: Option<u64>,
    /// Fail when the turn ends while items of the todo list are open
    #[arg(long)]
    pub(crate) task: bool,
}

impl BudgetArgs {
    /// The flags with values that were given.
    pub(super) fn say(&self, say: &mut impl FnMut(&str, &str)) {
        let tokens = self.max_tokens_total.map(|tokens| tokens.to_string());
        let cost = self.max_cost.map(|usd| usd.to_string());
        let minutes = self.max_minutes.map(|minutes| minutes.to_string());
        let given = [("max-tokens-total", tokens), ("max-cost", cost), ("max-minutes", minutes)];
        for (flag, value) in given {
            value.iter().for_each(|value| say(flag, value));
        }
    }

    pub(crate) fn time(&self) -> Option<Duration> {
        self.max_minutes.map(|minutes| Duration::from_secs(minutes.saturating_mul(60)))
    }
}

fn usd(given: &str) -> Result<f64, String> {
    let usd: f64 = given.parse().map_err(|_| "give US dollars as a number, such as 0.50".to_owned())?;
    if usd.is_finite() && usd > 0.0 {
        Ok(usd)
    } else {
        Err("give more than 0 US dollars, such as 0.50".to_owned())
    }
}
