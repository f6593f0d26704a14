//! One rule of a table: which models it is for, and what it says.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{CacheRules, RulesError, Scheme, Source};
use crate::{Aspect, Level};

/// A rule; what it leaves out stays as it was.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) provider: String,
    #[serde(default = "every_model")]
    model: String,
    pub(super) source: String,
    /// The file's day, where the rule has none of its own.
    #[serde(default)]
    pub(super) as_of: String,
    scheme: Option<Scheme>,
    min_tokens: Option<u64>,
    max_marks: Option<usize>,
    lookback: Option<u32>,
    collapse_runs: Option<bool>,
    step: Option<u64>,
    short_seconds: Option<u64>,
    long_seconds: Option<u64>,
    write_short: Option<f64>,
    write_long: Option<f64>,
    read: Option<f64>,
    tail_text: Option<u64>,
    tail_result: Option<u64>,
    tool_prompt: Option<u64>,
    tool_prompt_forced: Option<u64>,
    binds_thinking: Option<bool>,
    strips_old_thinking: Option<bool>,
    default_effort: Option<String>,
    settings_first: Option<bool>,
    tools_whole: Option<bool>,
    #[serde(default)]
    invalidates: BTreeMap<Aspect, Level>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(default)]
    as_of: String,
    rules: Vec<Entry>,
}

/// Reads a table and checks what a type cannot.
pub(super) fn read(json: &str) -> Result<Vec<Entry>, RulesError> {
    let Table { as_of, mut rules } =
        serde_json::from_str(json).map_err(|cause| RulesError::File { cause })?;
    for (at, entry) in rules.iter_mut().enumerate() {
        if entry.as_of.is_empty() {
            entry.as_of.clone_from(&as_of);
        }
        if let Some(problem) = entry.problem() {
            return Err(RulesError::Rule { rule: at + 1, problem });
        }
    }
    Ok(rules)
}

/// A model's name without what vendors put around it: a route before it, a date, an edition.
pub(super) fn plain(model: &str) -> String {
    let name = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    let name = name.find("claude-").map_or(name.as_str(), |at| &name[at..]);
    let name = name.split(['@', ':']).next().unwrap_or(name);
    let name = name.strip_suffix("-v1").or_else(|| name.strip_suffix("-v2")).unwrap_or(name);
    let dated = name.rsplit_once('-').filter(|(_, end)| {
        end.len() == 8 && end.starts_with("20") && end.bytes().all(|byte| byte.is_ascii_digit())
    });
    dated.map_or(name, |(name, _)| name).to_owned()
}

impl Entry {
    pub(super) fn fits(&self, name: &str) -> bool {
        match self.model.strip_suffix('*') {
            Some(family) => name.starts_with(family),
            None => name == self.model,
        }
    }

    /// How much of a name it says; the whole name says more than a family of the same letters.
    pub(super) fn length(&self) -> (usize, bool) {
        let family = self.model.strip_suffix('*');
        (family.unwrap_or(&self.model).len(), family.is_none())
    }

    pub(super) fn lay_over(&self, rules: &mut CacheRules) {
        lay(&mut rules.scheme, self.scheme);
        lay(&mut rules.min_tokens, self.min_tokens);
        lay(&mut rules.max_marks, self.max_marks);
        lay(&mut rules.lookback, self.lookback);
        lay(&mut rules.collapse_runs, self.collapse_runs);
        lay(&mut rules.step, self.step);
        lay(&mut rules.short_seconds, self.short_seconds);
        lay(&mut rules.long_seconds, self.long_seconds);
        rules.long_seconds = rules.long_seconds.max(rules.short_seconds);
        lay(&mut rules.write_short, self.write_short);
        lay(&mut rules.write_long, self.write_long);
        lay(&mut rules.read, self.read);
        lay(&mut rules.tail_text, self.tail_text);
        lay(&mut rules.tail_result, self.tail_result);
        lay(&mut rules.tool_prompt, self.tool_prompt);
        lay(&mut rules.tool_prompt_forced, self.tool_prompt_forced);
        rules.tool_prompt_forced = rules.tool_prompt_forced.max(rules.tool_prompt);
        lay(&mut rules.binds_thinking, self.binds_thinking);
        lay(&mut rules.strips_old_thinking, self.strips_old_thinking);
        lay(&mut rules.default_effort, self.default_effort.clone());
        lay(&mut rules.settings_first, self.settings_first);
        lay(&mut rules.tools_whole, self.tools_whole);
        rules.invalidates.extend(&self.invalidates);
        rules.sources.push(Source { text: self.source.clone(), as_of: self.as_of.clone() });
    }

    fn problem(&self) -> Option<String> {
        let day = |text: &str| {
            let digits = text.bytes().filter(u8::is_ascii_digit).count();
            text.len() == 10 && digits == 8 && text.bytes().filter(|byte| *byte == b'-').count() == 2
        };
        if !day(&self.as_of) {
            return Some(format!(
                "as_of {:?} is no day; write it as 2026-11-30, in the rule or in the table",
                self.as_of
            ));
        }
        if self.source.trim().is_empty() {
            return Some("source is blank; say where the rule comes from".into());
        }
        if self.step == Some(0) {
            return Some("step 0 rounds to nothing; write 1 for exact boundaries".into());
        }
        let multiples =
            [("write_short", self.write_short), ("write_long", self.write_long), ("read", self.read)];
        let wrong = multiples.into_iter().find(|(_, it)| it.is_some_and(|it| !it.is_finite() || it < 0.0));
        wrong.map(|(name, _)| format!("{name} is a multiple of the price of input: write 0 or more"))
    }
}

fn lay<T>(field: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *field = given;
    }
}

fn every_model() -> String {
    "*".into()
}
