//! Lenient reading of foreign JSON: loose fields, ordered objects, halves of surrogate pairs.

use std::borrow::Cow;
use std::fmt;

use agent_core::RawJson;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A text where one is expected; numbers are written out, everything else counts as absent.
#[derive(Debug, Default)]
pub(crate) struct Loose<'a>(pub(crate) Option<Cow<'a, str>>);

/// A count where one is expected; everything that is none counts as absent.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct LooseInt(pub(crate) Option<u64>);

/// The fields of an object in the order received, each as the bytes received.
#[derive(Debug, Default)]
pub(crate) struct Fields<'a>(pub(crate) Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Loose<'a> {
    pub(crate) fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    pub(crate) fn into_string(self) -> String {
        self.0.unwrap_or_default().into_owned()
    }
}

impl<'a> Fields<'a> {
    pub(crate) fn read(text: &'a str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    pub(crate) fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.0.iter().rev().find(|(name, _)| name == key).map(|(_, raw)| *raw)
    }
}

/// Reads the fields of an object. A list of values in their order, which would do for a struct, is none.
pub(crate) fn object<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, serde_json::Error> {
    if text.trim_start().starts_with('[') {
        return Err(serde::de::Error::invalid_type(Unexpected::Seq, &"an object"));
    }
    serde_json::from_str(text)
}

/// Reads a JSON string, or gives any other value as it is written: some gateways send objects in place of text.
pub(crate) fn text_or_raw(raw: &RawValue) -> Cow<'_, str> {
    match serde_json::from_str::<Loose<'_>>(raw.get()) {
        Ok(Loose(Some(text))) if raw.get().starts_with('"') => text,
        _ if raw.get() == "null" => Cow::Borrowed(""),
        _ => Cow::Borrowed(raw.get()),
    }
}

/// Appends a text, a number or a list of them as compact JSON.
#[expect(clippy::expect_used, reason = "texts and numbers are JSON, and a vector takes every byte")]
pub(crate) fn write<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(out, value).expect("texts and numbers are JSON, and a vector takes every byte");
}

/// A text as JSON.
#[expect(clippy::expect_used, reason = "every text is JSON once it is quoted")]
pub(crate) fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("every text is JSON once it is quoted")
}

/// An object in which `fields` replace those of `start`, in their place or at the end. What is no object stays.
pub(crate) fn replaced(start: &str, fields: &[(String, String)]) -> String {
    let Some(given) = Fields::read(start) else { return start.to_owned() };
    let mut parts: Vec<String> = Vec::new();
    for (key, raw) in &given.0 {
        let new = fields.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str());
        parts.push(format!("{}:{}", quoted(key), new.unwrap_or(raw.get())));
    }
    for (key, value) in fields.iter().filter(|(key, _)| given.get(key).is_none()) {
        parts.push(format!("{}:{value}", quoted(key)));
    }
    format!("{{{}}}", parts.join(","))
}

/// The fields of an object that are not among these and not null, as an object; `None` without any.
pub(crate) fn others(fields: &Fields<'_>, known: &[&str]) -> Option<String> {
    let rest = fields.0.iter().filter(|(key, raw)| !known.contains(&key.as_ref()) && raw.get() != "null");
    let rest: Vec<String> = rest.map(|(key, raw)| format!("{}:{}", quoted(key), raw.get())).collect();
    (!rest.is_empty()).then(|| format!("{{{}}}", rest.join(",")))
}

/// An object without one of its fields; anything else, and an object that has no such field, as it is.
pub(crate) fn without<'a>(object: &'a str, key: &str) -> Cow<'a, str> {
    match Fields::read(object).filter(|fields| fields.get(key).is_some()) {
        Some(fields) => {
            let kept = fields.0.iter().filter(|(name, _)| name != key);
            let kept: Vec<String> =
                kept.map(|(name, raw)| format!("{}:{}", quoted(name), raw.get())).collect();
            Cow::Owned(format!("{{{}}}", kept.join(",")))
        }
        None => Cow::Borrowed(object),
    }
}

/// Makes JSON readable that escapes half a surrogate pair (case M15): each lone half becomes a stand-in character,
/// so that [`Joiner`] can still join halves that two events carry. The second value says whether any was found.
pub(crate) fn mended(json: &str) -> (Cow<'_, str>, bool) {
    if !escapes_a_half(json.as_bytes()) {
        return (Cow::Borrowed(json), false);
    }
    let mut out = String::with_capacity(json.len());
    let (mut rest, mut lone) = (json, false);
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let (taken, stand_in) = match half(escape) {
            Some(high @ 0xD800..=0xDBFF) => match escape.get(6..).and_then(half) {
                Some(0xDC00..=0xDFFF) => (12, None),
                _ => (6, stand_in(high)),
            },
            Some(low) => (6, stand_in(low)),
            None => (2, None),
        };
        let taken = agent_core::ceil_boundary(escape, taken);
        let (escape, after) = escape.split_at(taken);
        match stand_in {
            Some(c) => {
                out.push(c);
                lone = true;
            }
            None => out.push_str(escape),
        }
        rest = after;
    }
    out.push_str(rest);
    (Cow::Owned(out), lone)
}

