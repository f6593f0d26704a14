//! Usage of one answer: cumulative, merged field by field (case S11).

use std::borrow::Cow;

use agent_core::{RawJson, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::json::{Fields, Loose, LooseInt, quoted, replaced};

/// The usage objects of one answer laid over each other: a later field replaces an earlier one; one that is absent,
/// null or unreadable keeps it.
#[derive(Debug, Default)]
pub(crate) struct UsageFold {
    /// What is known, as a compact object; empty before the first one.
    object: String,
}

/// What is counted of the object so far. None of its fields is there twice.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Known<'u> {
    input_tokens: LooseInt,
    output_tokens: LooseInt,
    cache_read_input_tokens: LooseInt,
    cache_creation_input_tokens: LooseInt,
    #[serde(borrow)]
    cache_creation: Option<&'u RawValue>,
    #[serde(borrow)]
    output_tokens_details: Option<&'u RawValue>,
    #[serde(borrow)]
    iterations: Option<&'u RawValue>,
}

#[derive(Deserialize, Default)]
struct Split {
    #[serde(default)]
    ephemeral_1h_input_tokens: LooseInt,
    #[serde(default)]
    ephemeral_5m_input_tokens: LooseInt,
}

#[derive(Deserialize, Default)]
struct OutputDetails {
    #[serde(default)]
    thinking_tokens: LooseInt,
}

#[derive(Deserialize)]
struct Iteration<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Loose<'a>,
    #[serde(default)]
    input_tokens: LooseInt,
    #[serde(default)]
    output_tokens: LooseInt,
}

impl UsageFold {
    /// Lays an object over what is known; `false` when it says nothing.
    pub(crate) fn take(&mut self, raw: &RawValue) -> bool {
        let given = Fields::read(raw.get()).unwrap_or_default();
        if given.0.iter().all(|(_, value)| value.get() == "null") {
            return false;
        }
        let known = Some(&self.object).filter(|known| !known.is_empty());
        let known = known.and_then(|known| Fields::read(known)).unwrap_or_default();
        let mut fields: Vec<(Cow<'_, str>, Cow<'_, str>)> = Vec::with_capacity(known.0.len() + given.0.len());
        fields.extend(known.0.into_iter().map(|(key, value)| (key, Cow::Borrowed(value.get()))));
        for (key, value) in given.0.into_iter().filter(|(_, value)| value.get() != "null") {
            match fields.iter_mut().find(|(known, _)| *known == key) {
                Some((key, old)) => {
                    if let Some(new) = laid_over(key, old, value.get()) {
                        *old = new;
                    }
                }
                None => fields.push((key, Cow::Borrowed(value.get()))),
            }
        }
        self.object = object(&fields);
        true
    }

    /// What is known so far.
    pub(crate) fn usage(&self) -> Usage {
        let known: Known<'_> = serde_json::from_str(&self.object).unwrap_or_default();
        let told = (known.input_tokens.0.unwrap_or(0), known.output_tokens.0.unwrap_or(0));
        let (input, output) = known.iterations().unwrap_or(told);
        let split: Split = read(known.cache_creation).unwrap_or_default();
        let (short, long) = (split.ephemeral_5m_input_tokens, split.ephemeral_1h_input_tokens.0.unwrap_or(0));
        // The split may be older than the total (it is not repeated at the end of a stream): the total wins.
        let total = known.cache_creation_input_tokens.0;
        let total = total.unwrap_or_else(|| short.0.unwrap_or(0).saturating_add(long));
        let details: OutputDetails = read(known.output_tokens_details).unwrap_or_default();
        Usage {
            input,
            output,
            reasoning: details.thinking_tokens.0.unwrap_or(0),
            cache_read: known.cache_read_input_tokens.0.unwrap_or(0),
            cache_write_5m: total - long.min(total),
            cache_write_1h: long.min(total),
            raw: RawJson::parse(if self.object.is_empty() { "{}" } else { &self.object }).ok(),
        }
    }
}

