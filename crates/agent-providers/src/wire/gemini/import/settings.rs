//! The settings of a recorded request; what has no place in ours is kept as the provider's own fields.

use agent_core::{Effort, ProviderData, RawJson, RequestSettings, ServiceTier, Thinking, ToolChoice};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::json::{Fields, Loose, LooseInt, quoted};
use crate::wire::tail::extra;

#[derive(Deserialize, Default)]
struct WireConfig<'a> {
    #[serde(default, rename = "maxOutputTokens", alias = "max_output_tokens")]
    limit: LooseInt,
    #[serde(default)]
    temperature: Option<f32>,
    #[serde(default, rename = "topP", alias = "top_p")]
    top_p: Option<f32>,
    #[serde(borrow, default, rename = "topK", alias = "top_k")]
    top_k: Option<&'a RawValue>,
    #[serde(default)]
    seed: Option<i64>,
    #[serde(default, rename = "presencePenalty", alias = "presence_penalty")]
    presence: Option<f32>,
    #[serde(default, rename = "frequencyPenalty", alias = "frequency_penalty")]
    frequency: Option<f32>,
    #[serde(default, rename = "stopSequences", alias = "stop_sequences")]
    stops: Option<Vec<String>>,
}

#[derive(Deserialize, Default)]
struct WireThinking<'a> {
    #[serde(borrow, default, rename = "thinkingBudget", alias = "thinking_budget")]
    budget: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "thinkingLevel", alias = "thinking_level")]
    level: Loose<'a>,
    #[serde(default, rename = "includeThoughts", alias = "include_thoughts")]
    shown: Option<bool>,
}

#[derive(Deserialize, Default)]
struct WireChoice<'a> {
    #[serde(borrow, default)]
    mode: Loose<'a>,
    #[serde(default, rename = "allowedFunctionNames", alias = "allowed_function_names")]
    allowed: Option<Vec<String>>,
}

