//! The sums of an audit, in tokens and in money.

use agent_core::Usage;

use super::{Audit, Divergence, Row};
use crate::CacheRules;

impl Audit {
    /// Counts a request, its tokens and its fault.
    pub(super) fn sum(&mut self, usage: &Usage, lost: u64, divergence: Option<&Divergence>) {
        self.summary.steps += 1;
        self.summary.usage += usage;
        self.summary.lost += lost;
        if let Some(found) = divergence.filter(|found| found.cause.is_fault()) {
            *self.summary.causes.entry(found.cause).or_default() += 1;
        }
    }

    /// Holds what was paid against each token written once and read ever after.
    pub(super) fn weigh(&mut self, row: &Row, rules: &CacheRules) {
        let ideal = row.ideal();
        let cost = |usage: &Usage| match &self.prices {
            Some(prices) => prices.cost(usage),
            None => rules.prices(1.0, 0.0, "").cost(usage),
        };
        let (paid, best) = self.paid;
        self.paid = (paid + cost(&Usage { output: 0, ..row.usage.clone() }), best + cost(&ideal));
        self.summary.ideal += &ideal;
        self.summary.cost_ratio = (self.paid.1 > 0.0).then(|| self.paid.0 / self.paid.1);
    }

    /// What a request cost, and what of it was for tokens that were lost; none without prices.
    pub(super) fn costs(&self, usage: &Usage, lost: u64) -> (Option<f64>, Option<f64>) {
        let input = Usage { output: 0, ..usage.clone() };
        let mut intact = input.clone();
        // Lost tokens were written again, or paid in full.
        let mut left = lost;
        for paid in [&mut intact.cache_write_5m, &mut intact.cache_write_1h, &mut intact.input] {
            let moved = left.min(*paid);
            *paid -= moved;
            intact.cache_read += moved;
            left -= moved;
        }
        let cost = self.cost(&input);
        let lost_cost = cost.zip(self.cost(&intact)).map(|(cost, intact)| cost - intact);
        (cost, lost_cost)
    }
}