impl Known<'_> {
    /// Compaction happens in calls of its own that the totals leave out; with a fallback, the totals are right.
    fn iterations(&self) -> Option<(u64, u64)> {
        let all: Vec<Iteration<'_>> = read(self.iterations)?;
        if all.is_empty()
            || !are_readable(&all)
            || all.iter().any(|one| one.kind.as_str() == "fallback_message")
        {
            return None;
        }
        let add = |(input, output), one: &Iteration<'_>| {
            let (read, written) = (one.input_tokens.0.unwrap_or(0), one.output_tokens.0.unwrap_or(0));
            (read.saturating_add(input), written.saturating_add(output))
        };
        Some(all.iter().filter(|one| one.is_ours()).fold((0_u64, 0_u64), add))
    }
}

fn read<'u, T: Deserialize<'u>>(value: Option<&'u RawValue>) -> Option<T> {
    serde_json::from_str(value?.get()).ok()
}

/// Fields as a compact object, each value as it was received.
fn object(fields: &[(Cow<'_, str>, Cow<'_, str>)]) -> String {
    let length = fields.iter().map(|(key, raw)| key.len() + raw.len() + 4).sum::<usize>();
    let mut object = String::with_capacity(length + 2);
    object.push('{');
    for (at, (key, raw)) in fields.iter().enumerate() {
        object.push_str(if at > 0 { "," } else { "" });
        // Names of plain letters are what is quoted but for their quotes.
        if key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            object.extend(["\"", key, "\""]);
        } else {
            object.push_str(&quoted(key));
        }
        object.extend([":", raw]);
    }
    object.push('}');
    object
}

impl Iteration<'_> {
    /// Whether its tokens are those of the answer.
    fn is_ours(&self) -> bool {
        matches!(self.kind.as_str(), "message" | "compaction")
    }
}

/// The value of a field after a newer one arrived; `None` when the newer one is no use and the old one stays.
fn laid_over<'n>(key: &str, old: &str, new: &'n str) -> Option<Cow<'n, str>> {
    let is_good = match key {
        "cache_creation" | "output_tokens_details" => return counts_laid_over(old, new).map(Cow::Owned),
        "iterations" => serde_json::from_str(new).is_ok_and(|all: Vec<Iteration<'_>>| are_readable(&all)),
        key if key.ends_with("_tokens") => is_count(new),
        _ => true,
    };
    is_good.then_some(Cow::Borrowed(new))
}

/// The same for an object of counts, count by count.
fn counts_laid_over(old: &str, new: &str) -> Option<String> {
    let mut fields = Fields::read(new)?.0;
    if Fields::read(old).is_none() {
        return Some(new.to_owned());
    }
    fields.retain(|(_, value)| is_count(value.get()));
    let fields: Vec<_> =
        fields.into_iter().map(|(key, value)| (key.into_owned(), value.get().to_owned())).collect();
    Some(replaced(old, &fields))
}

