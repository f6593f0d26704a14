//! The end of a request: limits, thinking and choices, which change without touching what comes before.

use agent_core::{Diagnostic, ModelProfile, ModelRequest, RequestSettings, Setting, Thinking, ToolChoice};

use super::tools::can_force;
use crate::names::ToolNames;
use crate::wire::form::Cx;
use crate::wire::json::quoted;
use crate::wire::tail::Tail;

/// Writes everything behind the messages but whether the answer is streamed.
pub(super) fn tail(request: &ModelRequest<'_>, cx: &mut Cx<'_>) -> Tail {
    let mut tail = Tail::default();
    let (settings, profile) = (request.settings, cx.profile);
    let mut notes = Notes(cx.diagnostics);
    let limit = max_tokens(settings, profile, &mut notes);
    tail.set("max_tokens", &limit);
    let thinking = thinking(settings.thinking, limit, profile, &mut notes);
    let thinks = matches!(thinking, Some(Mode::Adaptive | Mode::Enabled(_)));
    if let Some(temperature) = temperature(settings, thinks, profile, &mut notes) {
        tail.set("temperature", &temperature);
    }
    match thinking {
        Some(Mode::Adaptive) => tail.raw("thinking", r#"{"type":"adaptive"}"#),
        Some(Mode::Disabled) => tail.raw("thinking", r#"{"type":"disabled"}"#),
        Some(Mode::Enabled(budget)) => {
            tail.raw("thinking", format!(r#"{{"type":"enabled","budget_tokens":{budget}}}"#));
        }
        None => {}
    }
    if !settings.stop_sequences.is_empty() {
        tail.set("stop_sequences", &settings.stop_sequences);
    }
    if let Some(choice) = tool_choice(request, thinks, profile, cx.names, &mut notes) {
        tail.raw("tool_choice", choice);
    }
    tail
}

struct Notes<'d>(&'d mut Vec<Diagnostic>);

impl Notes<'_> {
    fn add(&mut self, what: &str, why: impl Into<String>) {
        self.0.push(Diagnostic { what: what.to_owned(), why: why.into() });
    }
}

#[derive(Clone, Copy)]
enum Mode {
    Adaptive,
    Enabled(u32),
    Disabled,
}

fn max_tokens(settings: &RequestSettings, profile: &ModelProfile, notes: &mut Notes<'_>) -> u32 {
    let most = profile.max_output;
    let wanted = settings.max_output.unwrap_or(most);
    if wanted > most {
        notes.add(
            "settings.max_output",
            format!("{} writes at most {most} tokens; asked for {most}", profile.model),
        );
    }
    wanted.min(most).max(1)
}

fn temperature(
    settings: &RequestSettings,
    thinks: bool,
    profile: &ModelProfile,
    notes: &mut Notes<'_>,
) -> Option<f32> {
    let wanted = settings.temperature?;
    let why = if thinks {
        "it cannot be set while the model thinks; left out"
    } else if profile.refuses.contains(&Setting::Sampling) {
        "this model does not take it; left out"
    } else if !wanted.is_finite() {
        "it is no number; left out"
    } else {
        if !(0.0..=1.0).contains(&wanted) {
            notes.add("settings.temperature", "this provider takes 0 to 1; the nearest was sent");
        }
        return Some(wanted.clamp(0.0, 1.0));
    };
    notes.add("settings.temperature", why);
    None
}

fn thinking(
    wanted: Option<Thinking>,
    limit: u32,
    profile: &ModelProfile,
    notes: &mut Notes<'_>,
) -> Option<Mode> {
    let refuses = |setting| profile.refuses.contains(&setting);
    match wanted? {
        Thinking::Adaptive if refuses(Setting::ThinkingAdaptive) => {
            notes.add("settings.thinking", "this model thinks by a budget only; left out, give it a budget");
            None
        }
        Thinking::Adaptive => Some(Mode::Adaptive),
        Thinking::Budget(_) if refuses(Setting::ThinkingBudget) => {
            notes.add("settings.thinking", "this model takes no budget; it thinks as it sees fit");
            Some(Mode::Adaptive)
        }
        Thinking::Budget(budget) => enabled(budget, limit, notes),
        Thinking::Disabled if refuses(Setting::ThinkingDisabled) => {
            notes.add("settings.thinking", "this model always thinks; left out");
            None
        }
        Thinking::Disabled => Some(Mode::Disabled),
        _ => {
            notes.add("settings.thinking", "this provider has no such mode; left out");
            None
        }
    }
}

/// The budget must be at least 1024 tokens and leave room for words below the output limit.
fn enabled(budget: u32, limit: u32, notes: &mut Notes<'_>) -> Option<Mode> {
    if limit <= SMALLEST_BUDGET {
        notes
            .add("settings.thinking", "the output limit leaves no room to think; raise it above 1024 tokens");
        return None;
    }
    let given = budget.clamp(SMALLEST_BUDGET, limit - 1);
    if given != budget {
        notes.add(
            "settings.thinking",
            format!("a budget lies between 1024 and the output limit; {given} was sent"),
        );
    }
    Some(Mode::Enabled(given))
}

fn tool_choice(
    request: &ModelRequest<'_>,
    thinks: bool,
    profile: &ModelProfile,
    names: &ToolNames,
    notes: &mut Notes<'_>,
) -> Option<String> {
    let forced = match request.tool_choice {
        ToolChoice::Auto => return None,
        ToolChoice::None if request.tools.is_empty() => return None,
        ToolChoice::None => return Some(r#"{"type":"none"}"#.to_owned()),
        ToolChoice::Required => r#"{"type":"any"}"#.to_owned(),
        ToolChoice::Tool(name) => format!(r#"{{"type":"tool","name":{}}}"#, quoted(&names.wire(name))),
        ToolChoice::Allowed { .. } | _ => {
            notes.add("tool_choice", "this provider has no such choice; the model decides");
            return None;
        }
    };
    let is_known = can_force(request.tool_choice, request.tools, &profile.provider);
    let why = if !is_known {
        "the tool is not among the tools of the request; the model decides"
    } else if !profile.forced_tool_choice {
        "this model cannot be forced to call a tool; the model decides"
    } else if thinks {
        "a tool cannot be forced while the model thinks; the model decides"
    } else {
        return Some(forced);
    };
    notes.add("tool_choice", why);
    None
}

const SMALLEST_BUDGET: u32 = 1_024;
