//! A JSON text as it would be spelled without choices, so that no rule is escaped by another spelling.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

/// What a JSON text says, whatever its white space and escapes.
#[derive(Debug, Default)]
pub(super) struct Plain {
    /// The text without white space between values, and with no escape that is not needed.
    pub(super) text: String,
    /// Every string in it, keys included, as it reads.
    pub(super) strings: Vec<String>,
}

impl Plain {
    /// `None` where it is no JSON, or nested too deep to be read.
    pub(super) fn of(json: &str) -> Option<Self> {
        let mut plain = Self::default();
        let mut reader = serde_json::Deserializer::from_str(json);
        Writes(&mut plain).deserialize(&mut reader).ok()?;
        reader.end().ok()?;
        Some(plain)
    }

    fn string(&mut self, text: &str) {
        self.text.push_str(&serde_json::Value::from(text).to_string());
        self.strings.push(text.to_owned());
    }
}

/// Writes each value as it is read. A tree would lose a key that comes twice.
struct Writes<'p>(&'p mut Plain);

impl<'de> DeserializeSeed<'de> for Writes<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Writes<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.0.text.push_str("null");
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.0.text.push_str(&value.to_string());
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.0.text.push_str(&value.to_string());
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.0.text.push_str(&value.to_string());
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.0.text.push_str(&value.to_string());
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        self.0.string(value);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut gap = '[';
        loop {
            self.0.text.push(gap);
            gap = ',';
            if items.next_element_seed(Writes(self.0))?.is_none() {
                break;
            }
        }
        close(&mut self.0.text, '[', ']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let mut gap = '{';
        loop {
            self.0.text.push(gap);
            gap = ',';
            if fields.next_key_seed(Writes(self.0))?.is_none() {
                break;
            }
            self.0.text.push(':');
            fields.next_value_seed(Writes(self.0))?;
        }
        close(&mut self.0.text, '{', '}');
        Ok(())
    }
}

/// Takes back the comma that waits for another value.
fn close(text: &mut String, open: char, end: char) {
    if !text.ends_with(open) {
        text.pop();
    }
    text.push(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings() {
        let check = |json: &str, text: &str, strings: &[&str]| {
            let plain = Plain::of(json).unwrap();
            assert_eq!(
                (plain.text.as_str(), plain.strings.as_slice()),
                (text, strings.iter().map(ToString::to_string).collect::<Vec<_>>().as_slice()),
                "{json}"
            );
        };
        check(
            r#"{ "\u0063url" : [ 1 , -2, 1.5, true, null, {}, [] ] }"#,
            r#"{"curl":[1,-2,1.5,true,null,{},[]]}"#,
            &["curl"],
        );
        check(r#"{"a":"x\/y","a":"\"[,"}"#, r#"{"a":"x/y","a":"\"[,"}"#, &["a", "x/y", "a", "\"[,"]);
        check(r#"["[",["{"]]"#, r#"["[",["{"]]"#, &["[", "{"]);
        check("{}", "{}", &[]);
        assert!(Plain::of("git status").is_none());
        assert!(Plain::of(&"[".repeat(400)).is_none());
    }
}
