//! The rules of each provider's prompt cache, as data with the source and the day of each.

mod entry;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use agent_core::{CacheProfile, Prices, Ttl};
use serde::Deserialize;

use crate::{Aspect, Level};
use entry::Entry;

/// Tables of rules, the later ones laid over the earlier ones.
///
/// A rule names a provider and a model; a star at the end fits every model whose name begins so, and no model fits
/// all of them. Rules that fit are laid over each other, the shortest name first. Dates, editions and vendor
/// prefixes around a model's name are ignored.
///
/// ```
/// use agent_cache::RuleBook;
///
/// let book = RuleBook::builtin();
/// assert_eq!(book.rules("anthropic", "claude-haiku-4-5-20251001").min_tokens, 4096);
///
/// let mine = r#"{"as_of":"2026-11-30","rules":[
///     {"provider":"anthropic","model":"claude-haiku-4-5","min_tokens":2048,"source":"measured here"}]}"#;
/// assert_eq!(book.with_overrides(mine)?.rules("anthropic", "claude-haiku-4-5").min_tokens, 2048);
/// # Ok::<(), agent_cache::RulesError>(())
/// ```
#[derive(Debug, Clone)]
pub struct RuleBook {
    tables: Vec<Arc<[Entry]>>,
}

/// How one model's prompts are cached and what that costs.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "plain data, corrected field by field")]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about a service, not states")]
pub struct CacheRules {
    /// How entries are made and found.
    pub scheme: Scheme,
    /// Shortest prefix that is kept, in tokens. What is shorter is not cached, and no error says so.
    pub min_tokens: u64,
    /// Most markers of one request, the automatic one included; more are refused.
    pub max_marks: usize,
    /// Positions looked at from a marker backwards, the marker's own included.
    pub lookback: u32,
    /// Whether a run of tool calls, and a run of tool results, is one position.
    pub collapse_runs: bool,
    /// Cached tokens are rounded down to a multiple of this.
    pub step: u64,
    /// Seconds a short-lived entry lives after the start of the request that wrote or read it.
    pub short_seconds: u64,
    /// Seconds a long-lived entry lives.
    pub long_seconds: u64,
    /// Price of a short-lived write, as a multiple of input.
    pub write_short: f64,
    /// Price of a long-lived write, as a multiple of input.
    pub write_long: f64,
    /// Price of a read, as a multiple of input.
    pub read: f64,
    /// Tokens of closing framing after a last block of the user's text.
    pub tail_text: u64,
    /// Tokens of closing framing after a last tool result.
    pub tail_result: u64,
    /// Tokens of the hidden instructions for tools with a free choice of tool.
    pub tool_prompt: u64,
    /// Tokens of the hidden instructions for tools when one is forced.
    pub tool_prompt_forced: u64,
    /// Whether returned thinking is valid only behind the unchanged prefix it was written for.
    pub binds_thinking: bool,
    /// Whether thinking of earlier turns leaves the prompt when the user speaks again.
    pub strips_old_thinking: bool,
    /// The effort a request without one gets: saying it changes nothing.
    pub default_effort: String,
    /// Whether thinking and effort are rendered ahead of the tools. Not published: a knob.
    pub settings_first: bool,
    /// Whether a change anywhere in the list of tools loses all of it, also what lies ahead of the change.
    pub tools_whole: bool,
    /// What a changed setting loses: this level and all after it.
    pub invalidates: BTreeMap<Aspect, Level>,
    /// Where the rules come from, with the day.
    pub sources: Vec<Source>,
}

/// How entries are made and found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Scheme {
    /// No caching known.
    None,
    /// An entry is written at each marked block and found by looking back from one (Anthropic).
    Marked,
    /// Entries at the ends of messages, by themselves or at explicit breakpoints (OpenAI since GPT-5.6).
    Breakpoints,
    /// The longest prefix shared with an earlier request, rounded down (OpenAI before, Gemini, DeepSeek and others).
    Prefix,
}

/// Where a rule comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a record of two texts")]
pub struct Source {
    /// The page, or how it was measured.
    pub text: String,
    /// The day it was read, as `2026-10-08`.
    pub as_of: String,
}

/// A table of rules that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RulesError {
    /// The file is no table.
    #[error(
        "the table of cache rules cannot be read: {cause}; write {{\"as_of\":\"2026-11-30\",\"rules\":[{{\"provider\":\"anthropic\",\"model\":\"NAME\",\"min_tokens\":1024,\"source\":\"where from\"}}]}}"
    )]
    File {
        /// What the reader said.
        #[source]
        cause: serde_json::Error,
    },
    /// A rule has a field that cannot be used.
    #[error("rule {rule} of the table of cache rules: {problem}")]
    Rule {
        /// Its position, from 1.
        rule: usize,
        /// What is wrong, and what to write.
        problem: String,
    },
}

