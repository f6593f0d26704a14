//! Fields of a message that the format does not have or that have no place of their own: collected, never lost.

use agent_core::RawJson;
use serde_json::value::RawValue;

use crate::wire::json::{Fields, quoted, received};

/// Unknown fields of an answer while it arrives. Texts and lists grow, objects grow field by field, other values are
/// replaced.
#[derive(Debug, Default)]
pub(super) struct Extras(Vec<(String, Grown)>);

/// A value that later pieces add to. It keeps its bytes until one does, and is taken apart then, so that a piece costs
/// no more than itself: a spoken answer comes in thousands of them.
#[derive(Debug)]
enum Grown {
    /// As it was received.
    Whole(String),
    Text(String),
    /// The items as they were received.
    List(Vec<String>),
    Object(Vec<(String, Self)>),
}

impl Extras {
    /// Takes the fields of a piece of the message but those that are known.
    pub(super) fn take(&mut self, fields: &Fields<'_>, known: &[&str], lone: bool) {
        for (key, raw) in fields.0.iter().filter(|(key, _)| !known.contains(&key.as_ref())) {
            self.add(key, raw, lone);
        }
    }

    /// Takes a field that is said anew, whole.
    pub(super) fn replace(&mut self, key: &str, raw: &RawValue, lone: bool) {
        if !says_nothing(raw.get()) {
            self.0.retain(|(known, _)| known != key);
            self.0.push((key.to_owned(), Grown::Whole(received(raw.get(), lone))));
        }
    }

    /// Takes out what belongs to the words of the answer, as an object.
    pub(super) fn of_text(&mut self) -> Option<RawJson> {
        let (ours, rest) = std::mem::take(&mut self.0).into_iter().partition(|(key, _)| is_of_text(key));
        self.0 = rest;
        object(ours)
    }

    /// Everything that is left: a name, and an object with it.
    pub(super) fn rest(&mut self) -> Vec<(String, RawJson)> {
        let rest = std::mem::take(&mut self.0).into_iter();
        rest.filter_map(|(key, value)| {
            let raw = value.into_json();
            let json = RawJson::parse(raw.as_str()).ok().filter(RawJson::is_object);
            let json = json.or_else(|| object(vec![(key.clone(), Grown::Whole(raw))]))?;
            Some((key, json))
        })
        .collect()
    }

    fn add(&mut self, key: &str, raw: &RawValue, lone: bool) {
        if says_nothing(raw.get()) {
            return;
        }
        let new = received(raw.get(), lone);
        match self.0.iter_mut().find(|(known, _)| known == key) {
            Some((_, old)) => old.grow(new),
            None => self.0.push((key.to_owned(), Grown::Whole(new))),
        }
    }
}

impl Grown {
    /// Takes a later piece; one of another kind replaces what was there.
    fn grow(&mut self, new: String) {
        if let Self::Whole(raw) = self {
            *self = Self::apart(raw);
        }
        match (self, Self::apart(&new)) {
            (Self::Text(text), Self::Text(more)) => text.push_str(&more),
            (Self::List(items), Self::List(more)) => items.extend(more),
            (Self::Object(fields), Self::Object(more)) => {
                for (key, value) in more {
                    grow_field(fields, key, value.into_json());
                }
            }
            (old, _) => *old = Self::Whole(new),
        }
    }

    /// A value taken apart; what has no parts stays whole.
    fn apart(raw: &str) -> Self {
        if let Ok(text) = serde_json::from_str(raw) {
            return Self::Text(text);
        }
        if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(raw) {
            return Self::List(items.into_iter().map(|item| item.get().to_owned()).collect());
        }
        let whole = |raw: &RawValue| Self::Whole(raw.get().to_owned());
        match Fields::read(raw) {
            Some(fields) => {
                Self::Object(fields.0.into_iter().map(|(key, raw)| (key.into_owned(), whole(raw))).collect())
            }
            None => Self::Whole(raw.to_owned()),
        }
    }

    fn into_json(self) -> String {
        match self {
            Self::Whole(raw) => raw,
            Self::Text(text) => quoted(&text),
            Self::List(items) => format!("[{}]", items.join(",")),
            Self::Object(fields) => written(fields),
        }
    }
}

fn grow_field(fields: &mut Vec<(String, Grown)>, key: String, new: String) {
    if new == "null" {
        return;
    }
    match fields.iter_mut().find(|(known, _)| *known == key) {
        Some((_, old)) if is_name(&key) => *old = Grown::Whole(new),
        Some((_, old)) => old.grow(new),
        None => fields.push((key, Grown::Whole(new))),
    }
}

/// Whether a field of a message says something about its words.
pub(super) fn is_of_text(key: &str) -> bool {
    matches!(key, "annotations" | "citations" | "prefix" | "name")
}

fn object(fields: Vec<(String, Grown)>) -> Option<RawJson> {
    if fields.is_empty() { None } else { RawJson::parse(written(fields)).ok() }
}

fn written(fields: Vec<(String, Grown)>) -> String {
    let fields: Vec<String> =
        fields.into_iter().map(|(key, value)| format!("{}:{}", quoted(&key), value.into_json())).collect();
    format!("{{{}}}", fields.join(","))
}

fn says_nothing(raw: &str) -> bool {
    matches!(raw, "null" | "\"\"" | "[]" | "{}" | "false")
}

/// Fields that name something: a later one is the same again.
fn is_name(key: &str) -> bool {
    matches!(key, "id" | "type" | "format" | "object" | "role" | "index")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_grow_together() {
        let mut extras = Extras::default();
        for piece in [
            r#"{"audio":{"id":"a1","data":"QU"},"role":"assistant","tags":["x"],"odd":null}"#,
            r#"{"audio":{"id":"a1","data":"JD","expires_at":12345678901234567890},"tags":["y"],"n":1.0}"#,
            r#"{"annotations":[{"type":"url_citation","title":"caf\u00e9"}],"note":{"of":"caf\u00e9"},"flag":false}"#,
        ] {
            extras.take(&Fields::read(piece).unwrap(), &["role"], false);
        }
        assert_eq!(
            extras.of_text().unwrap().get(),
            r#"{"annotations":[{"type":"url_citation","title":"caf\u00e9"}]}"#
        );
        let rest: Vec<String> =
            extras.rest().into_iter().map(|(key, json)| format!("{key} {}", json.get())).collect();
        assert_eq!(
            rest,
            [
                r#"audio {"id":"a1","data":"QUJD","expires_at":12345678901234567890}"#,
                r#"tags {"tags":["x","y"]}"#,
                r#"n {"n":1.0}"#,
                r#"note {"of":"caf\u00e9"}"#
            ]
        );
    }
}
