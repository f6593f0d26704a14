//! Which of two models extracts memories: the one that costs less for this prefix.

use agent_core::{CacheProfile, ModelProfile, Prices};

use crate::changes::model_name;

/// Which model was chosen, and what each was expected to cost.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelChoice {
    /// The model, as `PROVIDER/MODEL`.
    pub model: String,
    /// Why.
    pub why: ChoiceReason,
    /// US dollars that the session's own model was expected to cost, which reads the session's cached prefix; `None` where
    /// its prices are not known.
    pub own_usd: Option<f64>,
    /// US dollars that the other model was expected to cost, which reads all of it anew.
    pub other_usd: Option<f64>,
}

/// Why a model was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChoiceReason {
    /// No other model was given.
    OnlyOne,
    /// The session's own model costs no more, with its prefix read from the cache.
    CachedPrefix,
    /// The other model costs less although it reads all anew.
    CheaperAnew,
    /// The session does not fit into the other model's window.
    TooLong,
    /// A price is not known, and the session's own model is the one whose cache is warm.
    PricesUnknown,
}

impl ModelChoice {
    /// Chooses for a context of so many tokens; whether it is the other model.
    pub(super) fn of(own: &ModelProfile, other: Option<&ModelProfile>, tokens: u64) -> (Self, bool) {
        let own_usd = own.prices.as_ref().map(|prices| cost(prices, &own.cache, tokens, true));
        let Some(other) = other else {
            let why = ChoiceReason::OnlyOne;
            return (Self { model: model_name(own), why, own_usd, other_usd: None }, false);
        };
        let other_usd = other.prices.as_ref().map(|prices| cost(prices, &other.cache, tokens, false));
        let fits = tokens.saturating_add(ROOM) <= u64::from(other.context_window);
        let why = match (own_usd, other_usd) {
            _ if !fits => ChoiceReason::TooLong,
            (Some(own), Some(other)) if other < own => ChoiceReason::CheaperAnew,
            (Some(_), Some(_)) => ChoiceReason::CachedPrefix,
            (None, _) | (_, None) => ChoiceReason::PricesUnknown,
        };
        let is_other = why == ChoiceReason::CheaperAnew;
        let model = model_name(if is_other { other } else { own });
        (Self { model, why, own_usd, other_usd }, is_other)
    }
}

/// US dollars of a usual run: each step reads the prefix, from the cache where it is warm or was written by the step before.
fn cost(prices: &Prices, cache: &CacheProfile, prefix: u64, is_warm: bool) -> f64 {
    let marks = matches!(cache, CacheProfile::Marked { .. });
    let (first, later) = if !marks && *cache != CacheProfile::Automatic {
        (prices.input, prices.input)
    } else if is_warm {
        (prices.cache_read, prices.cache_read)
    } else if marks {
        (prices.cache_write_5m, prices.cache_read)
    } else {
        (prices.input, prices.cache_read)
    };
    let read = prefix as f64 * (first + (STEPS - 1.0) * later);
    (read + STEPS * (OUTPUT * prices.output + ASKED * prices.input)) / 1e6
}

/// Steps of a usual run: look or write, and end.
const STEPS: f64 = 2.0;
/// Tokens that it writes in a step.
const OUTPUT: f64 = 300.0;
/// Tokens of what is asked and answered beside the prefix.
const ASKED: f64 = 1_000.0;
/// Tokens that a run may need beside the prefix.
const ROOM: u64 = 20_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(name: &str, input: f64, window: u32) -> ModelProfile {
        let prices = Prices {
            input,
            output: input * 5.0,
            cache_read: input / 10.0,
            cache_write_5m: input * 1.25,
            cache_write_1h: input * 2.0,
            as_of: "2026-11-30".into(),
        };
        let cache = CacheProfile::Marked { max_marks: 4, min_tokens: 0, lookback: 20, collapse_runs: false };
        let prices = (input > 0.0).then_some(prices);
        ModelProfile { cache, prices, context_window: window, ..ModelProfile::conservative("p", name) }
    }

    #[test]
    fn what_costs_less_is_chosen() {
        let check = |own: f64, other: Option<(f64, u32)>, tokens: u64, expect: (&str, ChoiceReason)| {
            let other = other.map(|(input, window)| profile("other", input, window));
            let (choice, is_other) = ModelChoice::of(&profile("own", own, 1_000_000), other.as_ref(), tokens);
            assert_eq!((choice.model.as_str(), choice.why), expect, "{choice:?}");
            assert_eq!(is_other, choice.model == "p/other");
        };
        use ChoiceReason::{CachedPrefix, CheaperAnew, OnlyOne, PricesUnknown, TooLong};
        check(5.0, None, 100_000, ("p/own", OnlyOne));
        // A fifth of the price does not make up for a prefix that is read anew.
        check(5.0, Some((1.0, 200_000)), 100_000, ("p/own", CachedPrefix));
        check(5.0, Some((0.1, 200_000)), 100_000, ("p/other", CheaperAnew));
        // With a short prefix the output counts.
        check(5.0, Some((1.0, 200_000)), 1_000, ("p/other", CheaperAnew));
        check(5.0, Some((0.1, 100_000)), 100_000, ("p/own", TooLong));
        check(0.0, Some((0.1, 200_000)), 1_000, ("p/own", PricesUnknown));
        check(5.0, Some((0.0, 200_000)), 1_000, ("p/own", PricesUnknown));
    }

    #[test]
    fn a_provider_without_a_cache_reads_all_of_it_at_each_step() {
        let mut own = profile("own", 5.0, 1_000_000);
        own.cache = CacheProfile::None;
        let (choice, is_other) = ModelChoice::of(&own, Some(&profile("other", 1.0, 200_000)), 100_000);
        assert!(is_other, "{choice:?}");
        assert!(choice.own_usd.is_some_and(|usd| (usd - 1.025).abs() < 1e-9), "{choice:?}");
    }
}
