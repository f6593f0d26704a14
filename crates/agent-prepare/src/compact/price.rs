//! Which of two ways to ask for a summary is cheaper (requirement P13).

use agent_core::{CacheProfile, ModelProfile, Prices, Usage};

/// How large the two requests would be, in tokens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// The conversation as it stands, system prompt and tools included.
    pub(super) context: u64,
    /// What of it the provider has not read yet.
    pub(super) fresh: u64,
    /// The question behind it.
    pub(super) question: u64,
    /// The whole request apart.
    pub(super) apart: u64,
    /// The answer.
    pub(super) answer: u64,
    /// The most that the session's model may write behind the conversation.
    pub(super) limit: u64,
}

/// Whether a question behind the conversation, read from the provider's cache, costs less than a request apart. Never
/// where it does not fit the window, or where nothing is cached. Where prices are not known, a model that was configured
/// for such work is taken to be the cheaper one.
pub(super) fn on_prefix(own: &ModelProfile, apart: Option<&ModelProfile>, sizes: &Sizes) -> bool {
    let needs = sizes.context.saturating_add(sizes.question).saturating_add(sizes.limit);
    if needs > u64::from(own.context_window) || own.cache == CacheProfile::None {
        return false;
    }
    let asked = apart.unwrap_or(own);
    match (&own.prices, &asked.prices) {
        (Some(own), Some(asked)) => prefix_cost(own, sizes) < apart_cost(asked, sizes),
        (None, _) | (_, None) => apart.is_none(),
    }
}

fn prefix_cost(prices: &Prices, sizes: &Sizes) -> f64 {
    let input = sizes.fresh.min(sizes.context);
    let cache_read = sizes.context - input;
    let input = input.saturating_add(sizes.question);
    prices.cost(&Usage { input, cache_read, output: sizes.answer, ..Usage::default() })
}

fn apart_cost(prices: &Prices, sizes: &Sizes) -> f64 {
    prices.cost(&Usage { input: sizes.apart, output: sizes.answer, ..Usage::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(input: f64, output: f64) -> ModelProfile {
        let prices = Prices {
            input,
            output,
            cache_read: input / 10.0,
            cache_write_5m: input,
            cache_write_1h: input,
            as_of: "2026-11-30".into(),
        };
        let known = ModelProfile::conservative("acme", "m");
        ModelProfile {
            context_window: 200_000,
            cache: CacheProfile::Automatic,
            prices: Some(prices),
            ..known
        }
    }

    #[test]
    fn the_cheaper_way() {
        let own = model(5.0, 25.0);
        let sizes = Sizes {
            context: 160_000,
            fresh: 2_000,
            question: 400,
            apart: 40_000,
            answer: 2_000,
            limit: 20_000,
        };
        let check = |own: &ModelProfile, apart: Option<&ModelProfile>, sizes: Sizes, expect: bool| {
            assert_eq!(on_prefix(own, apart, &sizes), expect, "{sizes:?}");
        };
        // 158,000 read at a tenth and 2,400 at the full price are less than 40,000 at the full price.
        check(&own, None, sizes, true);
        // A short transcript is cheaper than reading all of it.
        check(&own, None, Sizes { apart: 10_000, ..sizes }, false);
        // So is a model at a fifth of the price; one at nine tenths is not.
        check(&own, Some(&model(1.0, 5.0)), sizes, false);
        check(&own, Some(&model(4.5, 22.5)), sizes, true);
        // What does not fit, or is not cached, is asked apart.
        check(&own, None, Sizes { context: 179_600, ..sizes }, true);
        check(&own, None, Sizes { context: 179_601, ..sizes }, false);
        check(&ModelProfile { cache: CacheProfile::None, ..own.clone() }, None, sizes, false);
        // Nothing was read yet, so that nothing is cached.
        check(&own, None, Sizes { fresh: 160_000, ..sizes }, false);
        // Prices that are not known.
        let unpriced = ModelProfile { prices: None, ..own.clone() };
        check(&unpriced, None, sizes, true);
        check(&unpriced, Some(&own), sizes, false);
        check(&own, Some(&unpriced), sizes, false);
    }
}
