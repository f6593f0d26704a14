//! Usage of one answer: in its own last chunk, in every chunk, or in an envelope of the provider's.

use agent_core::{RawJson, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::json::{Fields, LooseInt, quoted};

/// The usage objects of one answer laid over each other: a later field replaces an earlier one, null keeps it.
#[derive(Debug, Default)]
pub(super) struct UsageFold {
    fields: Vec<(String, String)>,
}

/// Every name a provider gives to the same few counts. Objects of details stand beside the totals they are part of.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Counts {
    prompt_tokens: LooseInt,
    completion_tokens: LooseInt,
    total_tokens: LooseInt,
    prompt_cache_hit_tokens: LooseInt,
    prompt_cache_miss_tokens: LooseInt,
    num_cached_tokens: LooseInt,
    cached_tokens: LooseInt,
    cache_write_tokens: LooseInt,
    cache_creation_tokens: LooseInt,
    cache_creation_input_tokens: LooseInt,
    reasoning_tokens: LooseInt,
}

impl UsageFold {
    /// Lays an object over what is known; `false` when it says nothing new.
    pub(super) fn take(&mut self, raw: &RawValue) -> bool {
        let given = Fields::read(raw.get()).unwrap_or_default();
        let mut news = false;
        for (key, value) in given.0.into_iter().filter(|(_, value)| value.get() != "null") {
            match self.fields.iter_mut().find(|(known, _)| *known == key) {
                Some((_, old)) if old == value.get() => {}
                Some((_, old)) => {
                    value.get().clone_into(old);
                    news = true;
                }
                None => {
                    self.fields.push((key.into_owned(), value.get().to_owned()));
                    news = true;
                }
            }
        }
        news
    }

    /// What is known so far. Cached tokens are reported inside the prompt's and are taken out of it.
    ///
    /// Some services leave thinking out of `completion_tokens` (xAI): then the total is more than both by just that.
    pub(super) fn usage(&self) -> Usage {
        let all = self.whole();
        let counts = |text: &str| serde_json::from_str::<Counts>(text).unwrap_or_default();
        let total = counts(&all);
        let details = |key: &str| self.field(key).map(counts).unwrap_or_default();
        let (prompt, completion) = (details("prompt_tokens_details"), details("completion_tokens_details"));
        let read = first(&[
            prompt.cached_tokens,
            total.prompt_cache_hit_tokens,
            total.num_cached_tokens,
            total.cached_tokens,
        ]);
        let written = first(&[
            prompt.cache_write_tokens,
            prompt.cache_creation_tokens,
            total.cache_creation_input_tokens,
        ]);
        let input = match (total.prompt_tokens.0, total.prompt_cache_miss_tokens.0) {
            (Some(all), _) => all.saturating_sub(read).saturating_sub(written),
            (None, Some(missed)) => missed,
            (None, None) => 0,
        };
        let output = total.completion_tokens.0.unwrap_or(0);
        let reasoning = first(&[completion.reasoning_tokens, total.reasoning_tokens]);
        let both = total.prompt_tokens.0.unwrap_or(0).saturating_add(output);
        let is_beside = reasoning > 0 && total.total_tokens.0 == both.checked_add(reasoning);
        Usage {
            input,
            output: if is_beside { output.saturating_add(reasoning) } else { output },
            reasoning,
            cache_read: read,
            cache_write_5m: written,
            cache_write_1h: 0,
            raw: RawJson::parse(all).ok(),
        }
    }

    fn field(&self, key: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == key).map(|(_, raw)| raw.as_str())
    }

    fn whole(&self) -> String {
        let fields: Vec<String> =
            self.fields.iter().map(|(key, raw)| format!("{}:{raw}", quoted(key))).collect();
        format!("{{{}}}", fields.join(","))
    }
}

fn first(counts: &[LooseInt]) -> u64 {
    counts.iter().find_map(|count| count.0).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These objects, one after the other, give (input, output, reasoning, read, written).
    #[track_caller]
    fn check(objects: &[&str], expect: [u64; 5]) {
        let mut fold = UsageFold::default();
        for object in objects {
            fold.take(&RawValue::from_string((*object).to_owned()).unwrap());
        }
        let usage = fold.usage();
        let given = [usage.input, usage.output, usage.reasoning, usage.cache_read, usage.cache_write_5m];
        assert_eq!(given, expect);
        assert_eq!(usage.total_input(), given[0] + given[3] + given[4]);
    }

    #[test]
    fn every_way_to_say_cached_is_known() {
        let with = |fields: &str| format!(r#"{{"prompt_tokens":100,"completion_tokens":5{fields}}}"#);
        check(&[&with("")], [100, 5, 0, 0, 0]);
        check(&[&with(r#","prompt_tokens_details":{"cached_tokens":80}"#)], [20, 5, 0, 80, 0]);
        check(
            &[&with(r#","prompt_tokens_details":{"cached_tokens":80,"cache_write_tokens":7}"#)],
            [13, 5, 0, 80, 7],
        );
        check(&[&with(r#","prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36"#)], [36, 5, 0, 64, 0]);
        check(&[&with(r#","num_cached_tokens":16"#)], [84, 5, 0, 16, 0]);
        check(&[&with(r#","cached_tokens":10"#)], [90, 5, 0, 10, 0]);
        check(
            &[&with(r#","completion_tokens_details":{"reasoning_tokens":3},"prompt_tokens_details":null"#)],
            [100, 5, 3, 0, 0],
        );
        check(&[&with(r#","prompt_tokens_details":{"cached_tokens":900}"#)], [0, 5, 0, 900, 0]);
    }

    #[test]
    fn the_last_word_counts_and_null_says_nothing() {
        check(
            &[
                r#"{"prompt_tokens":9,"completion_tokens":1}"#,
                r#"{"prompt_tokens":null,"completion_tokens":4}"#,
                "{}",
                "null",
            ],
            [9, 4, 0, 0, 0],
        );
        let mut fold = UsageFold::default();
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        assert!(fold.take(&raw(r#"{"prompt_tokens":9,"queue_time":0.10}"#)));
        assert!(!fold.take(&raw(r#"{"prompt_tokens":9}"#)), "the same again is no news");
        assert_eq!(fold.usage().raw.unwrap().get(), r#"{"prompt_tokens":9,"queue_time":0.10}"#);
    }

    #[test]
    fn thinking_beside_the_completion_is_told_by_the_total() {
        let with = |total: &str| {
            format!(
                r#"{{"prompt_tokens":307,"completion_tokens":26{total},"prompt_tokens_details":{{"cached_tokens":306}},
                "completion_tokens_details":{{"reasoning_tokens":227}}}}"#
            )
        };
        check(&[&with(r#","total_tokens":560"#)], [1, 253, 227, 306, 0]);
        check(&[&with(r#","total_tokens":333"#)], [1, 26, 227, 306, 0]);
        check(&[&with("")], [1, 26, 227, 306, 0]);
        check(&[r#"{"prompt_tokens":3,"completion_tokens":26,"total_tokens":31}"#], [3, 26, 0, 0, 0]);
    }
}
