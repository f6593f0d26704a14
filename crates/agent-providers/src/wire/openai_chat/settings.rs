//! The end of a request: limits, thinking and choices, in the words of the provider.

use agent_core::{Effort, ModelRequest, RequestSettings, ServiceTier, Setting, Thinking, ToolCard};

use super::quirks::{EffortField, LimitField, Quirks, SeedField, ThinkingField, TierWords, ToolChoiceWords};
use crate::wire::choice::{Choice, choice, undecided};
use crate::wire::form::Cx;
use crate::wire::json::{Fields, quoted};
use crate::wire::tail::Tail;

/// Writes everything behind the messages but whether the answer is streamed.
pub(super) fn tail(request: &ModelRequest<'_>, quirks: &Quirks, cx: &mut Cx<'_>) -> Tail {
    let mut writer = Writer { settings: request.settings, quirks, cx, tail: Tail::default() };
    writer.limit();
    writer.sampling();
    writer.seed_and_stops();
    writer.thinking();
    writer.effort();
    writer.tools(request);
    writer.tier();
    writer.tail
}

/// The provider's word for an effort.
pub(super) fn word(effort: Effort) -> &'static str {
    let known = EFFORTS.iter().find(|(known, _)| *known == effort);
    known.map_or("high", |(_, word)| word)
}

/// The effort of a word.
pub(super) fn effort(word: &str) -> Option<Effort> {
    EFFORTS.iter().find(|(_, known)| *known == word).map(|(effort, _)| *effort)
}

/// The tiers that have a word of their own.
pub(super) fn tiers(words: TierWords) -> &'static [(ServiceTier, &'static str)] {
    match words {
        TierWords::None => &[],
        TierWords::Default => &[
            (ServiceTier::Auto, "auto"),
            (ServiceTier::Standard, "default"),
            (ServiceTier::Flex, "flex"),
            (ServiceTier::Priority, "priority"),
        ],
        TierWords::OnDemand => &[
            (ServiceTier::Auto, "auto"),
            (ServiceTier::Standard, "on_demand"),
            (ServiceTier::Flex, "flex"),
            (ServiceTier::Priority, "performance"),
        ],
    }
}

#[derive(Debug)]
struct Writer<'w, 'e> {
    settings: &'w RequestSettings,
    quirks: &'w Quirks,
    cx: &'w mut Cx<'e>,
    tail: Tail,
}

impl Writer<'_, '_> {
    fn limit(&mut self) {
        let Some(wanted) = self.settings.max_output else { return };
        let key = match self.quirks.limit {
            LimitField::MaxTokens => "max_tokens",
            LimitField::MaxCompletionTokens => "max_completion_tokens",
        };
        self.tail.set(key, &self.cx.output_limit(wanted));
    }

    fn sampling(&mut self) {
        let RequestSettings { temperature, top_p, top_k, presence_penalty, frequency_penalty, .. } =
            *self.settings;
        self.number("temperature", temperature, Setting::Sampling, (0.0, 2.0));
        self.number("top_p", top_p, Setting::Sampling, (0.0, 1.0));
        if let Some(top_k) = self.accepted("top_k", top_k, Setting::Sampling, self.quirks.top_k) {
            self.tail.set("top_k", &top_k);
        }
        for (key, value) in [("presence_penalty", presence_penalty), ("frequency_penalty", frequency_penalty)]
        {
            let value = self.accepted(key, value, Setting::Penalties, !self.quirks.no_penalties);
            self.number(key, value, Setting::Penalties, (-2.0, 2.0));
        }
    }

    fn number(&mut self, key: &str, value: Option<f32>, setting: Setting, range: (f32, f32)) {
        let Some(wanted) = self.accepted(key, value, setting, true) else { return };
        if let Some(given) = self.cx.nearest(&format!("settings.{key}"), wanted, range) {
            self.tail.set(key, &given);
        }
    }

    fn seed_and_stops(&mut self) {
        let (key, is_taken) = match self.quirks.seed {
            SeedField::Seed => ("seed", true),
            SeedField::RandomSeed => ("random_seed", true),
            SeedField::None => ("seed", false),
        };
        if let Some(seed) = self.accepted("seed", self.settings.seed, Setting::Seed, is_taken) {
            self.tail.set(key, &seed);
        }
        let stops = Some(&self.settings.stop_sequences).filter(|stops| !stops.is_empty());
        let Some(stops) = self.accepted("stop_sequences", stops, Setting::StopSequences, true) else {
            return;
        };
        let most = self.quirks.max_stops.unwrap_or(usize::MAX);
        if stops.len() > most {
            self.note("stop_sequences", format!("{most} are taken; the first {most} were sent"));
        }
        let stops: Vec<&String> = stops.iter().take(most).collect();
        self.tail.set("stop", &stops);
    }

