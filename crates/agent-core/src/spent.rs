//! What work took, beside its tokens: money and time.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::Usage;

/// Tokens, money and time of a turn, a session or a sum of sessions (requirement L10).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a record of sums, extended only with serde defaults")]
pub struct Spent {
    /// Tokens, by component.
    #[serde(default)]
    pub usage: Usage,
    /// What the calls cost by the prices of their models, in billionths of a US dollar: whole numbers, so that a stored sum is
    /// the same when it is read. Calls without a known price add nothing.
    #[serde(default)]
    pub nano_usd: u64,
    /// Milliseconds at work; what was waited for a reply is not in it.
    #[serde(default)]
    pub elapsed_ms: u64,
}

impl Spent {
    /// The money in US dollars.
    pub fn cost_usd(&self) -> f64 {
        self.nano_usd as f64 / NANOS
    }

    /// US dollars as the whole number that is summed; what is not a number is 0.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "`as` saturates, and what is not a number is 0"
    )]
    pub fn nanos(usd: f64) -> u64 {
        (usd * NANOS).round() as u64
    }

    /// Whether nothing was spent.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

impl AddAssign<&Spent> for Spent {
    fn add_assign(&mut self, other: &Spent) {
        self.usage += &other.usage;
        self.nano_usd = self.nano_usd.saturating_add(other.nano_usd);
        self.elapsed_ms = self.elapsed_ms.saturating_add(other.elapsed_ms);
    }
}

const NANOS: f64 = 1e9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_saturate_and_read_back() {
        let usage = Usage { input: 3, output: 2, ..Usage::default() };
        let one = Spent { usage, nano_usd: Spent::nanos(0.25), elapsed_ms: 40 };
        let mut sum = Spent { nano_usd: u64::MAX, ..Spent::default() };
        sum += &one;
        assert_eq!((sum.nano_usd, sum.elapsed_ms, sum.usage.input), (u64::MAX, 40, 3));
        assert!((one.cost_usd() - 0.25).abs() < f64::EPSILON);
        assert_eq!((Spent::nanos(f64::NAN), Spent::nanos(-1.0)), (0, 0));
        let stored = serde_json::to_string(&one).unwrap();
        assert_eq!(serde_json::from_str::<Spent>(&stored).unwrap(), one);
        assert!(serde_json::from_str::<Spent>("{}").unwrap().is_nothing());
    }
}
