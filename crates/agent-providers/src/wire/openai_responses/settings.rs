//! The end of a request: limits, thinking and choices, which change without touching what comes before.

use agent_core::{Effort, ModelProfile, ModelRequest, RequestSettings, ServiceTier, Setting, Thinking};

use super::tools::choice;
use crate::wire::form::Cx;
use crate::wire::tail::Tail;

/// Writes everything behind the input but whether the answer is streamed.
pub(super) fn tail(request: &ModelRequest<'_>, cx: &mut Cx<'_>) -> Tail {
    let mut tail = Tail::default();
    let settings = request.settings;
    if let Some(wanted) = settings.max_output {
        tail.set("max_output_tokens", &cx.output_limit(wanted));
    }
    sampling(&mut tail, settings, cx);
    if let Some(effort) = effort(settings, cx) {
        tail.object("reasoning").set("effort", effort);
    }
    if let Some(choice) = choice(request, cx) {
        tail.raw("tool_choice", choice);
    }
    parallel(&mut tail, request, cx);
    if let Some(tier) = service_tier(settings, cx) {
        tail.set("service_tier", tier);
    }
    no_place(settings, cx);
    // The whole conversation is in each request, so nothing need be kept for the next one. What was thought is
    // then sent sealed.
    tail.raw("store", "false");
    if thinks(cx.profile) {
        tail.raw("include", r#"["reasoning.encrypted_content"]"#);
    }
    tail
}

fn sampling(tail: &mut Tail, settings: &RequestSettings, cx: &mut Cx<'_>) {
    let wanted = [
        ("temperature", settings.temperature, 2.0, "settings.temperature"),
        ("top_p", settings.top_p, 1.0, "settings.top_p"),
    ];
    for (key, wanted, most, what) in wanted {
        let Some(wanted) = wanted else { continue };
        if cx.takes(what, Setting::Sampling)
            && let Some(given) = cx.nearest(what, wanted, (0.0, most))
        {
            tail.set(key, &given);
        }
    }
}

/// The word for how much the model thinks; not to think at all is one of them.
fn effort(settings: &RequestSettings, cx: &mut Cx<'_>) -> Option<&'static str> {
    let refuses = |setting: Setting| cx.profile.refuses.contains(&setting);
    let no_effort = refuses(Setting::Effort);
    let no_high = refuses(Setting::EffortAboveHigh) || refuses(Setting::EffortXHigh);
    let no_minimal = refuses(Setting::EffortMinimal);
    let not_disabled = refuses(Setting::ThinkingDisabled) || no_effort;
    match settings.thinking {
        Some(Thinking::Disabled) if not_disabled => {
            cx.note("settings.thinking", "whether this model thinks cannot be set; left out");
        }
        Some(Thinking::Disabled) => {
            if settings.effort.is_some() {
                cx.note("settings.effort", "the model is asked not to think; left out");
            }
            return Some("none");
        }
        Some(Thinking::Budget(_)) => cx.note(
            "settings.thinking",
            "this provider takes no budget; the model thinks as it sees fit, or as `effort` says",
        ),
        // That is what the model does when nothing is said.
        Some(Thinking::Adaptive) | None => {}
        Some(_) => cx.note("settings.thinking", "this provider has no such mode; left out"),
    }
    let wanted = settings.effort?;
    if !cx.takes("settings.effort", Setting::Effort) {
        return None;
    }
    let word = word_of(wanted, cx);
    let (word, why) = match word {
        XHIGH if no_high => ("high", "this model takes no more than \"high\", which was sent"),
        MINIMAL if no_minimal => ("low", "this model's least is \"low\", which was sent"),
        word => return Some(word),
    };
    cx.note("settings.effort", why);
    Some(word)
}

fn word_of(effort: Effort, cx: &mut Cx<'_>) -> &'static str {
    match effort {
        Effort::Minimal => MINIMAL,
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        Effort::XHigh => XHIGH,
        Effort::Max | _ => {
            cx.note("settings.effort", "the most this provider has is \"xhigh\", which was sent");
            XHIGH
        }
    }
}

/// The effort of a word; `None` for words we have no name for.
pub(super) fn effort_of(word: &str) -> Option<Effort> {
    let all = [Effort::Minimal, Effort::Low, Effort::Medium, Effort::High, Effort::XHigh];
    [MINIMAL, "low", "medium", "high", XHIGH]
        .iter()
        .zip(all)
        .find(|(known, _)| **known == word)
        .map(|(_, e)| e)
}

fn parallel(tail: &mut Tail, request: &ModelRequest<'_>, cx: &mut Cx<'_>) {
    const WHAT: &str = "settings.parallel_tool_calls";
    let Some(wanted) = request.settings.parallel_tool_calls else { return };
    if request.tools.is_empty() {
        cx.note(WHAT, "there are no tools to call; left out");
    } else if cx.takes(WHAT, Setting::ParallelToolCalls) {
        tail.set("parallel_tool_calls", &wanted);
    }
}

fn service_tier<'s>(settings: &'s RequestSettings, cx: &mut Cx<'_>) -> Option<&'s str> {
    let no_fast = cx.profile.refuses.contains(&Setting::Fast);
    if settings.fast && no_fast {
        cx.note("settings.fast", "this model has no faster form; left out");
    } else if settings.fast && settings.service_tier.is_some() {
        cx.note("settings.fast", "the service tier that was asked for decides");
    }
    let tier = match &settings.service_tier {
        None => return (settings.fast && !no_fast).then_some(PRIORITY),
        Some(ServiceTier::Auto) => "auto",
        Some(ServiceTier::Standard) => "default",
        Some(ServiceTier::Priority) => PRIORITY,
        Some(ServiceTier::Flex) => "flex",
        Some(ServiceTier::Other(word)) => word,
        Some(_) => {
            cx.note("settings.service_tier", "this provider has no such tier; left out");
            return None;
        }
    };
    cx.takes("settings.service_tier", Setting::ServiceTier).then_some(tier)
}

/// The tier of a word.
pub(super) fn tier_of(word: &str) -> ServiceTier {
    match word {
        "auto" => ServiceTier::Auto,
        "default" => ServiceTier::Standard,
        PRIORITY => ServiceTier::Priority,
        "flex" => ServiceTier::Flex,
        other => ServiceTier::Other(other.to_owned()),
    }
}

/// Settings that this format has no field for.
fn no_place(settings: &RequestSettings, cx: &mut Cx<'_>) {
    let set = [
        ("settings.top_k", settings.top_k.is_some()),
        ("settings.presence_penalty", settings.presence_penalty.is_some()),
        ("settings.frequency_penalty", settings.frequency_penalty.is_some()),
        ("settings.seed", settings.seed.is_some()),
        ("settings.stop_sequences", !settings.stop_sequences.is_empty()),
    ];
    for (what, _) in set.iter().filter(|(_, is_set)| *is_set) {
        cx.note(what, "this format has no such field; left out");
    }
}

/// Whether sealed thinking may be asked for: models that never think refuse to be asked. Some that do think take no effort.
fn thinks(profile: &ModelProfile) -> bool {
    let refuses = |setting: Setting| profile.refuses.contains(&setting);
    let never = refuses(Setting::Effort) && refuses(Setting::ThinkingAdaptive);
    !never && !NEVER_THINK.iter().any(|start| profile.model.starts_with(start))
}

const MINIMAL: &str = "minimal";
const XHIGH: &str = "xhigh";
const PRIORITY: &str = "priority";
/// The families from before models thought; all later ones do.
const NEVER_THINK: &[&str] = &["gpt-3.5", "gpt-4", "chatgpt-4o"];