    fn thinking(&mut self) {
        let setting = match self.settings.thinking {
            Some(Thinking::Budget(_)) => Setting::ThinkingBudget,
            Some(Thinking::Disabled) => Setting::ThinkingDisabled,
            Some(Thinking::Adaptive | _) | None => Setting::ThinkingAdaptive,
        };
        let Some(wanted) = self.accepted("thinking", self.settings.thinking, setting, true) else { return };
        let is_on = !matches!(wanted, Thinking::Disabled);
        match (self.quirks.thinking, wanted) {
            (ThinkingField::None, _) => self.note("thinking", "this provider has no field for it; left out"),
            (ThinkingField::EffortNone, Thinking::Disabled) => self.tail.set("reasoning_effort", "none"),
            (ThinkingField::EffortNone, _) => {
                self.note("thinking", "the model thinks as it sees fit; left out, set an effort instead");
            }
            (ThinkingField::Reasoning, Thinking::Budget(budget)) => {
                self.tail.object("reasoning").set("max_tokens", &budget);
            }
            (ThinkingField::Reasoning, _) => self.tail.object("reasoning").set("enabled", &is_on),
            (ThinkingField::Thinking, _) => {
                self.no_budget(wanted);
                let word = if is_on { "enabled" } else { "disabled" };
                self.tail.object("thinking").set("type", word);
            }
            (ThinkingField::TemplateKwargs, _) => {
                self.no_budget(wanted);
                self.tail.object("chat_template_kwargs").set("enable_thinking", &is_on);
            }
        }
    }

    fn no_budget(&mut self, wanted: Thinking) {
        if matches!(wanted, Thinking::Budget(_)) {
            self.note("thinking", "this provider takes no budget; thinking was turned on without");
        }
    }

    fn effort(&mut self) {
        let is_taken = self.quirks.effort != EffortField::None;
        let Some(wanted) = self.accepted("effort", self.settings.effort, Setting::Effort, is_taken) else {
            return;
        };
        let excluded = match (self.settings.thinking, self.quirks.thinking) {
            (Some(Thinking::Disabled), ThinkingField::EffortNone) => "thinking is turned off; left out",
            (Some(Thinking::Budget(_)), ThinkingField::Reasoning) => "a budget was sent; left out",
            _ => "",
        };
        if !excluded.is_empty() {
            return self.note("effort", excluded);
        }
        let given = self.nearest(wanted);
        if given != wanted {
            self.note("effort", format!("{:?} is not taken; {:?} was sent", word(wanted), word(given)));
        }
        match self.quirks.effort {
            EffortField::None => {}
            EffortField::ReasoningEffort => self.tail.set("reasoning_effort", word(given)),
            EffortField::Reasoning => self.tail.object("reasoning").set("effort", word(given)),
            EffortField::TemplateKwargs => {
                self.tail.object("chat_template_kwargs").set("reasoning_effort", word(given));
            }
        }
    }

    /// The highest effort with a word that is not above the wanted one, or the lowest.
    fn nearest(&self, wanted: Effort) -> Effort {
        let refuses = |setting: Setting| self.cx.profile.refuses.contains(&setting);
        let is_taken = |effort: &Effort| match effort {
            Effort::Minimal => !refuses(Setting::EffortMinimal),
            Effort::XHigh => !refuses(Setting::EffortXHigh) && !refuses(Setting::EffortAboveHigh),
            Effort::Max => !refuses(Setting::EffortAboveHigh),
            Effort::Low | Effort::Medium | Effort::High | _ => true,
        };
        let all = || EFFORTS.iter().map(|(effort, _)| *effort).collect();
        let words = if self.quirks.efforts.is_empty() { all() } else { self.quirks.efforts.clone() };
        let known: Vec<Effort> = words.into_iter().filter(is_taken).collect();
        let below = known.iter().rev().find(|effort| **effort <= wanted);
        below.or(known.first()).copied().unwrap_or(wanted)
    }

