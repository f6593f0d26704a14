//! Objects as ordered members of raw JSON, so that no byte of a value is rewritten.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of an object, in order.
#[derive(Debug)]
pub(crate) struct Object<'a>(pub(crate) Vec<(String, &'a RawValue)>);

impl<'a> Object<'a> {
    /// `None` for what is no object.
    pub(crate) fn read(value: &'a RawValue) -> Option<Self> {
        serde_json::from_str(value.get()).ok()
    }

    pub(crate) fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| *value)
    }

    pub(crate) fn object(&self, key: &str) -> Option<Object<'a>> {
        self.get(key).and_then(Object::read)
    }

    pub(crate) fn text(&self, key: &str) -> Option<String> {
        self.get(key).and_then(text)
    }

    pub(crate) fn is_true(&self, key: &str) -> bool {
        self.get(key).is_some_and(|value| value.get() == "true")
    }

    /// The object again without some members; every other value keeps its bytes.
    pub(crate) fn without(&self, keys: &[&str]) -> String {
        self.written(keys, |_, value| value.get().to_owned())
    }

    /// The object again without some members, each value as `write` gives it.
    pub(crate) fn written(&self, keys: &[&str], write: impl Fn(&str, &RawValue) -> String) -> String {
        let kept = self.0.iter().filter(|(name, _)| !keys.contains(&name.as_str()));
        let members = kept.map(|(name, value)| format!("{}:{}", quoted(name), write(name, value)));
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    }
}

/// Elements of an array, or `None`.
pub(crate) fn array(value: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(value.get()).ok()
}

/// The characters of a string, or `None`.
pub(crate) fn text(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

pub(crate) fn raw(json: &str) -> Result<&RawValue, serde_json::Error> {
    serde_json::from_str(json)
}

fn quoted(name: &str) -> String {
    serde_json::Value::from(name).to_string()
}

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry::<String, &'de RawValue>()? {
                    members.push(member);
                }
                Ok(Object(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// The members of an object written as text.
pub(crate) fn object(json: &str) -> Option<Object<'_>> {
    raw(json).ok().and_then(Object::read)
}
