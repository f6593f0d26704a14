//! Which tools fit words best: Okapi BM25 over names, parameters and descriptions, with exact names first.

use std::collections::{BTreeMap, BTreeSet};

use agent_core::ToolCard;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// An index over tools, built once. It is deterministic: equal scores are in the order of the tools.
///
/// The score of a tool is the sum over the words asked for of `idf · f · (K + 1) / (f + K · (1 - B + B · l / l̄))`: `f` is
/// how often the word occurs in the tool, where one in the name counts [`NAME`] times, one in the name of a parameter
/// [`PARAMETER`] times and one in the description once; `l` is the number of its words, so counted, and `l̄` the mean of
/// that; `idf` is `ln(1 + (N - n + ½) / (n + ½))` for a word in `n` of `N` tools. A word also stands for longer ones that
/// begin with it, at half their worth. A tool whose whole name was asked for comes before all others.
#[derive(Debug)]
pub(super) struct Index {
    /// For each word the tools that have it, and how often.
    words: BTreeMap<String, Vec<(usize, f64)>>,
    /// For each tool the number of its words.
    lengths: Vec<f64>,
    mean: f64,
    /// Names without case and punctuation.
    names: BTreeMap<String, Vec<usize>>,
}

impl Index {
    pub(super) fn of(cards: &[ToolCard]) -> Self {
        let mut words: BTreeMap<String, Vec<(usize, f64)>> = BTreeMap::new();
        let mut names: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let mut lengths = Vec::with_capacity(cards.len());
        for (at, card) in cards.iter().enumerate() {
            let counted = counted(card);
            lengths.push(counted.values().sum());
            for (word, count) in counted {
                words.entry(word).or_default().push((at, count));
            }
            names.entry(plain(card.name())).or_default().push(at);
        }
        let mean = lengths.iter().sum::<f64>() / (lengths.len().max(1) as f64);
        Self { words, lengths, mean: mean.max(1.0), names }
    }

    /// The positions of the tools that fit, best first.
    pub(super) fn find(&self, query: &str, most: usize) -> Vec<usize> {
        let mut scores: BTreeMap<usize, f64> = BTreeMap::new();
        let asked: BTreeSet<String> = split(query).into_iter().filter(|word| !is_common(word)).collect();
        for word in &asked {
            for (at, score) in self.worth(word) {
                *scores.entry(at).or_default() += score;
            }
        }
        let mut ranked: Vec<(usize, f64)> = scores.into_iter().collect();
        ranked.sort_by(|(one, score), (other, more)| more.total_cmp(score).then(one.cmp(other)));
        let mut found = self.named(query);
        for (at, _) in ranked {
            if found.len() >= most {
                break;
            }
            if !found.contains(&at) {
                found.push(at);
            }
        }
        found.truncate(most);
        found
    }

    /// Tools whose name is the query, or a word of it as it is written.
    fn named(&self, query: &str) -> Vec<usize> {
        let parts = std::iter::once(query).chain(query.split(|c: char| c.is_whitespace() || c == ','));
        let mut found = Vec::new();
        for at in parts.filter_map(|part| self.names.get(&plain(part))).flatten() {
            if !found.contains(at) {
                found.push(*at);
            }
        }
        found
    }

    /// What a word is worth for each tool that has it, or a longer one.
    fn worth(&self, word: &str) -> BTreeMap<usize, f64> {
        let mut worth: BTreeMap<usize, f64> = BTreeMap::new();
        let longer = self.words.range(word.to_owned()..).take_while(|(known, _)| known.starts_with(word));
        for (known, tools) in longer {
            let is_whole = known == word;
            if !is_whole && word.len() < SHORTEST_BEGINNING {
                continue;
            }
            let part = if is_whole { 1.0 } else { 0.5 };
            for (at, count) in tools {
                let score = part * self.score(tools.len(), *count, *at);
                let best = worth.entry(*at).or_default();
                *best = best.max(score);
            }
        }
        worth
    }

    fn score(&self, having: usize, count: f64, at: usize) -> f64 {
        let (all, having) = (self.lengths.len() as f64, having as f64);
        let idf = (1.0 + (all - having + 0.5) / (having + 0.5)).ln();
        let length = self.lengths.get(at).copied().unwrap_or(self.mean);
        idf * count * (K + 1.0) / (count + K * (1.0 - B + B * length / self.mean))
    }
}

/// How often each word occurs in a tool, by where it stands.
fn counted(card: &ToolCard) -> BTreeMap<String, f64> {
    let mut counts = BTreeMap::new();
    let mut count = |text: &str, weight: f64| {
        for word in split(text) {
            *counts.entry(word).or_default() += weight;
        }
    };
    count(card.name(), NAME);
    parameters(card).iter().for_each(|name| count(name, PARAMETER));
    count(card.description(), 1.0);
    counts
}

