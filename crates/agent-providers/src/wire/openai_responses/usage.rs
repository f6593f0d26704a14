//! Usage of one answer: the parts of its input and output, taken apart.

use agent_core::{RawJson, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::json::LooseInt;

#[derive(Deserialize)]
struct WireUsage<'a> {
    #[serde(default)]
    input_tokens: LooseInt,
    #[serde(borrow, default)]
    input_tokens_details: Option<&'a RawValue>,
    #[serde(default)]
    output_tokens: LooseInt,
    #[serde(borrow, default)]
    output_tokens_details: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct InputDetails<'a> {
    #[serde(default)]
    cached_tokens: LooseInt,
    #[serde(default)]
    cache_write_tokens: LooseInt,
    #[serde(borrow, default)]
    cache_write_tokens_details: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct WriteDetails {
    #[serde(default)]
    ttl_12h_tokens: LooseInt,
}

#[derive(Deserialize, Default)]
struct OutputDetails {
    #[serde(default)]
    reasoning_tokens: LooseInt,
}

/// The tokens of an answer; `None` when the object says nothing.
pub(super) fn usage(raw: &RawValue) -> Option<Usage> {
    let given: WireUsage<'_> = serde_json::from_str(raw.get()).ok()?;
    if given.input_tokens.0.is_none() && given.output_tokens.0.is_none() {
        return None;
    }
    let details: InputDetails<'_> = read(given.input_tokens_details);
    let total = given.input_tokens.0.unwrap_or(0);
    // What was read and written is part of the input.
    let cache_read = details.cached_tokens.0.unwrap_or(0).min(total);
    let written = details.cache_write_tokens.0.unwrap_or(0).min(total - cache_read);
    let long =
        read::<WriteDetails>(details.cache_write_tokens_details).ttl_12h_tokens.0.unwrap_or(0).min(written);
    Some(Usage {
        input: total - cache_read - written,
        output: given.output_tokens.0.unwrap_or(0),
        reasoning: read::<OutputDetails>(given.output_tokens_details).reasoning_tokens.0.unwrap_or(0),
        cache_read,
        cache_write_5m: written - long,
        cache_write_1h: long,
        raw: Some(RawJson::from(raw.to_owned())),
    })
}

fn read<'a, T: Deserialize<'a> + Default>(raw: Option<&'a RawValue>) -> T {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This object gives (input, output, reasoning, read, write short, write long).
    #[track_caller]
    fn check(object: &str, expect: Option<[u64; 6]>) {
        let usage = usage(&RawValue::from_string(object.to_owned()).unwrap());
        let given =
            usage.map(|u| [u.input, u.output, u.reasoning, u.cache_read, u.cache_write_5m, u.cache_write_1h]);
        assert_eq!(given, expect);
    }

    #[test]
    fn cached_tokens_are_inside_the_input() {
        check(r#"{"input_tokens":100,"output_tokens":7}"#, Some([100, 7, 0, 0, 0, 0]));
        check(
            r#"{"input_tokens":100,"input_tokens_details":{"cached_tokens":60,"cache_write_tokens":30,
                "cache_write_tokens_details":{"ttl_30m_tokens":10,"ttl_12h_tokens":20}},
                "output_tokens":7,"output_tokens_details":{"reasoning_tokens":5}}"#,
            Some([10, 7, 5, 60, 10, 20]),
        );
        check(
            r#"{"input_tokens":5,"input_tokens_details":{"cached_tokens":9,"cache_write_tokens":9}}"#,
            Some([0, 0, 0, 5, 0, 0]),
        );
        check(
            r#"{"input_tokens":"5","input_tokens_details":[],"output_tokens_details":7}"#,
            Some([5, 0, 0, 0, 0, 0]),
        );
        check("{}", None);
        check("null", None);
    }
}