impl RuleBook {
    /// The rules that come with the crate, each with its source and day.
    pub fn builtin() -> Self {
        Self { tables: vec![Arc::clone(&BUILTIN)] }
    }

    /// Lays a table of the user's over what is known.
    ///
    /// A rule has `provider`, `source`, optionally `model` and `as_of`, and any fields of [`CacheRules`]; what it
    /// leaves out stays as it was.
    pub fn with_overrides(mut self, json: &str) -> Result<Self, RulesError> {
        self.tables.push(entry::read(json)?.into());
        Ok(self)
    }

    /// Providers that a rule is known of, sorted.
    pub fn providers(&self) -> Vec<&str> {
        let mut names: Vec<&str> =
            self.tables.iter().flat_map(|table| table.iter()).map(|entry| entry.provider.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The rules for a provider's model; a provider nothing is known of caches nothing.
    pub fn rules(&self, provider: &str, model: &str) -> CacheRules {
        let mut rules = CacheRules::unknown();
        let name = entry::plain(model);
        for table in &self.tables {
            let mut fitting: Vec<&Entry> =
                table.iter().filter(|entry| entry.provider == provider && entry.fits(&name)).collect();
            // Rules of one length keep the order of the file, so that the later one wins.
            fitting.sort_by_key(|entry| entry.length());
            fitting.into_iter().for_each(|entry| entry.lay_over(&mut rules));
        }
        rules
    }
}

impl Default for RuleBook {
    fn default() -> Self {
        Self::builtin()
    }
}

impl CacheRules {
    /// Rules under which nothing is cached.
    pub fn unknown() -> Self {
        Self {
            scheme: Scheme::None,
            min_tokens: 0,
            max_marks: 0,
            lookback: 0,
            collapse_runs: false,
            step: 1,
            short_seconds: 0,
            long_seconds: 0,
            write_short: 1.0,
            write_long: 1.0,
            read: 1.0,
            tail_text: 0,
            tail_result: 0,
            tool_prompt: 0,
            tool_prompt_forced: 0,
            binds_thinking: false,
            strips_old_thinking: false,
            default_effort: String::new(),
            settings_first: false,
            tools_whole: false,
            invalidates: BTreeMap::new(),
            sources: Vec::new(),
        }
    }

    /// Seconds an entry lives.
    pub fn seconds(&self, ttl: Ttl) -> u64 {
        if ttl == Ttl::OneHour { self.long_seconds } else { self.short_seconds }
    }

    /// The first level that a change of this setting loses; `None` when it loses nothing.
    pub fn loses(&self, aspect: Aspect) -> Option<Level> {
        let early = self.settings_first && matches!(aspect, Aspect::Thinking | Aspect::Effort);
        if early { Some(Level::Tools) } else { self.invalidates.get(&aspect).copied() }
    }

    /// The same rules for text alone, as if no setting were a part of the prefix: what binds thinking to its place.
    pub fn without_settings(&self) -> Self {
        Self { invalidates: BTreeMap::new(), settings_first: false, tools_whole: false, ..self.clone() }
    }

    /// Prices that follow from those of input and output, in US dollars for a million tokens, and these multiples.
    pub fn prices(&self, input: f64, output: f64, as_of: &str) -> Prices {
        Prices {
            input,
            output,
            cache_read: input * self.read,
            cache_write_5m: input * self.write_short,
            cache_write_1h: input * self.write_long,
            as_of: as_of.into(),
        }
    }

    /// The same rules in the words of a model's profile, as [`crate::Planner`] takes them.
    ///
    /// Where the service sets a breakpoint of its own, one less is left for those of a request.
    pub fn profile(&self) -> CacheProfile {
        match self.scheme {
            Scheme::None => CacheProfile::None,
            Scheme::Marked => self.marked(self.max_marks),
            Scheme::Breakpoints => self.marked(self.max_marks.saturating_sub(1)),
            Scheme::Prefix => CacheProfile::Automatic,
        }
    }

    fn marked(&self, max_marks: usize) -> CacheProfile {
        CacheProfile::Marked {
            max_marks: u8::try_from(max_marks).unwrap_or(u8::MAX),
            min_tokens: u32::try_from(self.min_tokens).unwrap_or(u32::MAX),
            lookback: u8::try_from(self.lookback).unwrap_or(u8::MAX),
            collapse_runs: self.collapse_runs,
        }
    }
}

static BUILTIN: LazyLock<Arc<[Entry]>> = LazyLock::new(|| {
    // A test reads every file, so that nothing is left out of a release.
    FILES.iter().flat_map(|text| entry::read(text).unwrap_or_default()).collect::<Vec<_>>().into()
});

const FILES: &[&str] = &[
    include_str!("../../rules/anthropic.json"),
    include_str!("../../rules/openai.json"),
    include_str!("../../rules/others.json"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_reads_and_every_rule_has_a_source_and_a_day() {
        for file in FILES {
            let entries = entry::read(file).unwrap();
            assert!(!entries.is_empty());
            for entry in entries {
                assert!(!entry.source.is_empty() && entry.as_of.len() == 10, "{entry:?}");
            }
        }
    }

    #[test]
    fn minimums_and_reads_by_model() {
        let check = |provider: &str, model: &str, min: u64, read: f64| {
            let rules = RuleBook::builtin().rules(provider, model);
            assert_eq!((rules.min_tokens, rules.read), (min, read), "{model}");
        };
        check("anthropic", "claude-opus-5-5", 512, 0.05);
        check("anthropic", "claude-opus-5-20260801", 512, 0.1);
        check("anthropic", "claude-fable-5-1", 512, 0.025);
        check("anthropic", "claude-fable-5", 512, 0.1);
        check("anthropic", "claude-mythos-5-1", 512, 0.025);
        check("anthropic", "claude-sonnet-5-5", 512, 0.05);
        check("anthropic", "claude-sonnet-5", 1024, 0.1);
        check("anthropic", "claude-sonnet-4-6", 1024, 0.1);
        check("anthropic", "claude-opus-4-20250514", 1024, 0.1);
        check("anthropic", "claude-opus-4-7", 2048, 0.1);
        check("anthropic", "anthropic/claude-opus-4-6", 4096, 0.1);
        check("anthropic", "claude-haiku-4-5@20251001", 4096, 0.1);
        check("bedrock", "us.anthropic.claude-haiku-4-5-20251001-v1:0", 4096, 0.1);
        check("openai", "gpt-5.4", 1024, 0.1);
        check("openai", "gpt-6.1-sol", 1024, 0.05);
        check("nobody", "gpt-6.1-sol", 0, 1.0);
    }

    #[test]
    fn schemes_and_levels() {
        let book = RuleBook::builtin();
        let check = |provider, model, scheme, step| {
            let rules = book.rules(provider, model);
            assert_eq!((rules.scheme, rules.step), (scheme, step), "{model}");
        };
        check("openai", "gpt-5.5", Scheme::Prefix, 128);
        check("openai", "gpt-5.6-sol", Scheme::Breakpoints, 1);
        check("deepseek", "deepseek-v4-flash", Scheme::Prefix, 128);
        check("xai", "grok-5", Scheme::Prefix, 64);
        check("mistral", "mistral-large", Scheme::Prefix, 16);
        check("gemini", "gemini-3.8-flash", Scheme::Prefix, 1);
        check("nobody", "x", Scheme::None, 1);
        let mut claude = book.rules("anthropic", "claude-opus-5-5");
        assert_eq!(claude.loses(Aspect::Effort), Some(Level::Messages));
        assert_eq!(
            (claude.loses(Aspect::Model), claude.loses(Aspect::Verbosity)),
            (Some(Level::Tools), None)
        );
        claude.settings_first = true;
        assert_eq!(claude.loses(Aspect::Effort), Some(Level::Tools));
        assert!(!book.rules("bedrock", "claude-opus-5").collapse_runs);
    }

    #[test]
    fn mistakes_in_a_table_are_named() {
        let check = |json: &str, expect: &str| {
            let error = RuleBook::builtin().with_overrides(json).unwrap_err().to_string();
            assert!(error.contains(expect), "{error}");
        };
        check("{", "cannot be read");
        check(r#"{"as_of":"2026-11-30","rules":[{"provider":"p","source":"s","lookbak":3}]}"#, "lookbak");
        check(r#"{"rules":[{"provider":"p","source":"s"}]}"#, "as_of");
        check(r#"{"as_of":"soon","rules":[{"provider":"p","source":"s"}]}"#, "soon");
        check(r#"{"as_of":"2026-11-30","rules":[{"provider":"p","source":" "}]}"#, "source");
        check(r#"{"as_of":"2026-11-30","rules":[{"provider":"p","source":"s","step":0}]}"#, "step");
        check(r#"{"as_of":"2026-11-30","rules":[{"provider":"p","source":"s","read":-1}]}"#, "read");
    }
}
