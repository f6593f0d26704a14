//! The end of a request: choices, limits, sampling and thinking.

use agent_core::{
    Effort, ModelRequest, RequestSettings, ServiceTier, Setting, Thinking, ToolCard, ToolChoice,
};
use serde::Serialize;

use super::checks_signatures;
use crate::wire::form::Cx;
use crate::wire::json::{Fields, quoted};
use crate::wire::tail::Tail;

/// Writes everything behind the contents.
pub(super) fn tail(request: &ModelRequest<'_>, cx: &mut Cx<'_>) -> Tail {
    let mut tail = Tail::default();
    let settings = request.settings;
    if let Some(choice) = tool_choice(request, cx) {
        tail.object("toolConfig").raw("functionCallingConfig", choice);
    }
    let mut config = Config { tail: &mut tail, cx };
    config.limit(settings);
    config.sampling(settings);
    config.penalties(settings);
    config.stops(settings);
    config.thinking(settings);
    if let Some(tier) = service_tier(settings, cx) {
        tail.set("serviceTier", &tier);
    }
    others(settings, cx);
    tail
}

/// Writes `generationConfig`, which is there only when something is in it.
struct Config<'t, 'c, 'e> {
    tail: &'t mut Tail,
    cx: &'c mut Cx<'e>,
}

impl Config<'_, '_, '_> {
    fn set<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) {
        self.tail.object("generationConfig").set(key, value);
    }

    /// Whether the model takes a setting; a refused one is told.
    fn takes(&mut self, setting: Setting, what: &str) -> bool {
        let refused = self.cx.profile.refuses.contains(&setting);
        if refused {
            self.cx.note(what, "this model does not take it; left out");
        }
        !refused
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
        self.set("maxOutputTokens", &wanted.min(most).max(1));
    }

    fn sampling(&mut self, settings: &RequestSettings) {
        let given = [
            ("temperature", "settings.temperature", settings.temperature, 2.0),
            ("topP", "settings.top_p", settings.top_p, 1.0),
        ];
        for (key, what, value, most) in given {
            if let Some(value) = value
                && self.takes(Setting::Sampling, what)
            {
                self.number(key, what, value, (0.0, most));
            }
        }
        if let Some(top_k) = settings.top_k
            && self.takes(Setting::Sampling, "settings.top_k")
        {
            self.set("topK", &top_k);
        }
        if let Some(seed) = settings.seed
            && self.takes(Setting::Seed, "settings.seed")
        {
            match i32::try_from(seed) {
                Ok(seed) => self.set("seed", &seed),
                Err(_) => self.cx.note("settings.seed", "this provider takes a seed of 32 bits; left out"),
            }
        }
    }

    fn penalties(&mut self, settings: &RequestSettings) {
        let given = [
            ("presencePenalty", "settings.presence_penalty", settings.presence_penalty),
            ("frequencyPenalty", "settings.frequency_penalty", settings.frequency_penalty),
        ];
        for (key, what, value) in given {
            if let Some(value) = value
                && self.takes(Setting::Penalties, what)
            {
                self.number(key, what, value, (-2.0, 2.0));
            }
        }
    }

    fn number(&mut self, key: &str, what: &str, value: f32, (least, most): (f32, f32)) {
        if !value.is_finite() {
            return self.cx.note(what, "it is no number; left out");
        }
        if !(least..=most).contains(&value) {
            self.cx.note(what, format!("this provider takes {least} to {most}; the nearest was sent"));
        }
        self.set(key, &value.clamp(least, most));
    }

    fn stops(&mut self, settings: &RequestSettings) {
        let stops = &settings.stop_sequences;
        if stops.is_empty() || !self.takes(Setting::StopSequences, "settings.stop_sequences") {
            return;
        }
        if stops.len() > MOST_STOPS {
            let why = format!("this provider takes {MOST_STOPS} texts; the first ones were sent");
            self.cx.note("settings.stop_sequences", why);
        }
        self.set("stopSequences", &stops.iter().take(MOST_STOPS).collect::<Vec<_>>());
    }

    /// How much the model thinks is told by a budget or, since Gemini 3, by a level; by both it may not be.
    fn thinking(&mut self, settings: &RequestSettings) {
        let has_levels = checks_signatures(&self.cx.profile.model);
        let level = settings.effort.and_then(|effort| self.level(effort, has_levels));
        let has_budget = matches!(settings.thinking, Some(Thinking::Budget(_) | Thinking::Disabled));
        if level.is_some() && has_budget {
            self.cx
                .note("settings.effort", "a model that is told how much to think takes no effort; left out");
        }
        let level = level.filter(|_| !has_budget);
        if let Some(level) = level {
            self.think("thinkingLevel", &level);
        }
        match settings.thinking {
            None => {}
            Some(Thinking::Adaptive) if self.takes(Setting::ThinkingAdaptive, WHAT) => {
                if level.is_none() && !has_levels {
                    self.think("thinkingBudget", &-1);
                }
                self.think("includeThoughts", &true);
            }
            Some(Thinking::Budget(budget)) if self.takes(Setting::ThinkingBudget, WHAT) => {
                self.think("thinkingBudget", &budget);
                self.think("includeThoughts", &true);
            }
            Some(Thinking::Disabled) if self.takes(Setting::ThinkingDisabled, WHAT) => {
                self.disabled(has_levels)
            }
            Some(Thinking::Adaptive | Thinking::Budget(_) | Thinking::Disabled) => {}
            Some(_) => self.cx.note(WHAT, "this provider has no such mode; left out"),
        }
    }

    fn disabled(&mut self, has_levels: bool) {
        if !has_levels {
            return self.think("thinkingBudget", &0);
        }
        let least = if self.cx.profile.model.contains("flash") { "minimal" } else { "low" };
        self.cx.note(WHAT, format!("this model always thinks; the level {least:?} was sent"));
        self.think("thinkingLevel", &least);
    }

    fn level(&mut self, effort: Effort, has_levels: bool) -> Option<&'static str> {
        const WHAT: &str = "settings.effort";
        if !has_levels {
            self.cx.note(WHAT, "this model takes no level of effort; left out, give it a budget to think");
            return None;
        }
        if !self.takes(Setting::Effort, WHAT) {
            return None;
        }
        let no_more = self.cx.profile.refuses.contains(&Setting::EffortAboveHigh);
        if effort > Effort::High && no_more {
            self.cx.note(WHAT, "this model's highest effort is high; that was sent");
            return Some("high");
        }
        Some(match effort {
            Effort::Minimal => "minimal",
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
            Effort::XHigh => "xhigh",
            Effort::Max | _ => {
                self.cx.note(WHAT, "the highest effort there is is xhigh; that was sent");
                "xhigh"
            }
        })
    }

    fn think<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) {
        self.tail.object("generationConfig").object("thinkingConfig").set(key, value);
    }
}

