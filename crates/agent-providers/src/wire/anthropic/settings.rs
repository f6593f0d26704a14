//! The end of a request: limits, sampling, thinking and choices, which change without touching what comes before.

use agent_core::{Effort, ModelRequest, RequestSettings, ServiceTier, Setting, Thinking};

use crate::wire::choice::{self, Choice, undecided};
use crate::wire::form::Cx;
use crate::wire::json::{Fields, quoted};
use crate::wire::tail::Tail;

/// Writes everything behind the messages but whether the answer is streamed (requirement M12).
pub(super) fn tail(request: &ModelRequest<'_>, cx: &mut Cx<'_>) -> Tail {
    let mut tail = Tail::default();
    let settings = request.settings;
    let limit = cx.output_limit(settings.max_output.unwrap_or(cx.profile.max_output));
    tail.set("max_tokens", &limit);
    let thinking = thinking(settings.thinking, limit, cx);
    let thinks = matches!(thinking, Some(Mode::Adaptive | Mode::Enabled(_)));
    sampling(&mut tail, settings, thinks, cx);
    match thinking {
        Some(Mode::Adaptive) => tail.raw("thinking", r#"{"type":"adaptive"}"#),
        Some(Mode::Disabled) => tail.raw("thinking", r#"{"type":"disabled"}"#),
        Some(Mode::Enabled(budget)) => {
            tail.raw("thinking", format!(r#"{{"type":"enabled","budget_tokens":{budget}}}"#));
        }
        None => {}
    }
    if let Some(effort) = effort(settings.effort, matches!(thinking, Some(Mode::Disabled)), cx) {
        tail.object("output_config").set("effort", effort);
    }
    let stops = stop_sequences(settings, cx);
    if !stops.is_empty() {
        tail.set("stop_sequences", &stops);
    }
    if let Some(choice) = choice(request, thinks, cx) {
        tail.raw("tool_choice", choice);
    }
    if let Some(tier) = service_tier(settings.service_tier.as_ref(), cx) {
        tail.set("service_tier", tier);
    }
    if settings.fast && cx.takes("settings.fast", Setting::Fast) {
        tail.set("speed", "fast");
    }
    tail
}

/// Names of beta features that settings need, besides those that the conversation does.
pub(super) fn betas(settings: &RequestSettings, refuses_fast: bool, provider: &str) -> Vec<&'static str> {
    let mut all = Vec::new();
    if settings.fast && !refuses_fast {
        all.push("fast-mode-2026-02-01");
    }
    let ours = settings.extra.iter().filter(|data| data.provider == provider);
    for fields in ours.filter_map(|data| Fields::read(data.json.get())) {
        all.extend(BETAS.iter().filter(|(field, _)| fields.get(field).is_some()).map(|(_, beta)| *beta));
        let edits =
            fields.get("context_management").is_some_and(|raw| raw.get().contains("compact_20260112"));
        all.extend(edits.then_some(super::segment::COMPACTION_EDIT));
    }
    all
}

#[derive(Clone, Copy)]
enum Mode {
    Adaptive,
    Enabled(u32),
    Disabled,
}

fn sampling(tail: &mut Tail, settings: &RequestSettings, thinks: bool, cx: &mut Cx<'_>) {
    let why = if thinks {
        Some("it cannot be set while the model thinks; left out")
    } else {
        refuses(Setting::Sampling, cx).then_some(NOT_TAKEN)
    };
    let temperature = number("temperature", settings.temperature, why, cx);
    let mut top_p = number("top_p", settings.top_p, why, cx);
    if temperature.is_some() && top_p.take().is_some() {
        cx.note("settings.top_p", "this provider takes it or the temperature; the temperature was sent");
    }
    if let Some(temperature) = temperature {
        tail.set("temperature", &temperature);
    }
    if let Some(top_p) = top_p {
        tail.set("top_p", &top_p);
    }
    match (settings.top_k, why) {
        (Some(_), Some(why)) => cx.note("settings.top_k", why),
        (Some(top_k), None) => tail.set("top_k", &top_k),
        (None, _) => {}
    }
    for (what, is_set) in [
        ("settings.presence_penalty", settings.presence_penalty.is_some()),
        ("settings.frequency_penalty", settings.frequency_penalty.is_some()),
        ("settings.seed", settings.seed.is_some()),
    ] {
        if is_set {
            cx.note(what, "this provider has no such setting; left out");
        }
    }
}

/// A share between 0 and 1, or the nearest to it; `why` it cannot be sent at all.
fn number(what: &str, wanted: Option<f32>, why: Option<&str>, cx: &mut Cx<'_>) -> Option<f32> {
    let wanted = wanted?;
    let what = format!("settings.{what}");
    if let Some(why) = why {
        cx.note(&what, why);
        return None;
    }
    cx.nearest(&what, wanted, (0.0, 1.0))
}

fn thinking(wanted: Option<Thinking>, limit: u32, cx: &mut Cx<'_>) -> Option<Mode> {
    let (mode, why) = match wanted? {
        Thinking::Adaptive if refuses(Setting::ThinkingAdaptive, cx) => {
            (None, "this model thinks by a budget only; left out, give it a budget")
        }
        Thinking::Adaptive => return Some(Mode::Adaptive),
        Thinking::Budget(_) if refuses(Setting::ThinkingBudget, cx) => {
            let adapts = !refuses(Setting::ThinkingAdaptive, cx);
            (adapts.then_some(Mode::Adaptive), "this model takes no budget; it thinks as it sees fit")
        }
        Thinking::Budget(budget) => return enabled(budget, limit, cx),
        Thinking::Disabled if refuses(Setting::ThinkingDisabled, cx) => {
            (None, "this model always thinks; left out")
        }
        Thinking::Disabled => return Some(Mode::Disabled),
        _ => (None, "this provider has no such mode; left out"),
    };
    cx.note("settings.thinking", why);
    mode
}

/// The budget must be at least 1024 tokens and leave room for words below the output limit.
fn enabled(budget: u32, limit: u32, cx: &mut Cx<'_>) -> Option<Mode> {
    if limit <= SMALLEST_BUDGET {
        cx.note("settings.thinking", "the output limit leaves no room to think; raise it above 1024 tokens");
        return None;
    }
    let given = budget.clamp(SMALLEST_BUDGET, limit - 1);
    if given != budget {
        let why = format!("a budget lies between 1024 and the output limit; {given} was sent");
        cx.note("settings.thinking", why);
    }
    Some(Mode::Enabled(given))
}

fn effort(wanted: Option<Effort>, thinks_not: bool, cx: &mut Cx<'_>) -> Option<&'static str> {
    let wanted = wanted?;
    if !cx.takes("settings.effort", Setting::Effort) {
        return None;
    }
    let above = refuses(Setting::EffortAboveHigh, cx);
    let (word, why) = match wanted {
        Effort::Minimal => ("low", "this provider's least is low; it was sent"),
        Effort::Low => return Some("low"),
        Effort::Medium => return Some("medium"),
        Effort::High => return Some("high"),
        Effort::XHigh | Effort::Max if above => ("high", "this model takes no more than high; it was sent"),
        Effort::XHigh if refuses(Setting::EffortXHigh, cx) => {
            ("high", "this model has no xhigh; high was sent, and max would be more")
        }
        Effort::XHigh | Effort::Max if thinks_not => {
            ("high", "without thinking no more than high is taken; it was sent")
        }
        Effort::XHigh => return Some("xhigh"),
        Effort::Max => return Some("max"),
        _ => ("high", "this provider has no such word; high was sent"),
    };
    cx.note("settings.effort", why);
    Some(word)
}

/// Blank ones are refused.
fn stop_sequences<'s>(settings: &'s RequestSettings, cx: &mut Cx<'_>) -> Vec<&'s str> {
    let all: Vec<&str> = settings.stop_sequences.iter().map(String::as_str).collect();
    if !all.is_empty() && !cx.takes("settings.stop_sequences", Setting::StopSequences) {
        return Vec::new();
    }
    let kept: Vec<&str> = all.iter().copied().filter(|stop| !stop.trim().is_empty()).collect();
    if kept.len() < all.len() {
        cx.note("settings.stop_sequences", "a blank one is refused by this provider; left out");
    }
    kept
}

/// The choice of a tool, and whether several may be called at once.
fn choice(request: &ModelRequest<'_>, thinks: bool, cx: &mut Cx<'_>) -> Option<String> {
    let has_tools = !request.tools.is_empty();
    let choice = choice::choice(request, cx);
    let is_none = choice == Some(Choice::None);
    let kind = choice.and_then(|choice| kind_of_choice(choice, thinks, cx));
    let one_only = request.settings.parallel_tool_calls == Some(false);
    if !one_only {
        return kind.map(|kind| format!("{{{kind}}}"));
    }
    let why = if !has_tools {
        "there are no tools to call; left out"
    } else if refuses(Setting::ParallelToolCalls, cx) {
        NOT_TAKEN
    } else if is_none {
        "no tool is to be called; left out"
    } else {
        let kind = kind.unwrap_or_else(|| r#""type":"auto""#.to_owned());
        return Some(format!(r#"{{{kind},"disable_parallel_tool_use":true}}"#));
    };
    cx.note("settings.parallel_tool_calls", why);
    kind.map(|kind| format!("{{{kind}}}"))
}

/// The fields of a choice; `None` lets the model decide.
fn kind_of_choice(choice: Choice<'_>, thinks: bool, cx: &mut Cx<'_>) -> Option<String> {
    match choice {
        Choice::None => Some(r#""type":"none""#.to_owned()),
        Choice::Allowed { .. } => undecided("this provider has no choice of some tools", cx),
        Choice::Required | Choice::Tool(_) if thinks => {
            undecided("a tool cannot be forced while the model thinks", cx)
        }
        Choice::Required => Some(r#""type":"any""#.to_owned()),
        Choice::Tool(tool) => {
            Some(format!(r#""type":"tool","name":{}"#, quoted(&cx.names.wire(tool.name()))))
        }
    }
}

fn service_tier<'s>(wanted: Option<&'s ServiceTier>, cx: &mut Cx<'_>) -> Option<&'s str> {
    let wanted = wanted?;
    if !cx.takes("settings.service_tier", Setting::ServiceTier) {
        return None;
    }
    match wanted {
        ServiceTier::Auto => Some("auto"),
        ServiceTier::Standard => Some("standard_only"),
        ServiceTier::Other(word) => Some(word),
        ServiceTier::Priority => {
            cx.note(
                "settings.service_tier",
                "this provider gives priority where it is paid for; auto was sent",
            );
            Some("auto")
        }
        ServiceTier::Flex | _ => {
            cx.note("settings.service_tier", "this provider has no such tier; left out");
            None
        }
    }
}

fn refuses(setting: Setting, cx: &Cx<'_>) -> bool {
    cx.profile.refuses.contains(&setting)
}

const NOT_TAKEN: &str = "this model does not take it; left out";
const SMALLEST_BUDGET: u32 = 1_024;
/// Fields of the user's own, and the features they belong to.
const BETAS: &[(&str, &str)] = &[
    ("context_management", "context-management-2025-06-27"),
    ("compaction", super::segment::COMPACTION),
    ("mcp_servers", "mcp-client-2025-11-20"),
];
