//! Usage of one answer: counts so far, of which a later one replaces an earlier one.

use agent_core::{RawJson, Usage};
use serde_json::value::RawValue;

use crate::wire::json::{Fields, LooseInt, quoted};

/// The usage objects of one answer laid over each other, field by field.
#[derive(Debug, Default)]
pub(super) struct UsageFold {
    fields: Vec<(String, String)>,
}

impl UsageFold {
    /// Lays an object over what is known; `false` when it says nothing new.
    ///
    /// A count that cannot be read keeps the last good one.
    pub(super) fn take(&mut self, raw: &RawValue) -> bool {
        let given = Fields::read(raw.get()).unwrap_or_default();
        let mut news = false;
        for (key, value) in given.0.into_iter().filter(|(_, value)| value.get() != "null") {
            let value = value.get();
            match self.fields.iter_mut().find(|(known, _)| *known == key) {
                Some((_, old)) if old == value || (is_count_name(&key) && count(value).is_none()) => continue,
                Some((_, old)) => value.clone_into(old),
                None => self.fields.push((key.into_owned(), value.to_owned())),
            }
            news = true;
        }
        news
    }

    /// What is known so far. The prompt holds cached tokens; results of hosted tools are read besides it; thoughts
    /// are written besides the answer.
    pub(super) fn usage(&self) -> Usage {
        let (prompt, tools) = (self.count("promptTokenCount"), self.count("toolUsePromptTokenCount"));
        let (answer, thoughts) = (self.count("candidatesTokenCount"), self.count("thoughtsTokenCount"));
        let cached = self.count("cachedContentTokenCount");
        Usage {
            input: prompt.saturating_add(tools).saturating_sub(cached),
            output: answer.saturating_add(thoughts),
            reasoning: thoughts,
            cache_read: cached,
            raw: self.raw(),
            ..Usage::default()
        }
    }

    fn count(&self, key: &str) -> u64 {
        let known = self.fields.iter().find(|(known, _)| known == key);
        known.and_then(|(_, raw)| count(raw)).unwrap_or(0)
    }

    fn raw(&self) -> Option<RawJson> {
        let fields: Vec<String> =
            self.fields.iter().map(|(key, raw)| format!("{}:{raw}", quoted(key))).collect();
        RawJson::parse(format!("{{{}}}", fields.join(","))).ok()
    }
}

fn is_count_name(key: &str) -> bool {
    key.ends_with("TokenCount")
}

fn count(raw: &str) -> Option<u64> {
    serde_json::from_str::<LooseInt>(raw).ok().and_then(|count| count.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These objects, one after the other, give (input, output, reasoning, read).
    #[track_caller]
    fn check(objects: &[&str], expect: [u64; 4]) {
        let mut fold = UsageFold::default();
        for object in objects {
            fold.take(&RawValue::from_string((*object).to_owned()).unwrap());
        }
        let usage = fold.usage();
        assert_eq!([usage.input, usage.output, usage.reasoning, usage.cache_read], expect);
    }

    #[test]
    fn cached_tokens_are_inside_the_prompt_and_thoughts_beside_the_answer() {
        let whole = r#"{"promptTokenCount":100,"cachedContentTokenCount":80,"toolUsePromptTokenCount":7,
            "candidatesTokenCount":5,"thoughtsTokenCount":40,"totalTokenCount":152}"#;
        check(&[whole], [27, 45, 40, 80]);
        check(&[r#"{"promptTokenCount":9}"#, whole, r#"{"candidatesTokenCount":6}"#], [27, 46, 40, 80]);
        check(&["{}", "null", "7"], [0; 4]);
        check(&[r#"{"promptTokenCount":5,"cachedContentTokenCount":9}"#], [0, 0, 0, 9]);
    }

    #[test]
    fn a_count_that_cannot_be_read_keeps_the_last_good_one() {
        for bad in ["-1", r#""many""#, "[]", "1e30", "null"] {
            check(&[r#"{"promptTokenCount":5}"#, &format!(r#"{{"promptTokenCount":{bad}}}"#)], [5, 0, 0, 0]);
        }
        let mut fold = UsageFold::default();
        let raw = RawValue::from_string(r#"{"promptTokenCount":5,"trafficType":"x"}"#.into()).unwrap();
        assert!(fold.take(&raw) && !fold.take(&raw), "the same again is no news");
    }
}
