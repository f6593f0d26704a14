//! What a model can do, what it refuses and what it costs: data, so that users can correct it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

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
    /// Whether tools can be narrowed without touching the tool list.
    pub allowed_tools: bool,
    /// Whether a tool can be forced.
    pub forced_tool_choice: bool,
    /// Whether a system message may stand inside the conversation.
    pub mid_conversation_system: bool,
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
    /// [`RequestSettings::temperature`], [`RequestSettings::top_p`] and [`RequestSettings::top_k`].
    Sampling,
    /// [`RequestSettings::presence_penalty`] and [`RequestSettings::frequency_penalty`].
    Penalties,
    /// [`RequestSettings::seed`].
    Seed,
    /// [`RequestSettings::stop_sequences`].
    StopSequences,
    /// [`Thinking::Adaptive`].
    ThinkingAdaptive,
    /// [`Thinking::Budget`].
    ThinkingBudget,
    /// [`Thinking::Disabled`].
    ThinkingDisabled,
    /// [`RequestSettings::effort`].
    Effort,
    /// [`Effort::XHigh`] and above.
    EffortAboveHigh,
    /// [`RequestSettings::parallel_tool_calls`].
    ParallelToolCalls,
    /// [`RequestSettings::service_tier`].
    ServiceTier,
    /// [`RequestSettings::fast`].
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
    },
}

impl ModelProfile {
    /// A profile that assumes little: for models nothing is known about.
    pub fn conservative(provider: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            provider: provider.into(),
            model: model.into(),
            context_window: 32_768,
            max_output: 4_096,
            cache: CacheProfile::None,
            binds_thinking_to_prefix: false,
            allowed_tools: false,
            forced_tool_choice: false,
            mid_conversation_system: false,
            vision: false,
            refuses: BTreeSet::new(),
            prices: None,
            known: false,
        }
    }
}

/// Whoever writes a profile knows the model.
fn yes() -> bool {
    true
}
