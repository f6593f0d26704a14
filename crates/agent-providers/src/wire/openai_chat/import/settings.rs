//! The settings of a recorded request. What our types cannot say exactly stays as it is.

use agent_core::{Effort, ProviderData, RawJson, RequestSettings, ServiceTier, Thinking, ToolChoice};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::quirks::{EffortField, Quirks, SeedField, ThinkingField, TierWords};
use super::super::settings::{effort, tiers};
use crate::wire::Dialect;
use crate::wire::json::{Fields, Loose, object, quoted};
use crate::wire::tail::extra;

/// The settings, and whether a tool had to be called.
pub(super) fn read(dialect: &Dialect, fields: &Fields<'_>) -> (RequestSettings, ToolChoice) {
    let mut reader = Reader {
        quirks: &dialect.quirks,
        settings: RequestSettings::default(),
        choice: ToolChoice::Auto,
        rest: Vec::new(),
    };
    let mut known: Vec<&str> = Vec::new();
    for (key, raw) in fields.0.iter().filter(|(_, raw)| raw.get() != "null") {
        if reader.take(key, raw).is_some() {
            known.push(key);
        }
    }
    let Reader { mut settings, choice, rest, .. } = reader;
    let rest =
        rest.into_iter().map(|(key, inner)| RawJson::parse(format!("{{{}:{inner}}}", quoted(key))).ok());
    let all = rest.flatten().chain(extra(fields, &known));
    settings.extra = all.map(|json| ProviderData { provider: dialect.provider.clone(), json }).collect();
    (settings, choice)
}

struct Reader<'q> {
    quirks: &'q Quirks,
    settings: RequestSettings,
    choice: ToolChoice,
    /// Fields inside of objects that are ours.
    rest: Vec<(&'static str, String)>,
}

/// A tool that a choice names, or a choice of several.
#[derive(Deserialize)]
struct WireChoice<'a> {
    #[serde(borrow, alias = "custom")]
    function: Option<WireName<'a>>,
    #[serde(borrow)]
    allowed_tools: Option<WireAllowed<'a>>,
}

#[derive(Deserialize)]
struct WireAllowed<'a> {
    #[serde(borrow, default)]
    mode: Loose<'a>,
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireName<'a> {
    #[serde(borrow, default)]
    name: Loose<'a>,
}

