//! Fields of a message that the format does not have or that have no place of their own: collected, never lost.

use agent_core::RawJson;
use serde_json::value::RawValue;

use crate::wire::json::{Fields, Joiner, quoted};

/// Unknown fields of an answer while it arrives. Texts and lists grow, other values are replaced.
#[derive(Debug, Default)]
pub(super) struct Extras(Vec<(String, String)>);

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
            self.0.push((key.to_owned(), received(raw.get(), lone)));
        }
    }

    /// Takes out what belongs to the words of the answer, as an object.
    pub(super) fn of_text(&mut self) -> Option<RawJson> {
        let (ours, rest) = std::mem::take(&mut self.0).into_iter().partition(|(key, _)| is_of_text(key));
        self.0 = rest;
        object(&ours)
    }

    /// Everything that is left: a name, and an object with it.
    pub(super) fn rest(&mut self) -> Vec<(String, RawJson)> {
        let rest = std::mem::take(&mut self.0).into_iter();
        rest.filter_map(|(key, raw)| {
            let json = RawJson::parse(raw.clone()).ok().filter(RawJson::is_object);
            let json = json.or_else(|| object(&[(key.clone(), raw)]))?;
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
            Some((_, old)) => *old = grown(old, &new),
            None => self.0.push((key.to_owned(), new)),
        }
    }
}

/// Whether a field of a message says something about its words.
pub(super) fn is_of_text(key: &str) -> bool {
    matches!(key, "annotations" | "citations" | "prefix" | "name")
}

/// Received bytes; only stand-ins for halves of surrogate pairs are replaced.
pub(super) fn received(raw: &str, lone: bool) -> String {
    if lone { Joiner::default().join(raw, true) } else { raw.to_owned() }
}

fn object(fields: &[(String, String)]) -> Option<RawJson> {
    if fields.is_empty() {
        return None;
    }
    let fields: Vec<String> = fields.iter().map(|(key, raw)| format!("{}:{raw}", quoted(key))).collect();
    RawJson::parse(format!("{{{}}}", fields.join(","))).ok()
}

fn says_nothing(raw: &str) -> bool {
    matches!(raw, "null" | "\"\"" | "[]" | "{}" | "false")
}

/// A value after a later piece of it: texts and lists are appended, objects grow field by field.
fn grown(old: &str, new: &str) -> String {
    if let (Ok(old), Ok(new)) = (serde_json::from_str::<String>(old), serde_json::from_str::<String>(new)) {
        return quoted(&(old + &new));
    }
    let list = |text: &str| serde_json::from_str::<Vec<Box<RawValue>>>(text).ok();
    if let (Some(old), Some(new)) = (list(old), list(new)) {
        let items: Vec<&str> = old.iter().chain(&new).map(|item| item.get()).collect();
        return format!("[{}]", items.join(","));
    }
    match (Fields::read(old), Fields::read(new)) {
        (Some(before), Some(after)) => {
            let mut fields: Vec<(String, String)> =
                before.0.iter().map(|(key, raw)| (key.clone().into_owned(), raw.get().to_owned())).collect();
            for (key, raw) in after.0.iter().filter(|(_, raw)| raw.get() != "null") {
                match fields.iter_mut().find(|(known, _)| known == key) {
                    Some((_, old)) if is_name(key) => raw.get().clone_into(old),
                    Some((_, old)) => *old = grown(old, raw.get()),
                    None => fields.push((key.clone().into_owned(), raw.get().to_owned())),
                }
            }
            let fields: Vec<String> =
                fields.iter().map(|(key, raw)| format!("{}:{raw}", quoted(key))).collect();
            format!("{{{}}}", fields.join(","))
        }
        (Some(_), None) | (None, Some(_) | None) => new.to_owned(),
    }
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
            r#"{"annotations":[{"type":"url_citation"}],"flag":false}"#,
        ] {
            extras.take(&Fields::read(piece).unwrap(), &["role"], false);
        }
        assert_eq!(extras.of_text().unwrap().get(), r#"{"annotations":[{"type":"url_citation"}]}"#);
        let rest: Vec<String> =
            extras.rest().into_iter().map(|(key, json)| format!("{key} {}", json.get())).collect();
        assert_eq!(
            rest,
            [
                r#"audio {"id":"a1","data":"QUJD","expires_at":12345678901234567890}"#,
                r#"tags {"tags":["x","y"]}"#,
                r#"n {"n":1.0}"#
            ]
        );
    }
}