fn service_tier(settings: &RequestSettings, cx: &mut Cx<'_>) -> Option<String> {
    let tier = settings.service_tier.as_ref()?;
    if cx.profile.refuses.contains(&Setting::ServiceTier) {
        cx.note("settings.service_tier", "this model does not take it; left out");
        return None;
    }
    Some(match tier {
        // It is what the provider does unasked.
        ServiceTier::Auto => return None,
        ServiceTier::Standard => "standard".to_owned(),
        ServiceTier::Priority => "priority".to_owned(),
        ServiceTier::Flex => "flex".to_owned(),
        ServiceTier::Other(word) => word.clone(),
        _ => {
            cx.note("settings.service_tier", "this provider has no such tier; left out");
            return None;
        }
    })
}

/// What the wire has no word for.
fn others(settings: &RequestSettings, cx: &mut Cx<'_>) {
    if settings.parallel_tool_calls == Some(false) {
        let why =
            "this provider cannot be told to call one tool at a time; left out, say it in the instructions";
        cx.note("settings.parallel_tool_calls", why);
    }
    if settings.fast {
        cx.note("settings.fast", "this provider has no fast mode; left out, ask for its priority tier");
    }
    for data in settings.extra.iter().filter(|data| data.provider == cx.profile.provider) {
        let fields = Fields::read(data.json.get()).unwrap_or_default();
        let config =
            fields.get("generationConfig").and_then(|raw| Fields::read(raw.get())).unwrap_or_default();
        if config.get("candidateCount").is_some_and(|raw| raw.get() != "1") {
            cx.note("settings.extra", "only the first of several candidates is read; ask for one");
        }
    }
}

fn tool_choice(request: &ModelRequest<'_>, cx: &mut Cx<'_>) -> Option<String> {
    let functions: Vec<&str> =
        request.tools.iter().filter(|tool| !tool.is_hosted()).map(ToolCard::name).collect();
    let (mode, allowed, is_forced) = match request.tool_choice {
        ToolChoice::Auto => return None,
        ToolChoice::None => return (!functions.is_empty()).then(|| r#"{"mode":"NONE"}"#.to_owned()),
        ToolChoice::Required => ("ANY", functions.clone(), true),
        ToolChoice::Tool(name) => ("ANY", vec![name.as_str()], true),
        ToolChoice::Allowed { tools, required } => (
            if *required { "ANY" } else { "VALIDATED" },
            tools.iter().map(String::as_str).collect(),
            *required,
        ),
        _ => {
            cx.note("tool_choice", "this provider has no such choice; the model decides");
            return None;
        }
    };
    let allowed: Vec<&str> = allowed.into_iter().filter(|name| functions.contains(name)).collect();
    let is_narrow = matches!(request.tool_choice, ToolChoice::Allowed { .. });
    let why = if allowed.is_empty() {
        "the tool is not among the tools of the request; the model decides"
    } else if is_forced && !cx.profile.forced_tool_choice {
        "this model cannot be forced to call a tool; the model decides"
    } else if is_narrow && !cx.profile.allowed_tools {
        "the tools of this model cannot be narrowed without changing their list; all of them were left open"
    } else {
        return Some(calling(mode, &allowed, request.tool_choice, cx));
    };
    cx.note("tool_choice", why);
    None
}

fn calling(mode: &str, allowed: &[&str], choice: &ToolChoice, cx: &Cx<'_>) -> String {
    if *choice == ToolChoice::Required {
        return format!("{{\"mode\":\"{mode}\"}}");
    }
    let names: Vec<String> = allowed.iter().map(|name| quoted(&cx.names.wire(name))).collect();
    format!("{{\"mode\":\"{mode}\",\"allowedFunctionNames\":[{}]}}", names.join(","))
}

const WHAT: &str = "settings.thinking";
/// Most texts that end an answer.
const MOST_STOPS: usize = 5;
