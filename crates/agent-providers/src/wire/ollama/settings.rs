//! The end of a request: thinking, and the options of the runner.

use agent_core::{Effort, ModelRequest, RequestSettings, Setting, Thinking, ToolChoice};
use serde::Serialize;

use crate::wire::form::Cx;
use crate::wire::tail::Tail;

/// Writes everything behind the messages but whether the answer is streamed.
pub(super) fn tail(request: &ModelRequest<'_>, cx: &mut Cx<'_>) -> Tail {
    let mut tail = Tail::default();
    let settings = request.settings;
    match think(settings, cx) {
        Some(Think::Flag(flag)) => tail.set("think", &flag),
        Some(Think::Level(level)) => tail.set("think", level),
        None => {}
    }
    let mut options = Options { tail: &mut tail, cx };
    options.limit(settings);
    options.sampling(settings);
    options.penalties(settings);
    if !settings.stop_sequences.is_empty() && options.takes(Setting::StopSequences, "settings.stop_sequences")
    {
        options.set("stop", &settings.stop_sequences);
    }
    others(request, cx);
    tail
}

/// What is said of thinking.
enum Think {
    Flag(bool),
    Level(&'static str),
}

/// Writes `options`, which is there only when something is in it.
struct Options<'t, 'c, 'e> {
    tail: &'t mut Tail,
    cx: &'c mut Cx<'e>,
}

impl Options<'_, '_, '_> {
    fn set<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) {
        self.tail.object("options").set(key, value);
    }

    /// Whether the model takes a setting; a refused one is told.
    fn takes(&mut self, setting: Setting, what: &str) -> bool {
        takes(self.cx, setting, what)
    }

    fn limit(&mut self, settings: &RequestSettings) {
        let Some(wanted) = settings.max_output else { return };
        let most = if self.cx.profile.known { self.cx.profile.max_output } else { u32::MAX };
        if wanted > most {
            let why = format!(
                "{} writes at most {most} tokens; {wanted} were asked for, {most} are sent",
                self.cx.profile.model
            );
            self.cx.note("settings.max_output", why);
        }
        self.set("num_predict", &wanted.min(most).max(1));
    }

    fn sampling(&mut self, settings: &RequestSettings) {
        self.number("temperature", "settings.temperature", settings.temperature, Setting::Sampling);
        self.number("top_p", "settings.top_p", settings.top_p, Setting::Sampling);
        if let Some(top_k) = settings.top_k
            && self.takes(Setting::Sampling, "settings.top_k")
        {
            self.set("top_k", &top_k);
        }
        if let Some(seed) = settings.seed
            && self.takes(Setting::Seed, "settings.seed")
        {
            self.set("seed", &seed);
        }
    }

    fn penalties(&mut self, settings: &RequestSettings) {
        let (presence, frequency) = (settings.presence_penalty, settings.frequency_penalty);
        self.number("presence_penalty", "settings.presence_penalty", presence, Setting::Penalties);
        self.number("frequency_penalty", "settings.frequency_penalty", frequency, Setting::Penalties);
    }

    fn number(&mut self, key: &str, what: &str, value: Option<f32>, setting: Setting) {
        let Some(value) = value else { return };
        if !value.is_finite() {
            self.cx.note(what, "it is no number; left out");
        } else if self.takes(setting, what) {
            self.set(key, &value);
        }
    }
}

fn takes(cx: &mut Cx<'_>, setting: Setting, what: &str) -> bool {
    let refused = cx.profile.refuses.contains(&setting);
    if refused {
        cx.note(what, "this model does not take it; left out");
    }
    !refused
}

/// Whether the model thinks, or how much; a level says both.
fn think(settings: &RequestSettings, cx: &mut Cx<'_>) -> Option<Think> {
    const WHAT: &str = "settings.thinking";
    let level = level(settings, cx);
    match settings.thinking {
        None => level,
        Some(Thinking::Disabled) if takes(cx, Setting::ThinkingDisabled, WHAT) => {
            if level.is_some() {
                cx.note("settings.effort", "a model that does not think takes no effort; left out");
            }
            Some(Think::Flag(false))
        }
        Some(Thinking::Adaptive) if takes(cx, Setting::ThinkingAdaptive, WHAT) => {
            level.or(Some(Think::Flag(true)))
        }
        Some(Thinking::Budget(_)) if takes(cx, Setting::ThinkingBudget, WHAT) => {
            cx.note(WHAT, "this provider takes no budget; the model thinks as it sees fit");
            level.or(Some(Think::Flag(true)))
        }
        Some(Thinking::Disabled | Thinking::Adaptive | Thinking::Budget(_)) => level,
        Some(_) => {
            cx.note(WHAT, "this provider has no such mode; left out");
            level
        }
    }
}

fn level(settings: &RequestSettings, cx: &mut Cx<'_>) -> Option<Think> {
    const WHAT: &str = "settings.effort";
    let effort = settings.effort?;
    if !takes(cx, Setting::Effort, WHAT) {
        return None;
    }
    let (level, is_exact) = match effort {
        Effort::Low => ("low", true),
        Effort::Medium => ("medium", true),
        Effort::High => ("high", true),
        Effort::Minimal => ("low", false),
        Effort::XHigh | Effort::Max | _ => ("high", false),
    };
    if !is_exact {
        cx.note(WHAT, format!("this provider knows low, medium and high; {level:?} was sent"));
    }
    Some(Think::Level(level))
}

/// What the wire has no word for.
fn others(request: &ModelRequest<'_>, cx: &mut Cx<'_>) {
    let settings = request.settings;
    let choice = match request.tool_choice {
        ToolChoice::Auto => false,
        ToolChoice::None => !request.tools.is_empty(),
        ToolChoice::Required | ToolChoice::Tool(_) | ToolChoice::Allowed { .. } | _ => true,
    };
    if choice {
        cx.note("tool_choice", "this provider takes no choice of tools; the model decides");
    }
    if settings.parallel_tool_calls == Some(false) {
        let why =
            "this provider cannot be told to call one tool at a time; left out, say it in the instructions";
        cx.note("settings.parallel_tool_calls", why);
    }
    if settings.service_tier.is_some() {
        cx.note("settings.service_tier", "this provider has no tiers; left out");
    }
    if settings.fast {
        cx.note("settings.fast", "this provider has no fast mode; left out");
    }
}
