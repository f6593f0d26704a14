//! Text that a provider will accept, and cuts that never split a character.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Text with at least one character that is not white space.
///
/// Invariant: never blank. Providers refuse blank text blocks for ever after one entered the history
/// (requirement M4), so a blank part cannot be built. Nothing else is changed: trailing space and signed text
/// keep their bytes. Clones share them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text(Arc<str>);

/// The beginning of a text that is kept elsewhere: it shares the bytes, unless the text is much longer.
///
/// Invariant: `end` lies between two characters of `text`.
#[derive(Clone, Deserialize)]
#[serde(from = "String")]
pub struct Excerpt {
    text: Arc<str>,
    end: usize,
}

/// A blank text where a [`Text`] is needed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the text is blank; leave the part out, or say what is missing")]
#[non_exhaustive]
pub struct BlankText;

impl Text {
    /// `None` when the text is blank.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        (!text.trim().is_empty()).then(|| Self(text.into()))
    }

    /// The text, or `placeholder` in place of a blank one; a blank placeholder becomes `(empty)`.
    pub fn or(text: impl Into<String>, placeholder: &str) -> Self {
        Self::new(text).or_else(|| Self::new(placeholder)).unwrap_or_else(|| Self("(empty)".into()))
    }

    /// The characters.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The characters, shared.
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

impl Excerpt {
    /// At most the first `most` bytes, cut between two characters. A text of more than twice as many is not kept.
    pub fn of(text: &Arc<str>, most: usize) -> Self {
        let end = floor_boundary(text, most);
        if text.len() > most.saturating_mul(2) {
            return Self { text: Arc::from(&text[..end]), end };
        }
        Self { text: Arc::clone(text), end }
    }

    /// The characters.
    pub fn as_str(&self) -> &str {
        &self.text[..self.end]
    }
}

impl From<String> for Excerpt {
    fn from(text: String) -> Self {
        Self { end: text.len(), text: text.into() }
    }
}

impl Deref for Excerpt {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq for Excerpt {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Excerpt {}

impl PartialEq<str> for Excerpt {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Excerpt {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl fmt::Debug for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl Serialize for Excerpt {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl TryFrom<String> for Text {
    type Error = BlankText;

    fn try_from(text: String) -> Result<Self, BlankText> {
        Self::new(text).ok_or(BlankText)
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        text.0.as_ref().to_owned()
    }
}

/// Read into the one place where it stays.
impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Words)
    }
}

/// Reads a [`Text`].
struct Words;

impl Visitor<'_> for Words {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text that is not blank")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Text, E> {
        if text.trim().is_empty() { Err(E::custom(BlankText)) } else { Ok(Text(text.into())) }
    }
}

/// As the text it is, without a copy.
impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// Words of the harness in a block of their own, which nothing in them can end (requirement P3).
///
/// ```
/// assert_eq!(agent_core::reminder("Mind the tide."), "<system-reminder>\nMind the tide.\n</system-reminder>");
/// ```
pub fn reminder(words: &str) -> String {
    format!(
        "<system-reminder>\n{}\n</system-reminder>",
        words.replace("</system-reminder>", "<\\/system-reminder>")
    )
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The largest index `<= at` that lies between two characters: where a head of at most `at` bytes ends.
pub fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The smallest index `>= at` that lies between two characters: where a tail begins.
pub fn ceil_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_text_cannot_be_built() {
        for blank in ["", " ", "\n\t ", "\u{3000}"] {
            assert!(Text::new(blank).is_none(), "{blank:?}");
            assert!(serde_json::from_str::<Text>(&serde_json::to_string(blank).unwrap()).is_err());
        }
        assert_eq!(Text::new(" x ").unwrap().as_str(), " x ");
        assert_eq!(Text::or("", " ").as_str(), "(empty)");
    }

    #[test]
    fn an_excerpt_shares_what_is_not_much_longer() {
        let check = |text: &str, most: usize, expect: &str, is_shared: bool| {
            let text: Arc<str> = text.into();
            let excerpt = Excerpt::of(&text, most);
            assert_eq!(excerpt.as_str(), expect);
            assert_eq!(Arc::ptr_eq(&excerpt.text, &text), is_shared, "{text}");
            let json = serde_json::to_string(&excerpt).unwrap();
            assert_eq!(json, serde_json::to_string(expect).unwrap());
            assert_eq!(serde_json::from_str::<Excerpt>(&json).unwrap(), excerpt);
        };
        check("whole", 5, "whole", true);
        check("beginning", 5, "begin", true);
        check("aé", 2, "a", true);
        check("much longer", 4, "much", false);
    }

    #[test]
    fn hexadecimal() {
        assert_eq!(hex(&[0, 15, 160, 255]), "000fa0ff");
    }

    proptest::proptest! {
        #[test]
        fn cuts_never_split_a_character(text in "\\PC{0,40}", at in 0usize..200) {
            let (low, high) = (floor_boundary(&text, at), ceil_boundary(&text, at));
            let _ = (&text[..low], &text[high..]);
            proptest::prop_assert!(low <= high && high - low <= 4);
        }
    }
}