impl Reader<'_> {
    /// Takes a field; `None` when its value is not one of ours, so that it goes back as it is.
    fn take(&mut self, key: &str, raw: &RawValue) -> Option<()> {
        let settings = &mut self.settings;
        match key {
            "max_tokens" | "max_completion_tokens" if settings.max_output.is_none() => {
                settings.max_output = Some(json(raw)?);
            }
            "temperature" => settings.temperature = Some(exact(raw)?),
            "top_p" => settings.top_p = Some(exact(raw)?),
            "presence_penalty" if !self.quirks.no_penalties => settings.presence_penalty = Some(exact(raw)?),
            "frequency_penalty" if !self.quirks.no_penalties => {
                settings.frequency_penalty = Some(exact(raw)?)
            }
            "top_k" if self.quirks.top_k => settings.top_k = Some(json(raw)?),
            "seed" if self.quirks.seed == SeedField::Seed => settings.seed = Some(json(raw)?),
            "random_seed" if self.quirks.seed == SeedField::RandomSeed => settings.seed = Some(json(raw)?),
            "stop" => settings.stop_sequences = json(raw).or_else(|| Some(vec![json(raw)?]))?,
            "parallel_tool_calls" if self.quirks.parallel_tool_calls => {
                settings.parallel_tool_calls = Some(json(raw)?);
            }
            "service_tier" => settings.service_tier = Some(tier(self.quirks, raw)?),
            "tool_choice" => self.choice = choice(raw)?,
            "reasoning_effort" if self.quirks.effort == EffortField::ReasoningEffort => self.effort(raw)?,
            "thinking" if self.quirks.thinking == ThinkingField::Thinking => {
                self.object("thinking", raw, &["type"], Self::thinking_type)?;
            }
            "reasoning" if self.quirks.thinking == ThinkingField::Reasoning => {
                self.object(
                    "reasoning",
                    raw,
                    self.ours(EffortField::Reasoning, &["enabled", "max_tokens", "effort"]),
                    Self::reasoning,
                )?;
            }
            "chat_template_kwargs" if self.quirks.thinking == ThinkingField::TemplateKwargs => {
                self.object(
                    "chat_template_kwargs",
                    raw,
                    self.ours(EffortField::TemplateKwargs, &["enable_thinking", "reasoning_effort"]),
                    Self::kwargs,
                )?;
            }
            _ => return None,
        }
        Some(())
    }

    fn effort(&mut self, raw: &RawValue) -> Option<()> {
        let word: String = json(raw)?;
        if word == "none" && self.quirks.thinking == ThinkingField::EffortNone {
            self.settings.thinking = Some(Thinking::Disabled);
        } else {
            self.settings.effort = Some(self.known(&word)?);
        }
        Some(())
    }

    /// An effort that would be sent in the same word again.
    fn known(&self, word: &str) -> Option<Effort> {
        let known = &self.quirks.efforts;
        effort(word).filter(|effort| known.is_empty() || known.contains(effort))
    }

    /// Reads an object of ours; fields of it that are not go back as they are.
    fn object(
        &mut self,
        key: &'static str,
        raw: &RawValue,
        known: &[&str],
        read: impl FnOnce(&mut Self, &Fields<'_>) -> Option<()>,
    ) -> Option<()> {
        let fields: Fields<'_> = object(raw.get()).ok()?;
        read(self, &fields)?;
        self.rest.extend(extra(&fields, known).map(|rest| (key, rest.get().to_owned())));
        Some(())
    }

    /// The fields of an object that are ours; the last one is the effort, where it is asked for there.
    fn ours<'k>(&self, field: EffortField, known: &'k [&'k str]) -> &'k [&'k str] {
        if self.quirks.effort == field { known } else { known.split_last().map_or(known, |(_, rest)| rest) }
    }

    fn thinking_type(&mut self, fields: &Fields<'_>) -> Option<()> {
        self.settings.thinking = Some(match json::<String>(fields.get("type")?)?.as_str() {
            "enabled" => Thinking::Adaptive,
            "disabled" => Thinking::Disabled,
            _ => return None,
        });
        Some(())
    }

    /// A budget and an effort exclude each other, as do a budget and a switch.
    fn reasoning(&mut self, fields: &Fields<'_>) -> Option<()> {
        let effort = match fields.get("effort").filter(|_| self.quirks.effort == EffortField::Reasoning) {
            Some(raw) => Some(self.known(&json::<String>(raw)?)?),
            None => None,
        };
        let thinking = match (fields.get("enabled"), fields.get("max_tokens")) {
            (None, None) => None,
            (Some(raw), None) => Some(if json(raw)? { Thinking::Adaptive } else { Thinking::Disabled }),
            (None, Some(raw)) if effort.is_none() => Some(Thinking::Budget(json(raw)?)),
            (Some(_) | None, Some(_)) => return None,
        };
        (self.settings.effort, self.settings.thinking) = (effort, thinking);
        Some(())
    }

    fn kwargs(&mut self, fields: &Fields<'_>) -> Option<()> {
        let is_ours = self.quirks.effort == EffortField::TemplateKwargs;
        let effort = match fields.get("reasoning_effort").filter(|_| is_ours) {
            Some(raw) => Some(self.known(&json::<String>(raw)?)?),
            None => None,
        };
        let thinking = match fields.get("enable_thinking") {
            Some(raw) => Some(if json(raw)? { Thinking::Adaptive } else { Thinking::Disabled }),
            None => None,
        };
        (self.settings.effort, self.settings.thinking) = (effort, thinking);
        Some(())
    }
}

fn tier(quirks: &Quirks, raw: &RawValue) -> Option<ServiceTier> {
    let word: String = json(raw).filter(|_| quirks.service_tier != TierWords::None)?;
    let known = tiers(quirks.service_tier).iter().find(|(_, known)| *known == word);
    Some(known.map_or(ServiceTier::Other(word), |(tier, _)| tier.clone()))
}

/// A number that is written as it was read.
fn exact(raw: &RawValue) -> Option<f32> {
    let (wide, narrow): (f64, f32) = (json(raw)?, json(raw)?);
    (narrow.to_string().parse() == Ok(wide)).then_some(narrow)
}

fn json<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}

fn choice(raw: &RawValue) -> Option<ToolChoice> {
    if let Ok(WireChoice { function, allowed_tools }) = object(raw.get()) {
        return match allowed_tools {
            None => named(function).map(ToolChoice::Tool),
            Some(WireAllowed { mode, tools }) => {
                let names =
                    tools.into_iter().map(|tool| named(object::<WireChoice<'_>>(tool.get()).ok()?.function));
                let required = mode.as_str() == "required";
                Some(ToolChoice::Allowed { tools: names.collect::<Option<_>>()?, required })
            }
        };
    }
    match json::<String>(raw)?.as_str() {
        "auto" => Some(ToolChoice::Auto),
        "none" => Some(ToolChoice::None),
        "required" | "any" => Some(ToolChoice::Required),
        _ => None,
    }
}

fn named(tool: Option<WireName<'_>>) -> Option<String> {
    tool?.name.0.map(Into::into)
}
