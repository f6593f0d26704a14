//! What of a request differs from the recorded one first, in words to read.

use std::fmt;

use agent_core::{ceil_boundary, floor_boundary};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::corpus::ExchangeRequest;

/// `None` when the request is the recorded one; otherwise what differs, as three lines.
pub(super) fn difference(recorded: &ExchangeRequest, sent: &ExchangeRequest) -> Option<String> {
    if recorded.method != sent.method {
        return Some(lines("the method", &recorded.method, &sent.method));
    }
    if recorded.path != sent.path {
        return Some(lines("the path", &recorded.path, &sent.path));
    }
    let (recorded, sent) = (text(recorded), text(sent));
    if recorded == sent {
        return None;
    }
    let parsed = |text| serde_json::from_str::<&RawValue>(text).ok();
    let (Some(before), Some(now)) = (parsed(recorded), parsed(sent)) else {
        return Some(lines("the body", recorded, sent));
    };
    Some(of_json("", before.get(), now.get()).unwrap_or_else(|| {
        let what = "the order of fields, or white space: the values are equal, but a cached prefix is not";
        lines(what, recorded, sent)
    }))
}

fn text(request: &ExchangeRequest) -> &str {
    request.body.as_deref().unwrap_or_default()
}

/// The first value that differs, in the order of the recorded document.
fn of_json(place: &str, recorded: &str, sent: &str) -> Option<String> {
    if recorded == sent {
        return None;
    }
    if let (Some(before), Some(now)) = (list(recorded), list(sent)) {
        let longest = before.len().max(now.len());
        return (0..longest).find_map(|at| {
            of_part(&format!("{place}[{at}]"), before.get(at).copied(), now.get(at).copied())
        });
    }
    let (Some(before), Some(now)) = (object(recorded), object(sent)) else {
        return Some(lines(&format!("`{place}` of the body"), recorded, sent));
    };
    let added = now.iter().filter(|(name, _)| find(&before, name).is_none());
    let names = before.iter().chain(added).map(|(name, _)| name);
    names
        .map(|name| {
            let dot = if place.is_empty() { "" } else { "." };
            (format!("{place}{dot}{name}"), find(&before, name), find(&now, name))
        })
        .find_map(|(place, before, now)| of_part(&place, before, now))
}

fn of_part(place: &str, recorded: Option<&RawValue>, sent: Option<&RawValue>) -> Option<String> {
    match (recorded, sent) {
        (Some(recorded), Some(sent)) => of_json(place, recorded.get(), sent.get()),
        (Some(recorded), None) => Some(lines(&format!("`{place}` of the body"), recorded.get(), ABSENT)),
        (None, Some(sent)) => Some(lines(&format!("`{place}` of the body"), ABSENT, sent.get())),
        (None, None) => None,
    }
}

fn lines(what: &str, recorded: &str, sent: &str) -> String {
    let same = recorded.bytes().zip(sent.bytes()).take_while(|(one, other)| one == other).count();
    format!(
        "  differs:  {what}\n  recorded: {}\n  sent:     {}",
        excerpt(recorded, same),
        excerpt(sent, same)
    )
}

/// What stands around a position, in one line.
fn excerpt(text: &str, at: usize) -> String {
    let start = floor_boundary(text, at.saturating_sub(BEFORE));
    let end = ceil_boundary(text, (at + AFTER).min(text.len()));
    let (left, right) =
        (if start > 0 { "\u{2026}" } else { "" }, if end < text.len() { "\u{2026}" } else { "" });
    let shown = text[start..end].replace(['\n', '\r'], " ");
    format!("{left}{shown}{right}")
}

fn list(json: &str) -> Option<Vec<&RawValue>> {
    serde_json::from_str(json).ok()
}

fn object(json: &str) -> Option<Vec<(String, &RawValue)>> {
    serde_json::from_str::<Fields<'_>>(json).ok().map(|fields| fields.0)
}

fn find<'a>(fields: &[(String, &'a RawValue)], name: &str) -> Option<&'a RawValue> {
    fields.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
}

/// Fields in the order they are written.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor).map(Fields)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = map.next_entry()? {
            fields.push(field);
        }
        Ok(fields)
    }
}

const ABSENT: &str = "(absent)";
const BEFORE: usize = 40;
const AFTER: usize = 80;

#[cfg(test)]
mod tests {
    use super::*;

    fn request(path: &str, body: &str) -> ExchangeRequest {
        ExchangeRequest {
            method: "POST".into(),
            path: path.into(),
            headers: Default::default(),
            body: Some(body.into()),
        }
    }

    fn diff(recorded: &str, sent: &str) -> String {
        difference(&request("/", recorded), &request("/", sent)).unwrap_or_else(|| "none".into())
    }

    #[test]
    fn the_first_difference_is_named() {
        assert_eq!(diff("{\"a\":1}", "{\"a\":1}"), "none");
        let words = "word ".repeat(40);
        let (long, other) = (
            format!(r#"{{"m":[{{"t":"{words}a{words}"}}]}}"#),
            format!(r#"{{"m":[{{"t":"{words}b{words}"}}]}}"#),
        );
        insta::assert_snapshot!(diff(&long, &other), @"
        differs:  `m[0].t` of the body
        recorded: …word word word word word word word word aword word word word word word word word word word word word word word word word…
        sent:     …word word word word word word word word bword word word word word word word word word word word word word word word word…
        ");
        insta::assert_snapshot!(diff(r#"{"z":1,"a":2,"m":[1]}"#, r#"{"a":3,"m":[1,{"n":2}],"z":1}"#), @"
        differs:  `a` of the body
        recorded: 2
        sent:     3
        ");
        insta::assert_snapshot!(diff(r#"{"m":[1]}"#, r#"{"m":[1,{"n":2}]}"#), @r#"
        differs:  `m[1]` of the body
        recorded: (absent)
        sent:     {"n":2}
        "#);
        insta::assert_snapshot!(diff(r#"{"m":1,"seed":7}"#, r#"{"m":1}"#), @"
        differs:  `seed` of the body
        recorded: 7
        sent:     (absent)
        ");
        insta::assert_snapshot!(diff(r#"{"n":12345678901234567890,"x":1.0}"#, r#"{"n":12345678901234567890,"x":1}"#), @"
        differs:  `x` of the body
        recorded: 1.0
        sent:     1
        ");
        insta::assert_snapshot!(diff(r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#), @r#"
        differs:  the order of fields, or white space: the values are equal, but a cached prefix is not
        recorded: {"a":1,"b":2}
        sent:     {"b":2,"a":1}
        "#);
        insta::assert_snapshot!(diff("{\"a\":", "plain\ntext"), @r#"
        differs:  the body
        recorded: {"a":
        sent:     plain text
        "#);
        let moved = difference(&request("/v1/messages", "{}"), &request("/v1/responses", "[]"));
        insta::assert_snapshot!(moved.unwrap(), @"
        differs:  the path
        recorded: /v1/messages
        sent:     /v1/responses
        ");
    }

    proptest::proptest! {
        #[test]
        fn any_texts_are_shown(recorded in ".{0,90}", sent in ".{0,90}") {
            let shown = diff(&recorded, &sent);
            proptest::prop_assert_eq!(shown == "none", recorded == sent);
        }
    }
}