/// Whether `\ud` or `\uD` stands anywhere: most JSON has no backslash, and is passed over in one sweep.
fn escapes_a_half(mut json: &[u8]) -> bool {
    while let Some(at) = memchr::memchr(b'\\', json) {
        json = json.get(at + 1..).unwrap_or_default();
        if json.starts_with(b"ud") || json.starts_with(b"uD") {
            return true;
        }
    }
    false
}

/// JSON that every reader takes: halves of surrogate pairs become U+FFFD, every other byte stays.
pub(crate) fn sound(json: &str) -> Cow<'_, str> {
    match mended(json) {
        (text, true) => Cow::Owned(without_stand_ins(&text).into_owned()),
        (_, false) => Cow::Borrowed(json),
    }
}

/// A text, or JSON, as it was received, where no more of it comes: halves of surrogate pairs become U+FFFD. `lone` says
/// whether [`mended`] found any.
pub(crate) fn received(text: &str, lone: bool) -> String {
    let mut joiner = Joiner::default();
    joiner.join(text, lone) + joiner.end()
}

/// A text in which stand-ins for halves of surrogate pairs became U+FFFD.
pub(crate) fn without_stand_ins(text: &str) -> Cow<'_, str> {
    if text.chars().all(|c| half_of(c).is_none()) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| if half_of(c).is_some() { '\u{FFFD}' } else { c }).collect())
}

/// Joins halves of surrogate pairs across the texts of one block; a half that stays alone becomes U+FFFD.
#[derive(Debug, Default)]
pub(crate) struct Joiner {
    high: Option<u16>,
}

impl Joiner {
    /// `lone` says whether [`mended`] found halves in the event the text came from.
    pub(crate) fn join<'t>(&mut self, text: impl Into<Cow<'t, str>>, lone: bool) -> String {
        let text = text.into();
        if !lone && self.high.is_none() {
            return text.into_owned();
        }
        let mut out = String::with_capacity(text.len() + 4);
        for c in text.chars() {
            match (self.high.take(), half_of(c).filter(|_| lone)) {
                (Some(high), Some(low)) if low >= 0xDC00 => {
                    out.extend(char::decode_utf16([high, low]).map(|c| c.unwrap_or('\u{FFFD}')));
                }
                (before, half) => {
                    out.extend(before.map(|_| '\u{FFFD}'));
                    match half {
                        Some(high) if high < 0xDC00 => self.high = Some(high),
                        Some(_) => out.push('\u{FFFD}'),
                        None => out.push(c),
                    }
                }
            }
        }
        out
    }

    /// What is left at the end of the block.
    pub(crate) fn end(&mut self) -> &'static str {
        if self.high.take().is_some() { "\u{FFFD}" } else { "" }
    }
}

fn half(escape: &str) -> Option<u16> {
    let hex = escape.strip_prefix("\\u")?.get(..4)?;
    let unit = u16::from_str_radix(hex, 16).ok()?;
    (0xD800..=0xDFFF).contains(&unit).then_some(unit)
}

fn stand_in(half: u16) -> Option<char> {
    char::from_u32(STAND_INS + u32::from(half) - 0xD800)
}

fn half_of(c: char) -> Option<u16> {
    let offset = u32::from(c).checked_sub(STAND_INS)?;
    u16::try_from(offset + 0xD800).ok()
}

/// The last 2048 code points, private use: nobody means them.
const STAND_INS: u32 = 0x10_F800;

impl<'de: 'a, 'a> Deserialize<'de> for Loose<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(deserializer.deserialize_any(ScalarVisitor)?.map(|scalar| match scalar {
            Scalar::Text(text) => text,
            Scalar::Count(n) => Cow::Owned(n.to_string()),
            Scalar::Negative(n) => Cow::Owned(n.to_string()),
            Scalar::Float(n) => Cow::Owned(n.to_string()),
        })))
    }
}

impl<'de> Deserialize<'de> for LooseInt {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Some(scalar) = deserializer.deserialize_any(ScalarVisitor)? else { return Ok(Self(None)) };
        let count = match &scalar {
            Scalar::Text(text) => text.parse().ok().or_else(|| text.parse().ok().and_then(floored)),
            Scalar::Count(n) => Some(*n),
            Scalar::Negative(_) => None,
            Scalar::Float(n) => floored(*n),
        };
        if count.is_none() {
            tracing::debug!(?scalar, "a count that is no whole number of 64 bits is taken as absent");
        }
        Ok(Self(count))
    }
}

