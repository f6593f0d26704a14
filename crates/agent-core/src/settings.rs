//! What a call asks of the model besides words: limits, sampling, thinking.

use serde::{Deserialize, Serialize};

use crate::ProviderData;

/// Typed settings of a call; an absent one is the provider's default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a config struct: a literal with ..Default")]
pub struct RequestSettings {
    /// Most output tokens; default the profile's maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u32>,
    /// Sampling temperature, 0 to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    /// Only the likeliest tokens that together have this share, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f32>,
    /// Only this many of the likeliest tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_k: Option<u32>,
    /// How much words that occurred at all are avoided, -2 to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f32>,
    /// How much words are avoided the more often they occurred, -2 to 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f32>,
    /// Makes sampling repeatable, as far as the provider can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// How the model thinks before it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<Thinking>,
    /// How much work the model puts into the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Texts that end the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop_sequences: Vec<String>,
    /// Whether several tools may be called at once; default the provider's, which is yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// What the provider gives the call for its price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_tier: Option<ServiceTier>,
    /// Faster output at a higher price.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fast: bool,
    /// Further fields of the body, an object for each provider concerned. They are laid over ours, object into
    /// object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra: Vec<ProviderData>,
}

impl RequestSettings {
    /// These settings with each one that `over` gives in its place; `extra` goes behind, so that it is laid over key by
    /// key.
    #[must_use]
    pub fn overlaid(mut self, over: &Self) -> Self {
        let over = over.clone();
        self.max_output = over.max_output.or(self.max_output);
        self.temperature = over.temperature.or(self.temperature);
        self.top_p = over.top_p.or(self.top_p);
        self.top_k = over.top_k.or(self.top_k);
        self.presence_penalty = over.presence_penalty.or(self.presence_penalty);
        self.frequency_penalty = over.frequency_penalty.or(self.frequency_penalty);
        self.seed = over.seed.or(self.seed);
        self.thinking = over.thinking.or(self.thinking);
        self.effort = over.effort.or(self.effort);
        if !over.stop_sequences.is_empty() {
            self.stop_sequences = over.stop_sequences;
        }
        self.parallel_tool_calls = over.parallel_tool_calls.or(self.parallel_tool_calls);
        self.service_tier = over.service_tier.or(self.service_tier);
        self.fast |= over.fast;
        self.extra.extend(over.extra);
        self
    }
}

/// How much work a model puts into an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Effort {
    /// The least there is.
    Minimal,
    /// Little.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
    /// More than much.
    #[serde(rename = "xhigh")]
    XHigh,
    /// All there is.
    Max,
}

/// What a provider gives a call for its price.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ServiceTier {
    /// The provider chooses among what the account has.
    Auto,
    /// The ordinary one, even where a better one is paid for.
    Standard,
    /// Before others.
    Priority,
    /// Slower and cheaper.
    Flex,
    /// Another one, in the provider's word.
    Other(String),
}

/// How much a model thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Thinking {
    /// As the model sees fit.
    Adaptive,
    /// At most this many tokens.
    Budget(u32),
    /// Not at all.
    Disabled,
}
