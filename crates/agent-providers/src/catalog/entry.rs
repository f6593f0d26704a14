//! One entry of a table of models: what it says, and what it leaves open.

use std::collections::BTreeSet;

use agent_core::{CacheProfile, ModelProfile, Prices, Setting};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::CatalogError;
use super::name::{Pattern, shown};
use crate::wire::json::Fields;

/// What a table says of one model or family. What is absent is left as other entries have it.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) pattern: Pattern,
    /// Tags of dialects; none is every one.
    providers: Option<Vec<String>>,
    /// The day of its source.
    as_of: Option<String>,
    facts: Facts,
}

#[derive(Debug, Clone, Default)]
struct Facts {
    context_window: Option<u32>,
    max_output: Option<u32>,
    cache: Option<CacheProfile>,
    binds_thinking_to_prefix: Option<bool>,
    takes_thinking_of_siblings: Option<bool>,
    allowed_tools: Option<bool>,
    forced_tool_choice: Option<bool>,
    forced_while_thinking: Option<bool>,
    mid_conversation_system: Option<bool>,
    turn_scoped_system: Option<bool>,
    deferred_tools: Option<bool>,
    vision: Option<bool>,
    refuses: Option<BTreeSet<Setting>>,
    prices: Option<GivenPrices>,
    known: Option<bool>,
}

/// Prices as they are written down: what costs nothing extra is left out.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenPrices {
    input: f64,
    output: f64,
    #[serde(default)]
    cache_read: Option<f64>,
    #[serde(default)]
    cache_write_5m: Option<f64>,
    #[serde(default)]
    cache_write_1h: Option<f64>,
    #[serde(default)]
    as_of: Option<String>,
}

/// A file: `{"as_of":"2026-11-30","models":[{"model":"claude-opus-5-5",…}]}`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File<'a> {
    #[serde(default)]
    as_of: Option<String>,
    #[serde(borrow)]
    models: Vec<&'a RawValue>,
}

/// Reads the entries of a file.
pub(super) fn read(text: &str) -> Result<Vec<Entry>, CatalogError> {
    let file: File<'_> = serde_json::from_str(text).map_err(|cause| CatalogError::File { cause })?;
    let whole = file.as_of.as_deref();
    if let Some(date) = whole.filter(|date| !is_date(date)) {
        return Err(CatalogError::Date { date: date.to_owned() });
    }
    file.models.iter().enumerate().map(|(at, raw)| Entry::read(at, raw.get(), whole)).collect()
}

impl Entry {
    fn read(at: usize, text: &str, as_of: Option<&str>) -> Result<Self, CatalogError> {
        let fields = Fields::read(text).unwrap_or_default();
        let name = fields.get("model").and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
        let wrong = |field: &str, problem: String| {
            let (entry, model) = (at + 1, shown(name.as_deref()).into_owned());
            CatalogError::Entry { entry, model, field: field.to_owned(), problem }
        };
        let Some(model) = name.as_deref().filter(|name| !name.trim().is_empty()) else {
            return Err(wrong(
                "model",
                "give the model's name, or the beginning of several and a star".into(),
            ));
        };
        let mut entry = Self {
            pattern: Pattern::of(model),
            providers: None,
            as_of: as_of.map(str::to_owned),
            facts: Facts::default(),
        };
        for (field, raw) in &fields.0 {
            entry.set(field, raw.get()).map_err(|problem| wrong(field, problem))?;
        }
        Ok(entry)
    }

    /// Takes one field, or says what is wrong with it.
    fn set(&mut self, field: &str, raw: &str) -> Result<(), String> {
        let facts = &mut self.facts;
        match field {
            // The source is for those who read the file.
            "model" | "source" => value::<String>(raw).map(drop),
            "providers" => value(raw).map(|given| self.providers = given),
            "as_of" => value(raw).and_then(date).map(|given| self.as_of = given),
            "context_window" => value(raw).and_then(tokens).map(|given| facts.context_window = given),
            "max_output" => value(raw).and_then(tokens).map(|given| facts.max_output = given),
            "cache" => value(raw).map(|given| facts.cache = given),
            "binds_thinking_to_prefix" => value(raw).map(|given| facts.binds_thinking_to_prefix = given),
            "takes_thinking_of_siblings" => value(raw).map(|given| facts.takes_thinking_of_siblings = given),
            "allowed_tools" => value(raw).map(|given| facts.allowed_tools = given),
            "forced_tool_choice" => value(raw).map(|given| facts.forced_tool_choice = given),
            "forced_while_thinking" => value(raw).map(|given| facts.forced_while_thinking = given),
            "mid_conversation_system" => value(raw).map(|given| facts.mid_conversation_system = given),
            "turn_scoped_system" => value(raw).map(|given| facts.turn_scoped_system = given),
            "deferred_tools" => value(raw).map(|given| facts.deferred_tools = given),
            "vision" => value(raw).map(|given| facts.vision = given),
            "refuses" => value(raw).map(|given| facts.refuses = given),
            "prices" => value(raw).and_then(prices).map(|given| facts.prices = given),
            "known" => value(raw).map(|given| facts.known = given),
            _ => Err(format!("there is no such field; there are {FIELDS}")),
        }
    }