/// Reads the settings. Fields without a place go to `extra`, an object for this provider.
pub(super) fn settings(
    fields: &Fields<'_>,
    rest_of_choice: Option<String>,
    provider: &str,
) -> RequestSettings {
    let raw = field(fields, &["generationConfig", "generation_config"]);
    let wire: WireConfig<'_> = raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let inner = raw.and_then(|raw| Fields::read(raw.get())).unwrap_or_default();
    let (thinking, effort, rest_of_thinking) =
        thinking(field(&inner, &["thinkingConfig", "thinking_config"]));
    let top_k = wire.top_k.and_then(|raw| serde_json::from_str::<f64>(raw.get()).ok());
    let settings = RequestSettings {
        max_output: wire.limit.0.and_then(|n| u32::try_from(n).ok()),
        temperature: wire.temperature,
        top_p: wire.top_p,
        top_k: top_k
            .filter(|k| k.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(k))
            .map(|k| k as u32),
        presence_penalty: wire.presence,
        frequency_penalty: wire.frequency,
        seed: wire.seed,
        thinking,
        effort,
        stop_sequences: wire.stops.unwrap_or_default(),
        service_tier: fields.get("serviceTier").and_then(tier),
        ..RequestSettings::default()
    };
    // A configuration that cannot be read as a whole is kept as it is.
    let is_read = raw.is_none_or(|raw| serde_json::from_str::<WireConfig<'_>>(raw.get()).is_ok());
    let known = if is_read { CONFIG } else { &CONFIG[..2] };
    let mut rest: Vec<String> =
        extra(&inner, known).map(|json| inside(json.get()).to_owned()).into_iter().collect();
    rest.extend(rest_of_thinking.map(|rest| format!("\"thinkingConfig\":{rest}")));
    let mut top: Vec<String> =
        extra(fields, TOP).map(|json| inside(json.get()).to_owned()).into_iter().collect();
    top.extend((!rest.is_empty()).then(|| format!("\"generationConfig\":{{{}}}", rest.join(","))));
    top.extend(rest_of_choice.map(|rest| format!("\"toolConfig\":{rest}")));
    let own = (!top.is_empty()).then(|| RawJson::parse(format!("{{{}}}", top.join(","))).ok()).flatten();
    let own = own.map(|json| ProviderData { provider: provider.to_owned(), json });
    RequestSettings { extra: own.into_iter().collect(), ..settings }
}

/// The choice, and what of the tool configuration says more.
pub(super) fn tool_choice(fields: &Fields<'_>) -> (ToolChoice, Option<String>) {
    let Some(raw) = field(fields, &["toolConfig", "tool_config"]) else { return (ToolChoice::Auto, None) };
    let inner = Fields::read(raw.get()).unwrap_or_default();
    let calling = field(&inner, &["functionCallingConfig", "function_calling_config"]);
    let wire: WireChoice<'_> =
        calling.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let names = wire.allowed.unwrap_or_default();
    let choice = match (wire.mode.as_str(), names.as_slice()) {
        ("ANY", []) => Some(ToolChoice::Required),
        ("ANY", [name]) => Some(ToolChoice::Tool(name.clone())),
        (mode @ ("ANY" | "VALIDATED"), [_, ..]) => {
            Some(ToolChoice::Allowed { tools: names.clone(), required: mode == "ANY" })
        }
        ("NONE", []) => Some(ToolChoice::None),
        ("AUTO" | "MODE_UNSPECIFIED" | "", []) => Some(ToolChoice::Auto),
        _ => None,
    };
    let mut rest = extra(&inner, &["functionCallingConfig", "function_calling_config"])
        .map(|json| json.get().to_owned());
    if let (None, Some(calling)) = (&choice, calling) {
        let more = rest.as_deref().map(|rest| format!(",{}", inside(rest))).unwrap_or_default();
        rest = Some(format!("{{\"functionCallingConfig\":{}{more}}}", calling.get()));
    }
    (choice.unwrap_or_default(), rest)
}

/// How the model thinks; what is shown of it is ours to say only where it differs from what the encoder asks for.
fn thinking(raw: Option<&RawValue>) -> (Option<Thinking>, Option<Effort>, Option<String>) {
    let Some(raw) = raw else { return (None, None, None) };
    let Ok(wire) = serde_json::from_str::<WireThinking<'_>>(raw.get()) else {
        return (None, None, Some(raw.get().to_owned()));
    };
    let budget = wire.budget.and_then(|raw| serde_json::from_str::<i64>(raw.get()).ok());
    let effort =
        LEVELS.iter().find(|(word, _)| wire.level.as_str().eq_ignore_ascii_case(word)).map(|(_, e)| *e);
    let thinking = match budget {
        Some(0) => Some(Thinking::Disabled),
        Some(-1) => Some(Thinking::Adaptive),
        Some(tokens) => u32::try_from(tokens).ok().map(Thinking::Budget),
        // The level tells how much, so that nothing but the showing is asked for.
        None if effort.is_some() && wire.shown == Some(true) => Some(Thinking::Adaptive),
        None => None,
    };
    let mut rest = Vec::new();
    let is_asked = matches!(thinking, Some(Thinking::Adaptive | Thinking::Budget(_)));
    let shown = wire.shown.unwrap_or(false);
    if shown != is_asked {
        rest.push(format!("\"includeThoughts\":{shown}"));
    }
    if effort.is_none() && !wire.level.as_str().is_empty() {
        rest.push(format!("\"thinkingLevel\":{}", quoted(wire.level.as_str())));
    }
    (thinking, effort, (!rest.is_empty()).then(|| format!("{{{}}}", rest.join(","))))
}

fn tier(raw: &RawValue) -> Option<ServiceTier> {
    let word = serde_json::from_str::<String>(raw.get()).ok()?;
    Some(match word.as_str() {
        "standard" => ServiceTier::Standard,
        "priority" => ServiceTier::Priority,
        "flex" => ServiceTier::Flex,
        _ => ServiceTier::Other(word),
    })
}

fn field<'a>(fields: &Fields<'a>, names: &[&str]) -> Option<&'a RawValue> {
    names.iter().find_map(|name| fields.get(name)).filter(|raw| raw.get() != "null")
}

fn inside(object: &str) -> &str {
    object.get(1..object.len().saturating_sub(1)).unwrap_or_default()
}

const LEVELS: &[(&str, Effort)] = &[
    ("minimal", Effort::Minimal),
    ("low", Effort::Low),
    ("medium", Effort::Medium),
    ("high", Effort::High),
    ("xhigh", Effort::XHigh),
];
/// Fields of the configuration with a place of their own.
const CONFIG: &[&str] = &[
    "thinkingConfig",
    "thinking_config",
    "maxOutputTokens",
    "max_output_tokens",
    "temperature",
    "topP",
    "top_p",
    "topK",
    "top_k",
    "seed",
    "presencePenalty",
    "presence_penalty",
    "frequencyPenalty",
    "frequency_penalty",
    "stopSequences",
    "stop_sequences",
];
/// Fields of the request with a place of their own; those of its conversation are left out by `extra` itself.
const TOP: &[&str] = &["generationConfig", "generation_config", "toolConfig", "tool_config", "serviceTier"];