/// A text or a number.
#[derive(Debug)]
enum Scalar<'a> {
    Text(Cow<'a, str>),
    Count(u64),
    Negative(i64),
    Float(f64),
}

/// A count that some gateway wrote with a fraction or an exponent; one that 64 bits cannot hold is none.
fn floored(number: f64) -> Option<u64> {
    (0.0..TWO_TO_64).contains(&number).then_some(number as u64)
}

const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Option<Scalar<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Some(Scalar::Text(Cow::Borrowed(text))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(Scalar::Text(Cow::Owned(text.to_owned()))))
    }

    fn visit_u64<E>(self, n: u64) -> Result<Self::Value, E> {
        Ok(Some(Scalar::Count(n)))
    }

    fn visit_i64<E>(self, n: i64) -> Result<Self::Value, E> {
        Ok(Some(Scalar::Negative(n)))
    }

    fn visit_f64<E>(self, n: f64) -> Result<Self::Value, E> {
        Ok(Some(Scalar::Float(n)))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some((key, raw)) = map.next_entry::<Loose<'de>, &'de RawValue>()? {
            fields.push((key.0.unwrap_or_default(), raw));
        }
        Ok(Fields(fields))
    }
}

/// Text that was checked to be JSON, or an object that holds it as text.
pub(crate) fn raw_or_wrapped(text: &str) -> RawJson {
    RawJson::parse(sound(text).as_ref()).unwrap_or_else(|_| wrapped(text))
}

#[expect(clippy::expect_used, reason = "an object with one quoted text is JSON")]
fn wrapped(text: &str) -> RawJson {
    let object = format!("{{\"invalid_json\":{}}}", quoted(text));
    RawJson::parse(object).expect("an object with one quoted text is JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_pairs_join_or_are_replaced() {
        let check = |deltas: &[&str], expect: &str| {
            let mut joiner = Joiner::default();
            let mut text = String::new();
            for delta in deltas {
                let (json, lone) = mended(delta);
                text.push_str(&joiner.join(serde_json::from_str::<String>(&json).unwrap(), lone));
            }
            text.push_str(joiner.end());
            assert_eq!(text, expect);
        };
        check(&[r#""\ud83d\ude00""#], "\u{1F600}");
        check(&[r#""a\ud83d""#, r#""\ude00b""#], "a\u{1F600}b");
        check(&[r#""a\ud83d""#, r#""""#, r#""b""#], "a\u{FFFD}b");
        check(&[r#""\ude00\uD83D""#], "\u{FFFD}\u{FFFD}");
        check(&[r#""\\ud83d""#], r"\ud83d");
        check(&[r#""\ud83d\u0041""#], "\u{FFFD}A");
        let (text, lone) = mended(r"a\ud83d");
        assert_eq!(received(&text, lone), "a\u{FFFD}", "also at the end of a text");
    }

    #[test]
    fn sound_json_keeps_its_bytes() {
        let good = r#"{"b":1.0,"a":"\ud83d\ude00 \\ud83d"}"#;
        assert_eq!(sound(good), good);
        assert_eq!(sound(r#"{"a":"\ud83d"}"#), "{\"a\":\"\u{FFFD}\"}");
        assert_eq!(sound("\"\\\u{e9}\\ud83d\""), "\"\\\u{e9}\u{FFFD}\"", "no cut inside a character");
    }

    #[test]
    fn replaced_fields_keep_their_place() {
        let new = [("input".to_owned(), "{\"q\":1.0}".to_owned())];
        assert_eq!(
            replaced(r#"{"type":"t","input":{},"id":"x"}"#, &new),
            r#"{"type":"t","input":{"q":1.0},"id":"x"}"#
        );
        assert_eq!(replaced(r#"{"type":"t"}"#, &new), r#"{"type":"t","input":{"q":1.0}}"#);
    }

    #[test]
    fn loose_fields_take_what_they_can() {
        let loose = |json: &str| serde_json::from_str::<Loose<'_>>(json).unwrap().into_string();
        assert_eq!(
            (loose("\"a\\n\""), loose("5"), loose("null"), loose("{\"a\":[1]}")),
            ("a\n".into(), "5".into(), String::new(), String::new())
        );
        let count = |json: &str| serde_json::from_str::<LooseInt>(json).unwrap().0;
        assert_eq!(
            (count("7"), count("7.9"), count("\"7\""), count("null"), count("-1")),
            (Some(7), Some(7), Some(7), None, None)
        );
    }
}
