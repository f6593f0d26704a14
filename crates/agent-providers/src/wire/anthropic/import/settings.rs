//! The settings of a recorded request; what has no field of ours is kept as the user's own.

use agent_core::{Effort, ProviderData, RawJson, RequestSettings, ServiceTier, Thinking};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::wire::WireRequest;
use crate::wire::json::{Fields, Loose, LooseInt, object, others};
use crate::wire::tail::extra;

#[derive(Deserialize, Default)]
struct WireThinking<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Loose<'a>,
    #[serde(default)]
    budget_tokens: LooseInt,
}

#[derive(Deserialize, Default)]
struct WireOutput<'a> {
    #[serde(borrow, default)]
    effort: Loose<'a>,
}

/// The settings of a request to a provider, whose text is `body`.
pub(super) fn read(request: &WireRequest<'_>, provider: &str, body: &str) -> RequestSettings {
    let small = |count: LooseInt| count.0.and_then(|n| u32::try_from(n).ok());
    let mut rest = Rest(Vec::new());
    let thinking = request.thinking.and_then(|raw| rest.thinking(raw));
    let effort = request.output_config.and_then(|raw| rest.effort(raw));
    let fast = request.speed.as_str() == "fast";
    if let Some(speed) = request.speed.0.as_deref().filter(|_| !fast) {
        rest.0.push(("speed", crate::wire::json::quoted(speed)));
    }
    RequestSettings {
        max_output: small(request.max_tokens),
        temperature: request.temperature,
        top_p: request.top_p,
        top_k: small(request.top_k),
        thinking,
        effort,
        stop_sequences: request.stop_sequences.clone().unwrap_or_default(),
        parallel_tool_calls: request
            .tool_choice
            .as_ref()
            .and_then(|choice| choice.disable_parallel_tool_use)
            .map(|one| !one),
        service_tier: request.service_tier.0.as_deref().map(tier),
        fast,
        extra: rest.into_extra(provider, body),
        ..RequestSettings::default()
    }
}

/// Fields whose meaning our types have no word for, in whole or in part.
struct Rest(Vec<(&'static str, String)>);

impl Rest {
    fn thinking(&mut self, raw: &RawValue) -> Option<Thinking> {
        let given: WireThinking<'_> = object(raw.get()).unwrap_or_default();
        let budget = given.budget_tokens.0.and_then(|n| u32::try_from(n).ok());
        let mode = match given.kind.as_str() {
            "adaptive" => Some(Thinking::Adaptive),
            "disabled" => Some(Thinking::Disabled),
            "enabled" => budget.map(Thinking::Budget),
            _ => None,
        };
        self.keep("thinking", raw, if mode.is_some() { &["type", "budget_tokens"] } else { &[] });
        mode
    }

    fn effort(&mut self, raw: &RawValue) -> Option<Effort> {
        let given: WireOutput<'_> = object(raw.get()).unwrap_or_default();
        let effort = match given.effort.as_str() {
            "low" => Some(Effort::Low),
            "medium" => Some(Effort::Medium),
            "high" => Some(Effort::High),
            "xhigh" => Some(Effort::XHigh),
            "max" => Some(Effort::Max),
            _ => None,
        };
        self.keep("output_config", raw, if effort.is_some() { &["effort"] } else { &[] });
        effort
    }

    fn keep(&mut self, key: &'static str, raw: &RawValue, known: &[&str]) {
        let rest = Fields::read(raw.get()).and_then(|fields| others(&fields, known));
        self.0.extend(rest.map(|rest| (key, rest)));
    }

    fn into_extra(self, provider: &str, body: &str) -> Vec<ProviderData> {
        let mut parts: Vec<String> =
            self.0.into_iter().map(|(key, raw)| format!("\"{key}\":{raw}")).collect();
        let others = Fields::read(body).and_then(|fields| extra(&fields, KNOWN));
        let others = others.as_ref().map(RawJson::get).and_then(|raw| raw.get(1..raw.len() - 1));
        parts.extend(others.map(str::to_owned));
        let json = (!parts.is_empty()).then(|| RawJson::parse(format!("{{{}}}", parts.join(","))).ok());
        json.flatten().map(|json| ProviderData { provider: provider.to_owned(), json }).into_iter().collect()
    }
}

fn tier(word: &str) -> ServiceTier {
    match word {
        "auto" => ServiceTier::Auto,
        "standard_only" => ServiceTier::Standard,
        other => ServiceTier::Other(other.to_owned()),
    }
}

/// Fields that are read above or with the tools; a cache marker is of one request only.
const KNOWN: &[&str] = &[
    "max_tokens",
    "temperature",
    "top_p",
    "top_k",
    "thinking",
    "output_config",
    "stop_sequences",
    "tool_choice",
    "service_tier",
    "speed",
    "cache_control",
];
