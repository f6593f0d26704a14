//! Usage of one answer: the counts and durations of its last object.

use agent_core::{RawJson, Usage};

use crate::wire::json::{Fields, LooseInt, quoted};

/// The usage that an object reports; `None` when it reports none.
///
/// A prompt that was kept from the call before may be counted only as far as it was evaluated anew; what was read
/// from that cache is not said.
pub(super) fn usage(object: &str) -> Option<Usage> {
    let fields = Fields::read(object)?;
    let own = fields.0.iter().filter(|(key, raw)| is_metric(key) && raw.get() != "null");
    let own: Vec<String> = own.map(|(key, raw)| format!("{}:{}", quoted(key), raw.get())).collect();
    if own.is_empty() {
        return None;
    }
    let count = |key: &str| {
        let raw = fields.get(key)?;
        serde_json::from_str::<LooseInt>(raw.get()).ok()?.0
    };
    Some(Usage {
        input: count("prompt_eval_count").unwrap_or(0),
        output: count("eval_count").unwrap_or(0),
        raw: RawJson::parse(format!("{{{}}}", own.join(","))).ok(),
        ..Usage::default()
    })
}

fn is_metric(key: &str) -> bool {
    key.ends_with("_count") || key.ends_with("_duration")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_where_they_are() {
        let check = |object: &str, expect: Option<(u64, u64)>| {
            assert_eq!(usage(object).map(|usage| (usage.input, usage.output)), expect, "{object}");
        };
        check(r#"{"done":false}"#, None);
        check(r#"{"prompt_eval_count":26,"eval_count":298,"total_duration":5}"#, Some((26, 298)));
        check(r#"{"eval_count":"7","prompt_eval_count":-1}"#, Some((0, 7)));
        check("[]", None);
        let raw = usage(r#"{"model":"m","eval_count":7,"load_duration":1.0}"#).unwrap().raw.unwrap();
        assert_eq!(raw.get(), r#"{"eval_count":7,"load_duration":1.0}"#);
    }
}