/// The names of the fields that a tool takes; a schema without any has none.
fn parameters(card: &ToolCard) -> Vec<String> {
    #[derive(Deserialize)]
    struct Schema {
        #[serde(default)]
        properties: BTreeMap<String, IgnoredAny>,
    }
    card.input_schema()
        .to::<Schema>()
        .map_or_else(|_| Vec::new(), |schema| schema.properties.into_keys().collect())
}

/// The words of a text in lower case: split at all that is no letter or digit, and where a capital begins a new word
/// (`createIssue`, `HTTPServer`). A plural counts as its singular.
fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for run in text.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty()) {
        let letters: Vec<char> = run.chars().collect();
        let mut word = String::new();
        for (at, letter) in letters.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|at| letters.get(at));
            let next = letters.get(at + 1);
            let begins = letter.is_uppercase()
                && before.is_some_and(|before| {
                    before.is_lowercase()
                        || (before.is_uppercase() && next.is_some_and(|next| next.is_lowercase()))
                });
            if begins {
                words.push(std::mem::take(&mut word));
            }
            word.extend(letter.to_lowercase());
        }
        words.push(word);
    }
    words.into_iter().filter(|word| !word.is_empty()).map(singular).collect()
}

fn singular(word: String) -> String {
    match word.strip_suffix('s') {
        Some(stem) if stem.len() > 2 && !stem.ends_with(['s', 'u', 'i']) => stem.to_owned(),
        Some(_) | None => word,
    }
}

/// A name as it is compared: letters and digits in lower case.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Words that say nothing of what a tool does.
fn is_common(word: &str) -> bool {
    COMMON.contains(&word)
}

/// How soon more of a word is worth little more.
const K: f64 = 1.2;
/// How much the length of a tool's words counts.
const B: f64 = 0.75;
const NAME: f64 = 3.0;
const PARAMETER: f64 = 1.5;
/// Shorter words stand for themselves only.
const SHORTEST_BEGINNING: usize = 3;
const COMMON: &[&str] = &[
    "a", "an", "and", "for", "from", "in", "of", "on", "or", "the", "to", "tool", "with", "i", "me", "my",
    "that",
];

#[cfg(test)]
mod tests {
    use agent_core::RawJson;
    use proptest::prelude::*;

    use super::*;

    fn card(name: &str, about: &str, fields: &str) -> ToolCard {
        let properties: Vec<String> =
            fields.split_whitespace().map(|field| format!(r#""{field}":{{"type":"string"}}"#)).collect();
        let schema = format!(r#"{{"type":"object","properties":{{{}}}}}"#, properties.join(","));
        ToolCard::new(name, about, &RawJson::parse(schema).unwrap()).unwrap()
    }

    fn cards() -> Vec<ToolCard> {
        vec![
            card("calendar__create_event", "Puts an appointment into the calendar.", "title start"),
            card("github.createIssue", "Opens an issue in a repository.", "repo title body"),
            card("github.listIssues", "Lists the issues of a repository.", "repo state"),
            card("mail-send", "Sends a message to a person.", "recipient subject body"),
            card("weather", "Tells whether it will rain.", "city"),
        ]
    }

    #[test]
    fn words_lead_to_the_tool_that_does_it() {
        let (cards, index) = (cards(), Index::of(&cards()));
        let check = |query: &str, expect: &[&str]| {
            let found: Vec<_> = index.find(query, 5).into_iter().map(|at| cards[at].name()).collect();
            assert_eq!(found, expect, "{query}");
        };
        check("create an issue", &["github.createIssue", "github.listIssues", "calendar__create_event"]);
        check("list issue", &["github.listIssues", "github.createIssue"]);
        check("rain", &["weather"]);
        check("who is the recipient", &["mail-send"]);
        check("appoint", &["calendar__create_event"]);
        check("GitHub_CreateIssue", &["github.createIssue", "github.listIssues", "calendar__create_event"]);
        check("weather, mail send", &["weather", "mail-send"]);
        check("the of a", &[]);
        check("", &[]);
        check("quaternion", &[]);
    }

    #[test]
    fn names_are_split_where_words_begin() {
        let check = |text: &str, expect: &str| assert_eq!(split(text).join(" "), expect, "{text}");
        check("createIssue", "create issue");
        check("HTTPServer2go", "http server2go");
        check("a__b-c.dE", "a b c d e");
        check("Issues, classes & status", "issue classe status");
        check("日历 Ärger", "日历 ärger");
    }

    proptest! {
        #[test]
        fn any_query_finds_tools_that_are_there_once(query in "\\PC{0,40}", most in 0usize..8) {
            let index = Index::of(&cards());
            let found = index.find(&query, most);
            prop_assert!(found.len() <= most);
            prop_assert!(found.iter().all(|at| *at < cards().len()));
            prop_assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), found.len());
            prop_assert_eq!(index.find(&query, most), found);
        }
    }
}