    fn tools(&mut self, request: &ModelRequest<'_>) {
        let has_tools = !request.tools.is_empty();
        let parallel = self.settings.parallel_tool_calls;
        let is_taken = self.quirks.parallel_tool_calls;
        match self.accepted("parallel_tool_calls", parallel, Setting::ParallelToolCalls, is_taken) {
            Some(parallel) if has_tools => self.tail.set("parallel_tool_calls", &parallel),
            Some(_) => self.note("parallel_tool_calls", "there are no tools; left out"),
            None => {}
        }
        if let Some(choice) = self.choice(request) {
            self.tail.raw("tool_choice", choice);
        }
    }

    fn choice(&mut self, request: &ModelRequest<'_>) -> Option<String> {
        let words = self.quirks.tool_choice;
        let choice = choice(request, self.cx)?;
        let is_unnamed = words == ToolChoiceWords::Unnamed;
        match choice {
            _ if words == ToolChoiceWords::None => undecided("this provider has no such field", self.cx),
            Choice::None => Some(quoted("none")),
            Choice::Tool(_) if is_unnamed && request.tools.len() > 1 => {
                undecided("this provider cannot force one tool of several", self.cx)
            }
            Choice::Allowed { .. } if is_unnamed => {
                undecided("this provider cannot hold the model to some of its tools", self.cx)
            }
            Choice::Tool(tool) if !is_unnamed => match named(tool, self.cx) {
                None => undecided("this provider has no words for one of its own tools", self.cx),
                name => name,
            },
            Choice::Tool(_) | Choice::Required => {
                Some(quoted(if words == ToolChoiceWords::Any { "any" } else { "required" }))
            }
            Choice::Allowed { tools, required } => {
                let mode = if required { "required" } else { "auto" };
                let tools: Vec<String> = tools.iter().filter_map(|tool| named(tool, self.cx)).collect();
                let tools = tools.join(",");
                Some(format!(
                    r#"{{"type":"allowed_tools","allowed_tools":{{"mode":"{mode}","tools":[{tools}]}}}}"#
                ))
            }
        }
    }

    fn tier(&mut self) {
        if self.settings.fast {
            self.note("fast", "this provider has no faster mode; left out, ask for a service tier instead");
        }
        let is_taken = self.quirks.service_tier != TierWords::None;
        let tier = self.settings.service_tier.as_ref();
        let Some(tier) = self.accepted("service_tier", tier, Setting::ServiceTier, is_taken) else { return };
        let known = tiers(self.quirks.service_tier).iter().find(|(known, _)| known == tier);
        match (known, tier) {
            (Some((_, word)), _) => self.tail.set("service_tier", word),
            (None, ServiceTier::Other(word)) => self.tail.set("service_tier", word),
            (None, _) => self.note("service_tier", "this provider has no such tier; left out"),
        }
    }

    /// A setting that the provider has and the model does not refuse; else it is told that it is left out.
    fn accepted<T>(&mut self, key: &str, value: Option<T>, setting: Setting, is_taken: bool) -> Option<T> {
        let value = value?;
        if !is_taken {
            self.note(key, "this provider does not take it; left out");
            return None;
        }
        self.cx.takes(&format!("settings.{key}"), setting).then_some(value)
    }

    fn note(&mut self, key: &str, why: impl Into<String>) {
        self.cx.note(&format!("settings.{key}"), why);
    }
}

/// How a choice names a tool: a function, or one of the provider's that takes free text.
fn named(tool: &ToolCard, cx: &Cx<'_>) -> Option<String> {
    let name = quoted(&cx.names.wire(tool.name()));
    if !tool.is_hosted() {
        return Some(format!(r#"{{"type":"function","function":{{"name":{name}}}}}"#));
    }
    let entry = Fields::read(tool.data()?.json.get())?;
    let inner = Fields::read(entry.get("custom")?.get())?;
    Some(format!(r#"{{"type":"custom","custom":{{"name":{}}}}}"#, inner.get("name")?.get()))
}

const EFFORTS: &[(Effort, &str)] = &[
    (Effort::Minimal, "minimal"),
    (Effort::Low, "low"),
    (Effort::Medium, "medium"),
    (Effort::High, "high"),
    (Effort::XHigh, "xhigh"),
    (Effort::Max, "max"),
];
