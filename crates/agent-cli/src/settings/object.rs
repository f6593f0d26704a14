//! A JSON object whose members keep their order and the bytes they were written in.

use std::fmt;

use agent_core::RawJson;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An object of a file that a person wrote.
#[derive(Debug, Default)]
pub(super) struct Object(Vec<(String, Member)>);

/// A member: as it was, or taken apart to be changed.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Member {
    Raw(RawJson),
    Object(Object),
    List(Vec<RawJson>),
}

impl Object {
    /// The object under this name, an empty one where there is none.
    pub(super) fn object(&self, name: &str) -> serde_json::Result<Object> {
        self.raw(name).map_or(Ok(Object::default()), |raw| raw.to())
    }

    /// The list under this name, an empty one where there is none.
    pub(super) fn list(&self, name: &str) -> serde_json::Result<Vec<RawJson>> {
        self.raw(name).map_or(Ok(Vec::new()), |raw| raw.to())
    }

    /// Puts a member in its place, or behind all others.
    pub(super) fn put(&mut self, name: &str, member: Member) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, place)) => *place = member,
            None => self.0.push((name.to_owned(), member)),
        }
    }

    fn raw(&self, name: &str) -> Option<&RawJson> {
        self.0.iter().find(|(known, _)| known == name).and_then(|(_, member)| match member {
            Member::Raw(raw) => Some(raw),
            Member::Object(_) | Member::List(_) => None,
        })
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, member)| (name, member)))
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Object;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
        let mut members = Vec::new();
        while let Some((name, raw)) = map.next_entry()? {
            members.push((name, Member::Raw(raw)));
        }
        Ok(Object(members))
    }
}
