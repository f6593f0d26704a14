//! What a model call cost, in components that are never mixed.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::RawJson;

/// Tokens of one call or a sum of calls (requirement M6).
///
/// The components do not overlap: total input is [`Usage::total_input`]. `reasoning` is a part of `output`.
/// Providers that report cached tokens inside the input (OpenAI, Gemini) are normalised by their codec.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a record of numbers, written as a literal with ..Default")]
pub struct Usage {
    /// Input tokens neither read from nor written to the cache.
    #[serde(default)]
    pub input: u64,
    /// Output tokens, reasoning included.
    #[serde(default)]
    pub output: u64,
    /// The part of `output` spent on reasoning, where the provider says so.
    #[serde(default)]
    pub reasoning: u64,
    /// Input tokens read from the prompt cache.
    #[serde(default)]
    pub cache_read: u64,
    /// Input tokens written to the cache for five minutes (or the provider's shortest time).
    #[serde(default)]
    pub cache_write_5m: u64,
    /// Input tokens written to the cache for one hour.
    #[serde(default)]
    pub cache_write_1h: u64,
    /// The provider's own usage object of a single call; a sum has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<RawJson>,
}

impl Usage {
    /// All tokens written to the cache.
    pub fn cache_write(&self) -> u64 {
        self.cache_write_5m.saturating_add(self.cache_write_1h)
    }

    /// All tokens the model read: uncached, cache read and cache write.
    pub fn total_input(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write())
    }

    /// Share of the input that came from the cache, 0 to 1; `None` without input.
    pub fn hit_rate(&self) -> Option<f64> {
        let total = self.total_input();
        (total > 0).then(|| self.cache_read as f64 / total as f64)
    }
}

impl AddAssign<&Usage> for Usage {
    fn add_assign(&mut self, other: &Usage) {
        // Counts come from providers: a nonsensical one must not stop the turn.
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write_5m = self.cache_write_5m.saturating_add(other.cache_write_5m);
        self.cache_write_1h = self.cache_write_1h.saturating_add(other.cache_write_1h);
        self.raw = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsensical_counts_do_not_overflow() {
        let most = Usage { input: u64::MAX, cache_write_5m: u64::MAX, cache_write_1h: 1, ..Usage::default() };
        let mut sum = most.clone();
        sum += &most;
        assert_eq!((sum.input, sum.cache_write(), sum.total_input()), (u64::MAX, u64::MAX, u64::MAX));
    }

    #[test]
    fn sums_keep_components_apart() {
        let one = Usage {
            input: 3,
            output: 5,
            reasoning: 2,
            cache_read: 90,
            cache_write_5m: 4,
            cache_write_1h: 3,
            raw: None,
        };
        let mut sum = Usage { raw: Some(RawJson::empty_object()), ..Usage::default() };
        sum += &one;
        sum += &one;
        assert_eq!((sum.input, sum.output, sum.cache_read, sum.cache_write()), (6, 10, 180, 14));
        assert_eq!(sum.total_input(), 200);
        assert_eq!(sum.hit_rate(), Some(0.9));
        assert_eq!(sum.raw, None, "a sum has no provider object");
        assert_eq!(Usage::default().hit_rate(), None);
    }
}
