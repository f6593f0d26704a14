//! What a model can do, what it refuses and what it costs: data, so that users can correct it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{RequestSettings, Thinking, Usage};

/// What a model can do. Data, so that users can correct it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "plain data, written as a literal with ..ModelProfile::conservative"
)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about a model, not states")]
pub struct ModelProfile {
    /// The provider's name, for example `anthropic`; tags parts that only it understands.
    pub provider: String,
    /// The model's name on the wire.
    pub model: String,
    /// Tokens the model can read and write together.
    pub context_window: u32,
    /// Tokens it can write.
    pub max_output: u32,
    /// How its provider caches prompts.
    pub cache: CacheProfile,
    /// Whether returned thinking is valid only after the exact bytes before it.
    pub binds_thinking_to_prefix: bool,
    /// Whether thinking that another model of its provider sealed is sent to it: it reads that, or the provider itself leaves
    /// it out. Else a request with it may be refused, and it is left out here (requirement P3).
    #[serde(default)]
    pub takes_thinking_of_siblings: bool,
    /// Whether tools can be narrowed without touching the tool list.
    pub allowed_tools: bool,
    /// Whether a tool can be forced.
    pub forced_tool_choice: bool,
    /// Whether it can be forced also while the model is set to think.
    #[serde(default = "yes")]
    pub forced_while_thinking: bool,
    /// Whether a system message may stand inside the conversation.
    pub mid_conversation_system: bool,
    /// Whether such a message can be limited to the turn: the provider hides it after the next message of the user, and
    /// that is no edit of the prefix ([`crate::NoteKind::TurnScoped`]).
    #[serde(default)]
    pub turn_scoped_system: bool,
    /// Whether tools of the list can be loaded later: marked so they are no part of the prefix, and a reference to one in a
    /// result shows it to the model ([`crate::ToolCard::deferred`]).
    #[serde(default)]
    pub deferred_tools: bool,
    /// Whether it sees images.
    pub vision: bool,
    /// Settings that a request with them is refused for; they are left out, with a diagnostic.
    #[serde(default)]
    pub refuses: BTreeSet<Setting>,
    /// What it costs, where known.
    #[serde(default)]
    pub prices: Option<Prices>,
    /// Whether this was known of the model, rather than assumed.
    #[serde(default = "yes")]
    pub known: bool,
}

/// A setting that some model refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Setting {
    /// [`crate::RequestSettings::temperature`], [`crate::RequestSettings::top_p`] and [`crate::RequestSettings::top_k`].
    Sampling,
    /// [`crate::RequestSettings::presence_penalty`] and [`crate::RequestSettings::frequency_penalty`].
    Penalties,
    /// [`crate::RequestSettings::seed`].
    Seed,
    /// [`crate::RequestSettings::stop_sequences`].
    StopSequences,
    /// [`crate::Thinking::Adaptive`].
    ThinkingAdaptive,
    /// [`crate::Thinking::Budget`].
    ThinkingBudget,
    /// [`crate::Thinking::Disabled`].
    ThinkingDisabled,
    /// [`crate::RequestSettings::effort`].
    Effort,
    /// [`crate::Effort::Minimal`].
    EffortMinimal,
    /// [`crate::Effort::XHigh`], while [`crate::Effort::Max`] is taken.
    EffortXHigh,
    /// [`crate::Effort::XHigh`] and above.
    EffortAboveHigh,
    /// [`crate::RequestSettings::parallel_tool_calls`].
    ParallelToolCalls,
    /// [`crate::RequestSettings::service_tier`].
    ServiceTier,
    /// [`crate::RequestSettings::fast`].
    Fast,
}

/// What tokens cost, in US dollars for a million.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "plain data, written as a literal")]
pub struct Prices {
    /// Input neither read from nor written to the cache.
    pub input: f64,
    /// Output, thinking included.
    pub output: f64,
    /// Input read from the cache.
    pub cache_read: f64,
    /// Input written to the cache for the provider's shortest time.
    pub cache_write_5m: f64,
    /// Input written to the cache for longer.
    pub cache_write_1h: f64,
    /// The day they were looked up, as `2026-11-30`.
    pub as_of: String,
}

