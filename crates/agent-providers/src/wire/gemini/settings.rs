//! The end of a request: choices, limits, sampling and thinking.

use agent_core::{Effort, ModelRequest, RequestSettings, ServiceTier, Setting, Thinking, ToolCard};
use serde::Serialize;

use super::checks_signatures;
use crate::wire::choice::{Choice, choice_among};
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

    fn limit(&mut self, settings: &RequestSettings) {
        let Some(wanted) = settings.max_output else { return };
        let given = self.cx.output_limit(wanted);
        self.set("maxOutputTokens", &given);
    }

    fn sampling(&mut self, settings: &RequestSettings) {
        let given = [
            ("temperature", "settings.temperature", settings.temperature, 2.0),
            ("topP", "settings.top_p", settings.top_p, 1.0),
        ];
        for (key, what, value, most) in given {
            if let Some(value) = value
                && self.cx.takes(what, Setting::Sampling)
            {
                self.number(key, what, value, (0.0, most));
            }
        }
        if let Some(top_k) = settings.top_k
            && self.cx.takes("settings.top_k", Setting::Sampling)
        {
            self.set("topK", &top_k);
        }
        if let Some(seed) = settings.seed
            && self.cx.takes("settings.seed", Setting::Seed)
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
                && self.cx.takes(what, Setting::Penalties)
            {
                self.number(key, what, value, (-2.0, 2.0));
            }
        }
    }

    fn number(&mut self, key: &str, what: &str, value: f32, range: (f32, f32)) {
        if let Some(given) = self.cx.nearest(what, value, range) {
            self.set(key, &given);
        }
    }

    fn stops(&mut self, settings: &RequestSettings) {
        let stops = &settings.stop_sequences;
        if stops.is_empty() || !self.cx.takes("settings.stop_sequences", Setting::StopSequences) {
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
            Some(Thinking::Adaptive) if self.cx.takes(WHAT, Setting::ThinkingAdaptive) => {
                if level.is_none() && !has_levels {
                    self.think("thinkingBudget", &-1);
                }
                self.think("includeThoughts", &true);
            }
            Some(Thinking::Budget(budget)) if self.cx.takes(WHAT, Setting::ThinkingBudget) => {
                self.think("thinkingBudget", &budget);
                self.think("includeThoughts", &true);
            }
            Some(Thinking::Disabled) if self.cx.takes(WHAT, Setting::ThinkingDisabled) => {
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
        let has_minimal = self.cx.profile.model.contains("flash")
            && !self.cx.profile.refuses.contains(&Setting::EffortMinimal);
        let least = if has_minimal { "minimal" } else { "low" };
        self.cx.note(WHAT, format!("this model always thinks; the level {least:?} was sent"));
        self.think("thinkingLevel", &least);
    }

    fn level(&mut self, effort: Effort, has_levels: bool) -> Option<&'static str> {
        const WHAT: &str = "settings.effort";
        if !has_levels {
            self.cx.note(WHAT, "this model takes no level of effort; left out, give it a budget to think");
            return None;
        }
        if !self.cx.takes(WHAT, Setting::Effort) {
            return None;
        }
        let refuses = |setting: Setting| self.cx.profile.refuses.contains(&setting);
        let no_more = refuses(Setting::EffortAboveHigh) || refuses(Setting::EffortXHigh);
        if effort > Effort::High && no_more {
            self.cx.note(WHAT, "this model's highest effort is high; that was sent");
            return Some("high");
        }
        if effort == Effort::Minimal && refuses(Setting::EffortMinimal) {
            self.cx.note(WHAT, "this model's least effort is low; that was sent");
            return Some("low");
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
    if !cx.takes("settings.service_tier", Setting::ServiceTier) {
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

/// A choice names functions only: what the provider runs is not called.
fn tool_choice(request: &ModelRequest<'_>, cx: &mut Cx<'_>) -> Option<String> {
    let choice = choice_among(request, |tool| !tool.is_hosted(), cx)?;
    let named = |mode: &str, tools: &[&ToolCard]| {
        let names: Vec<String> = tools.iter().map(|tool| quoted(&cx.names.wire(tool.name()))).collect();
        format!("{{\"mode\":\"{mode}\",\"allowedFunctionNames\":[{}]}}", names.join(","))
    };
    Some(match choice {
        Choice::None => r#"{"mode":"NONE"}"#.to_owned(),
        Choice::Required => r#"{"mode":"ANY"}"#.to_owned(),
        Choice::Tool(tool) => named("ANY", &[tool]),
        Choice::Allowed { tools, required } => named(if required { "ANY" } else { "VALIDATED" }, &tools),
    })
}

const WHAT: &str = "settings.thinking";
/// Most texts that end an answer.
const MOST_STOPS: usize = 5;