fn are_readable(all: &[Iteration<'_>]) -> bool {
    let is_readable = |one: &Iteration<'_>| one.input_tokens.0.is_some() && one.output_tokens.0.is_some();
    all.iter().filter(|one| one.is_ours()).all(is_readable)
}

fn is_count(value: &str) -> bool {
    serde_json::from_str(value).is_ok_and(|count: LooseInt| count.0.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These objects, one after the other, give (input, output, reasoning, read, write 5m, write 1h).
    #[track_caller]
    fn check(objects: &[&str], expect: [u64; 6]) -> Usage {
        let mut fold = UsageFold::default();
        for object in objects {
            fold.take(&RawValue::from_string((*object).to_owned()).unwrap());
        }
        let usage = fold.usage();
        let given = [
            usage.input,
            usage.output,
            usage.reasoning,
            usage.cache_read,
            usage.cache_write_5m,
            usage.cache_write_1h,
        ];
        assert_eq!(given, expect);
        usage
    }

    #[test]
    fn later_fields_replace_and_null_ones_do_not() {
        check(&[r#"{"input_tokens":25,"output_tokens":1}"#, r#"{"output_tokens":15}"#], [25, 15, 0, 0, 0, 0]);
        let usage = check(
            &[
                r#"{"input_tokens":25,"cache_read_input_tokens":900}"#,
                r#"{"cache_read_input_tokens":null,"input_tokens":27}"#,
            ],
            [27, 0, 0, 900, 0, 0],
        );
        assert_eq!(usage.raw.unwrap().get(), r#"{"input_tokens":27,"cache_read_input_tokens":900}"#);
        check(&["{}", "null", "5"], [0; 6]);
        check(&[r#"{"output_tokens":9,"output_tokens_details":{"thinking_tokens":4}}"#], [0, 9, 4, 0, 0, 0]);
    }

    #[test]
    fn a_value_that_cannot_be_read_keeps_the_last_good_one() {
        let good = r#"{"input_tokens":25,"output_tokens":15,"cache_read_input_tokens":9,"cache_creation":
            {"ephemeral_5m_input_tokens":3,"ephemeral_1h_input_tokens":4},"output_tokens_details":{"thinking_tokens":6}}"#;
        for bad in ["-5", r#""many""#, "1e30", "[1]", "{}", "true"] {
            let counts = format!(
                r#"{{"input_tokens":{bad},"output_tokens":{bad},"cache_read_input_tokens":{bad},"cache_creation_input_tokens":{bad}}}"#
            );
            check(&[good, &counts], [25, 15, 6, 9, 3, 4]);
            check(&[&counts, good], [25, 15, 6, 9, 3, 4]);
            let inner = format!(
                r#"{{"cache_creation":{{"ephemeral_1h_input_tokens":{bad}}},"output_tokens_details":{{"thinking_tokens":{bad}}}}}"#
            );
            check(&[good, &inner], [25, 15, 6, 9, 3, 4]);
            check(&[&inner, good], [25, 15, 6, 9, 3, 4]);
            let outer =
                format!(r#"{{"cache_creation":{bad},"output_tokens_details":{bad},"iterations":{bad}}}"#);
            check(&[good, &outer], [25, 15, 6, 9, 3, 4]);
            check(&[&outer, good], [25, 15, 6, 9, 3, 4]);
            let last =
                format!(r#"{{"iterations":[{{"type":"message","input_tokens":1,"output_tokens":{bad}}}]}}"#);
            check(&[good, &last], [25, 15, 6, 9, 3, 4]);
        }
        let usage = check(
            &[r#"{"output_tokens":-5}"#, r#"{"output_tokens":1}"#, r#"{"output_tokens":-6}"#],
            [0, 1, 0, 0, 0, 0],
        );
        assert_eq!(usage.raw.unwrap().get(), r#"{"output_tokens":1}"#);
    }

    #[test]
    fn the_total_of_cache_writes_wins_over_the_split() {
        let split = |total: &str, short: u64, long: u64| {
            format!(
                r#"{{"cache_creation":{{"ephemeral_5m_input_tokens":{short},"ephemeral_1h_input_tokens":{long}}}{total}}}"#
            )
        };
        check(&[&split("", 3, 4)], [0, 0, 0, 0, 3, 4]);
        check(&[&split(r#","cache_creation_input_tokens":10"#, 3, 4)], [0, 0, 0, 0, 6, 4]);
        check(&[&split(r#","cache_creation_input_tokens":2"#, 3, 4)], [0, 0, 0, 0, 0, 2]);
        check(&[r#"{"cache_creation_input_tokens":7,"cache_creation":null}"#], [0, 0, 0, 0, 7, 0]);
    }

    #[test]
    fn iterations_add_what_the_totals_leave_out() {
        let one = |kind: &str| format!(r#"{{"type":"{kind}","input_tokens":100,"output_tokens":10}}"#);
        let all = |kinds: &[&str]| {
            let list: Vec<_> = kinds.iter().map(|kind| one(kind)).collect();
            format!(r#"{{"input_tokens":5,"output_tokens":6,"iterations":[{}]}}"#, list.join(","))
        };
        check(&[&all(&["compaction", "message", "advisor_message"])], [200, 20, 0, 0, 0, 0]);
        check(&[&all(&["message", "fallback_message"])], [5, 6, 0, 0, 0, 0]);
        check(&[&all(&[])], [5, 6, 0, 0, 0, 0]);
    }
}
