//! JSON that travels as the exact bytes it arrived in.

use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// One valid JSON value, kept byte for byte: no key is moved and no number rewritten (requirement M5).
///
/// Signed or model-written JSON must be replayed exactly; parsing it into a tree and writing it again would
/// change `12345678901234567890`, `1.0` or the order of keys. Cloning shares the bytes.
#[derive(Clone)]
pub struct RawJson(Arc<RawValue>);

impl RawJson {
    /// Takes over text that must be one JSON value; surrounding white space is not kept.
    pub fn parse(text: impl Into<String>) -> Result<Self, serde_json::Error> {
        Ok(Self(Arc::from(RawValue::from_string(text.into())?)))
    }

    /// Writes any serialisable value as compact JSON.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        Ok(Self(Arc::from(serde_json::value::to_raw_value(value)?)))
    }

    /// The empty object, which stands for a call without arguments.
    pub fn empty_object() -> Self {
        Self::parse("{}").unwrap_or_else(|_| unreachable!("the empty object is JSON"))
    }

    /// Canonical form of a schema: object keys sorted at every depth, no white space.
    ///
    /// For JSON that *we* write (tool schemas), never for what a model wrote. Numbers that do not fit an
    /// `i64`, `u64` or `f64` exactly are not expected there.
    pub fn canonical(&self) -> Result<Self, serde_json::Error> {
        let value: serde_json::Value = self.to()?;
        Self::of(&value)
    }

    /// The bytes as received.
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// Decodes into a typed value.
    pub fn to<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.0.get())
    }

    /// Whether the value is a JSON object.
    pub fn is_object(&self) -> bool {
        self.get().starts_with('{')
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl fmt::Display for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl AsRef<str> for RawJson {
    fn as_ref(&self) -> &str {
        self.get()
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.get() == other.get()
    }
}

impl Eq for RawJson {}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(|raw| Self(Arc::from(raw)))
    }
}

impl From<Box<RawValue>> for RawJson {
    fn from(raw: Box<RawValue>) -> Self {
        Self(Arc::from(raw))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) {
        let raw = RawJson::parse(text).unwrap();
        assert_eq!(raw.get(), text);
        let again: RawJson = serde_json::from_str(&serde_json::to_string(&raw).unwrap()).unwrap();
        assert_eq!(again.get(), text, "serde keeps the bytes");
        assert_eq!(again, raw);
    }

    #[test]
    fn keeps_bytes_that_a_tree_would_change() {
        check(r#"{"b":1,"a":2}"#);
        check(r#"{"n":12345678901234567890123,"f":1.0,"e":1e2,"s":"\u00e9\ud83d"}"#);
        check(r#"[ 1 , 2 ]"#);
    }

    #[test]
    fn canonical_sorts_at_every_depth() {
        let raw = RawJson::parse(r#"{ "b": {"d":1, "c":2}, "a": [ {"y":1,"x":2} ] }"#).unwrap();
        assert_eq!(raw.canonical().unwrap().get(), r#"{"a":[{"x":2,"y":1}],"b":{"c":2,"d":1}}"#);
    }

    #[test]
    fn refuses_what_is_not_json() {
        assert!(RawJson::parse("{").is_err());
        assert!(RawJson::parse("").is_err());
        assert!(RawJson::parse("{} {}").is_err());
    }
}