    pub(super) fn is_for(&self, provider: &str) -> bool {
        self.providers.as_ref().is_none_or(|given| given.iter().any(|name| name == provider))
    }

    /// Lays what it says over a profile. Who writes a model down knows it; a family is no model.
    pub(super) fn lay_over(&self, profile: &mut ModelProfile) {
        let facts = self.facts.clone();
        lay(&mut profile.context_window, facts.context_window);
        lay(&mut profile.max_output, facts.max_output);
        lay(&mut profile.cache, facts.cache);
        lay(&mut profile.binds_thinking_to_prefix, facts.binds_thinking_to_prefix);
        lay(&mut profile.takes_thinking_of_siblings, facts.takes_thinking_of_siblings);
        lay(&mut profile.allowed_tools, facts.allowed_tools);
        lay(&mut profile.forced_tool_choice, facts.forced_tool_choice);
        lay(&mut profile.forced_while_thinking, facts.forced_while_thinking);
        lay(&mut profile.mid_conversation_system, facts.mid_conversation_system);
        lay(&mut profile.turn_scoped_system, facts.turn_scoped_system);
        lay(&mut profile.deferred_tools, facts.deferred_tools);
        lay(&mut profile.vision, facts.vision);
        lay(&mut profile.refuses, facts.refuses);
        if let Some(given) = facts.prices {
            profile.prices = Some(given.filled(self.as_of.as_deref()));
        }
        let is_model = matches!(self.pattern, Pattern::Model(_));
        lay(&mut profile.known, facts.known.or(is_model.then_some(true)));
    }

    /// The day of its source.
    #[cfg(test)]
    pub(super) fn as_of(&self) -> Option<&str> {
        self.as_of.as_deref()
    }
}

impl GivenPrices {
    fn filled(self, as_of: Option<&str>) -> Prices {
        Prices {
            input: self.input,
            output: self.output,
            cache_read: self.cache_read.unwrap_or(self.input),
            cache_write_5m: self.cache_write_5m.unwrap_or(self.input),
            cache_write_1h: self.cache_write_1h.or(self.cache_write_5m).unwrap_or(self.input),
            as_of: self.as_of.as_deref().or(as_of).unwrap_or_default().to_owned(),
        }
    }

    fn all(&self) -> impl Iterator<Item = f64> {
        let cache = [self.cache_read, self.cache_write_5m, self.cache_write_1h];
        [self.input, self.output].into_iter().chain(cache.into_iter().flatten())
    }
}

fn lay<T>(slot: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *slot = given;
    }
}

/// `null` is as good as absent.
fn value<T: DeserializeOwned>(raw: &str) -> Result<Option<T>, String> {
    serde_json::from_str(raw).map_err(|error| error.to_string())
}

fn tokens(given: Option<u32>) -> Result<Option<u32>, String> {
    match given {
        Some(0) => Err("0 tokens are none; leave the field out when they are not known".into()),
        Some(_) | None => Ok(given),
    }
}

fn prices(given: Option<GivenPrices>) -> Result<Option<GivenPrices>, String> {
    let Some(given) = given else { return Ok(None) };
    if given.all().any(|price| price < 0.0) {
        return Err("a price is below 0; give US dollars for a million tokens".into());
    }
    let as_of = date(given.as_of.clone())?;
    Ok(Some(GivenPrices { as_of, ..given }))
}

fn date(given: Option<String>) -> Result<Option<String>, String> {
    match given {
        Some(date) if !is_date(&date) => Err(format!("{date:?} is no day; write it as 2026-11-30")),
        Some(_) | None => Ok(given),
    }
}

fn is_date(text: &str) -> bool {
    let shape = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c });
    shape.eq("0000-00-00".chars())
}

const FIELDS: &str = "model, providers, source, as_of, context_window, max_output, cache, binds_thinking_to_prefix, takes_thinking_of_siblings, allowed_tools, forced_tool_choice, forced_while_thinking, mid_conversation_system, turn_scoped_system, deferred_tools, vision, refuses, prices, known";
