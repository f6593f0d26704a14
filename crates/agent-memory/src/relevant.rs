//! Which texts fit words best: Okapi BM25 over names and what stands beside them, with exact names first.

use std::collections::{BTreeMap, BTreeSet};

/// An index over named texts, such as memories or tools. It is deterministic: equal scores are in the order of the texts.
///
/// The score of a text is the sum over the words asked for of `idf · f · (K + 1) / (f + K · (1 - B + B · l / l̄))`: `f` is
/// how often the word occurs in it, where one in the name counts three times and one beside it by the weight that was given;
/// `l` is the number of its words, so counted, and `l̄` the mean of that; `idf` is `ln(1 + (N - n + ½) / (n + ½))` for a word
/// in `n` of `N` texts. A word also stands for longer ones that begin with it, at half their worth. A text whose whole name
/// was asked for comes before all others.
///
/// ```
/// use agent_memory::Ranking;
///
/// let mut ranking = Ranking::default();
/// ranking.add("user_role", &[("Writes compilers in Rust", 1.0)]);
/// ranking.add("release_day", &[("Releases are made on Thursdays", 1.0)]);
/// assert_eq!(ranking.find("when is the next release?", 5), [1]);
/// ```
#[derive(Debug, Default)]
pub struct Ranking {
    /// For each word the texts that have it, and how often.
    words: BTreeMap<String, Vec<(usize, f64)>>,
    /// For each text the number of its words.
    lengths: Vec<f64>,
    /// Names without case and punctuation.
    names: BTreeMap<String, Vec<usize>>,
    /// Words of queries that say nothing, beside those of the language.
    common: &'static [&'static str],
}

impl Ranking {
    /// One that looks for none of these words, which all its texts are about.
    pub fn ignoring(common: &'static [&'static str]) -> Self {
        Self { common, ..Self::default() }
    }

    /// Takes in a text: its name, and what stands beside it with the weight of each word in it.
    pub fn add(&mut self, name: &str, beside: &[(&str, f64)]) {
        let at = self.lengths.len();
        let mut counts: BTreeMap<String, f64> = BTreeMap::new();
        for (text, weight) in beside.iter().copied().chain([(name, NAME)]) {
            for word in split(text) {
                *counts.entry(word).or_default() += weight;
            }
        }
        self.lengths.push(counts.values().sum());
        for (word, count) in counts {
            self.words.entry(word).or_default().push((at, count));
        }
        self.names.entry(plain(name)).or_default().push(at);
    }

    /// The positions of the texts that fit, best first.
    pub fn find(&self, query: &str, most: usize) -> Vec<usize> {
        let mut scores: BTreeMap<usize, f64> = BTreeMap::new();
        let is_common = |word: &str| COMMON.contains(&word) || self.common.contains(&word);
        let asked: BTreeSet<String> = split(query).into_iter().filter(|word| !is_common(word)).collect();
        let mean = self.lengths.iter().sum::<f64>() / (self.lengths.len().max(1) as f64);
        for word in &asked {
            for (at, score) in self.worth(word, mean.max(1.0)) {
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

    /// Texts whose name is the query, or a word of it as it is written.
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

    /// What a word is worth for each text that has it, or a longer one.
    fn worth(&self, word: &str, mean: f64) -> BTreeMap<usize, f64> {
        let mut worth: BTreeMap<usize, f64> = BTreeMap::new();
        let longer = self.words.range(word.to_owned()..).take_while(|(known, _)| known.starts_with(word));
        for (known, texts) in longer {
            let is_whole = known == word;
            if !is_whole && word.len() < SHORTEST_BEGINNING {
                continue;
            }
            let part = if is_whole { 1.0 } else { 0.5 };
            for (at, count) in texts {
                let score = part * self.score((texts.len(), *count), *at, mean);
                let best = worth.entry(*at).or_default();
                *best = best.max(score);
            }
        }
        worth
    }

    fn score(&self, (having, count): (usize, f64), at: usize, mean: f64) -> f64 {
        let (all, having) = (self.lengths.len() as f64, having as f64);
        let idf = (1.0 + (all - having + 0.5) / (having + 0.5)).ln();
        let length = self.lengths.get(at).copied().unwrap_or(mean);
        idf * count * (K + 1.0) / (count + K * (1.0 - B + B * length / mean))
    }
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

/// How soon more of a word is worth little more.
const K: f64 = 1.2;
/// How much the length of a text counts.
const B: f64 = 0.75;
const NAME: f64 = 3.0;
/// Shorter words stand for themselves only.
const SHORTEST_BEGINNING: usize = 3;
const COMMON: &[&str] =
    &["a", "an", "and", "for", "from", "in", "of", "on", "or", "the", "to", "with", "i", "me", "my", "that"];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ranking() -> Ranking {
        let mut ranking = Ranking::ignoring(&["memory"]);
        ranking.add("user_role", &[("Writes compilers in Rust", 1.0)]);
        ranking.add("feedback_short", &[("Wants short answers without summaries", 1.0)]);
        ranking.add("project_freeze", &[("Releases stop on 3 May; compilers included", 1.0)]);
        ranking.add("reference_bugs", &[("Bugs are kept in the tracker BIRD", 1.0)]);
        ranking
    }

    #[test]
    fn words_lead_to_what_is_about_them() {
        let check = |query: &str, expect: &[usize]| assert_eq!(ranking().find(query, 3), expect, "{query}");
        check("which compiler?", &[0, 2]);
        check("answer", &[1]);
        check("release freeze", &[2]);
        check("where is the bug", &[3]);
        check("Reference-Bugs", &[3]);
        check("memory of the", &[]);
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
        fn any_query_finds_texts_that_are_there_once(query in "\\PC{0,40}", most in 0usize..6) {
            let found = ranking().find(&query, most);
            prop_assert!(found.len() <= most);
            prop_assert!(found.iter().all(|at| *at < 4));
            prop_assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), found.len());
        }
    }
}