/// How a provider caches prompts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CacheProfile {
    /// Not at all, or unknown.
    None,
    /// By itself, without markers in the request.
    Automatic,
    /// At marked blocks.
    Marked {
        /// Most markers of one request.
        max_marks: u8,
        /// Shortest prefix it keeps, in tokens.
        min_tokens: u32,
        /// How many positions before a marker it looks for an earlier entry.
        lookback: u8,
        /// Whether calls in a row, and results in a row, are one position.
        #[serde(default)]
        collapse_runs: bool,
    },
}

impl ModelProfile {
    /// Whether a tool can be forced in a request with these settings.
    pub fn can_force(&self, settings: &RequestSettings) -> bool {
        let thinks = matches!(settings.thinking, Some(Thinking::Adaptive | Thinking::Budget(_)));
        self.forced_tool_choice && (self.forced_while_thinking || !thinks)
    }

    /// A profile that assumes little: for models nothing is known about.
    pub fn conservative(provider: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            provider: provider.into(),
            model: model.into(),
            context_window: 32_768,
            max_output: 4_096,
            cache: CacheProfile::None,
            binds_thinking_to_prefix: false,
            takes_thinking_of_siblings: false,
            allowed_tools: false,
            forced_tool_choice: false,
            forced_while_thinking: true,
            mid_conversation_system: false,
            turn_scoped_system: false,
            deferred_tools: false,
            vision: false,
            refuses: BTreeSet::new(),
            prices: None,
            known: false,
        }
    }
}

impl Prices {
    /// What a call or a sum of calls cost, in US dollars. Derived from its tokens each time, and stored nowhere.
    ///
    /// Reasoning is a part of the output and is paid as such. What a provider asks beside its list, for long
    /// contexts, speed or batches, is not in it.
    ///
    /// ```
    /// use agent_core::{Prices, Usage};
    ///
    /// let prices = Prices {
    ///     input: 4.0,
    ///     output: 20.0,
    ///     cache_read: 0.2,
    ///     cache_write_5m: 5.0,
    ///     cache_write_1h: 8.0,
    ///     as_of: "2026-11-30".into(),
    /// };
    /// let usage = Usage { input: 500_000, output: 100_000, ..Usage::default() };
    /// assert_eq!(prices.cost(&usage), 4.0);
    /// ```
    pub fn cost(&self, usage: &Usage) -> f64 {
        let paid = [
            (usage.input, self.input),
            (usage.output, self.output),
            (usage.cache_read, self.cache_read),
            (usage.cache_write_5m, self.cache_write_5m),
            (usage.cache_write_1h, self.cache_write_1h),
        ];
        paid.into_iter().map(|(tokens, price)| tokens as f64 * price).sum::<f64>() / 1e6
    }
}

/// Whoever writes a profile knows the model.
fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_component_is_paid_at_its_own_price() {
        let prices = Prices {
            input: 4.0,
            output: 20.0,
            cache_read: 0.5,
            cache_write_5m: 5.0,
            cache_write_1h: 8.0,
            as_of: "2026-11-30".into(),
        };
        let check = |usage: Usage, expect: f64| assert_eq!(prices.cost(&usage), expect, "{usage:?}");
        const M: u64 = 1_000_000;
        check(Usage::default(), 0.0);
        check(Usage { input: M, ..Usage::default() }, 4.0);
        check(Usage { output: M, reasoning: M, ..Usage::default() }, 20.0);
        check(Usage { reasoning: M, ..Usage::default() }, 0.0);
        check(Usage { cache_read: M, ..Usage::default() }, 0.5);
        check(Usage { cache_write_5m: M, ..Usage::default() }, 5.0);
        check(Usage { cache_write_1h: M, ..Usage::default() }, 8.0);
        let mixed = Usage {
            input: M / 2,
            output: M / 4,
            cache_read: 2 * M,
            cache_write_5m: M,
            cache_write_1h: M / 2,
            ..Usage::default()
        };
        check(mixed, 2.0 + 5.0 + 1.0 + 5.0 + 4.0);
        assert!(prices.cost(&Usage { input: u64::MAX, ..Usage::default() }).is_finite());
    }
}
