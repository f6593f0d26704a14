//! What an agent's requests may cost, and what may change in them: budgets for tests and for CI (requirement V3).

mod breach;

use agent_core::{Prices, Usage};
use serde::{Deserialize, Serialize};

pub use breach::{Breach, BudgetError};

use crate::{Audit, Cause, Request, Row, RuleBook, Simulator};

/// What a sequence of requests may cost, and which losses are meant to be.
///
/// Whatever the numbers say, each loss that is not declared in [`Self::rewrites`] is a breach: a changed tool or system
/// text, a message that is not what it was, an entry that ran out.
///
/// In a test of your own agent, against a simulated provider of `agent-testkit`, that is one line:
/// `budget.hold(sim.requests())?`. What fails says which request, which block, why, and what to do:
///
/// ```
/// use agent_cache::Budget;
///
/// let body = |clock: &str| {
///     let rules = "Answer in one sentence. ".repeat(200);
///     let system = format!(r#"[{{"type":"text","text":"It is {clock}. {rules}","cache_control":{{"type":"ephemeral"}}}}]"#);
///     format!(r#"{{"model":"claude-opus-5","system":{system},"messages":[{{"role":"user","content":"Hi"}}]}}"#)
/// };
/// let budget = Budget { min_hit_rate: Some(0.45), ..Budget::default() };
/// assert_eq!(budget.hold([body("12:00:01"), body("12:00:01")])?.len(), 2);
///
/// let said = budget.hold([body("12:00:01"), body("12:00:02")]).unwrap_err().to_string();
/// assert!(said.contains("request 2: system_changed at system[0]"), "{said}");
/// assert!(said.contains("at least 45.0%"), "{said}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a config struct: a literal with ..Default")]
pub struct Budget {
    /// Least share of all input tokens that is read from the cache, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_hit_rate: Option<f64>,
    /// Most that the input may cost, as a multiple of the ideal: each token written once and read ever after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_ratio: Option<f64>,
    /// Losses that are meant to be. One that is declared and does not happen is a breach too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rewrites: Vec<Rewrite>,
}

/// A loss that is meant to be: what it loses counts in no budget of cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::exhaustive_structs, reason = "a record of a decision, written as a literal")]
pub struct Rewrite {
    /// The request at which it happens, from 1; any when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<usize>,
    /// What the audit says there.
    pub cause: Cause,
    /// Why it is worth its price.
    pub why: String,
}

/// The rows of an audit held against a budget.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Judged {
    /// Share of the input read from the cache; none without input.
    pub hit_rate: Option<f64>,
    /// What the input cost as a multiple of the ideal; none when the ideal costs nothing.
    pub cost_ratio: Option<f64>,
    /// What the input cost, in US dollars at the prices given.
    pub cost: f64,
    /// What it would have cost at best.
    pub ideal: f64,
    /// What leaves the budget; nothing when it is kept.
    pub breaches: Vec<Breach>,
}

impl Budget {
    /// Holds the bodies of an agent's requests, in the order in which they were sent, to this budget, by the rules of
    /// the first one's provider and as if no time passed between them. Gives the rows of the audit.
    ///
    /// # Errors
    /// A body that cannot be read; a budget that is not kept. No request at all keeps none.
    pub fn hold<B: AsRef<[u8]>>(&self, bodies: impl IntoIterator<Item = B>) -> Result<Vec<Row>, BudgetError> {
        let read = |(at, body): (usize, B)| {
            let unreadable = |cause| BudgetError::Request { step: at + 1, cause };
            Request::read(body.as_ref(), None).map_err(unreadable)
        };
        let requests = bodies.into_iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?;
        let Some(first) = requests.first() else {
            return Err(BudgetError::Breached { breaches: vec![Breach::Nothing] });
        };
        let simulator = Simulator::new(RuleBook::builtin(), first.format.provider());
        let prices = simulator.rules(first).prices(1.0, 0.0, "");
        let mut audit = Audit::new(simulator, Some(prices.clone()));
        let rows: Vec<Row> = requests.iter().map(|request| audit.step(request, None, None)).collect();
        match self.judge(&rows, &prices).breaches {
            breaches if breaches.is_empty() => Ok(rows),
            breaches => Err(BudgetError::Breached { breaches }),
        }
    }

    /// Holds the rows of an audit to this budget, at these prices.
    pub fn judge(&self, rows: &[Row], prices: &Prices) -> Judged {
        let (mut usage, mut best) = (Usage::default(), Usage::default());
        for row in rows {
            usage += &row.usage;
            best += &if self.declares(row) { row.usage.clone() } else { row.ideal() };
        }
        let input = |usage: Usage| prices.cost(&Usage { output: 0, ..usage });
        let hit_rate = usage.hit_rate();
        let (cost, ideal) = (input(usage), input(best));
        let cost_ratio = (ideal > 0.0).then(|| cost / ideal);
        let mut breaches = breach::changes(self, rows);
        // A bound that is no number is one that nothing keeps, and input that nobody counted was not read.
        let got = hit_rate.unwrap_or(0.0);
        if let Some(least) = self.min_hit_rate.filter(|least| !keeps(*least, got)) {
            breaches.push(Breach::HitRate { got, least });
        }
        if let Some((most, got)) =
            self.max_cost_ratio.zip(cost_ratio).filter(|(most, got)| !keeps(*got, *most))
        {
            breaches.push(Breach::Cost { got, most, cost, ideal });
        }
        if rows.is_empty() {
            breaches.push(Breach::Nothing);
        }
        Judged { hit_rate, cost_ratio, cost, ideal, breaches }
    }

    /// Whether what a request lost is meant to be.
    fn declares(&self, row: &Row) -> bool {
        self.rewrites.iter().any(|rewrite| rewrite.fits(row))
    }
}

/// Whether the first number is at most the second.
fn keeps(lower: f64, upper: f64) -> bool {
    lower <= upper
}

impl Rewrite {
    fn fits(&self, row: &Row) -> bool {
        let at = self.step.is_none_or(|step| step == row.step);
        at && row.divergence.as_ref().is_some_and(|found| found.cause == self.cause)
    }
}

#[cfg(test)]
mod tests;
