//! Thinking while it arrives: plain words, or items that go back byte for byte.

use agent_core::{AssistantPart, RawJson, Reasoning, Seal};

use crate::wire::json::{Fields, Joiner, Loose, LooseInt, quoted, received, replaced};

/// A block of thinking.
#[derive(Debug, Default)]
pub(super) struct Thought {
    pub(super) text: String,
    pub(super) joiner: Joiner,
    details: Vec<Detail>,
}

/// One item of `reasoning_details`.
#[derive(Debug)]
struct Detail {
    index: Option<u64>,
    kind: String,
    text: String,
    /// As it began.
    raw: String,
    /// What later pieces said of fields other than its words.
    changes: Vec<(String, String)>,
    has_grown: bool,
}

impl Thought {
    /// Whether items are in it: they may still grow after words began.
    pub(super) fn is_itemised(&self) -> bool {
        !self.details.is_empty()
    }

    /// Lets the item that a piece belongs to grow; `false` when it is not here.
    pub(super) fn grow(&mut self, piece: &Piece) -> bool {
        let Some(key) = text_key(&piece.kind) else {
            return self.details.iter().any(|detail| detail.raw == piece.raw);
        };
        let is_it = |detail: &&mut Detail| detail.kind == piece.kind && detail.index == piece.index;
        let Some(detail) = self.details.iter_mut().rev().find(is_it) else { return false };
        let fields = Fields::read(&piece.raw).unwrap_or_default();
        detail.text.push_str(&piece.text);
        detail.has_grown = true;
        let says = |name: &str, raw: &str| raw != "null" && name != "type" && name != key;
        for (name, raw) in fields.0.iter().filter(|(name, raw)| says(name, raw.get())) {
            detail.changes.retain(|(known, _)| known != name);
            detail.changes.push((name.clone().into_owned(), raw.get().to_owned()));
        }
        true
    }

    /// Adds an item.
    pub(super) fn add(&mut self, piece: Piece) {
        let Piece { index, kind, text, raw } = piece;
        let (changes, has_grown) = (Vec::new(), false);
        self.details.push(Detail { index, kind, text, raw, changes, has_grown });
    }

    /// The block as parts: one for each item, or one of words.
    pub(super) fn close(mut self, provider: &str) -> Vec<AssistantPart> {
        self.text.push_str(self.joiner.end());
        let said: String = self.details.iter().map(|detail| detail.text.as_str()).collect();
        let is_said = said == self.text;
        let mut whole = (!is_said).then_some(self.text);
        if self.details.is_empty() {
            let text = whole.filter(|text| !text.trim().is_empty());
            return text
                .map(|text| AssistantPart::Reasoning(Reasoning { text, seal: None }))
                .into_iter()
                .collect();
        }
        let parts = self.details.into_iter().map(|detail| {
            let raw = RawJson::parse(detail.whole()).ok();
            let text = if is_said { detail.text } else { whole.take().unwrap_or_default() };
            let seal = raw.map(|raw| Seal::Item { provider: provider.to_owned(), raw });
            AssistantPart::Reasoning(Reasoning { text, seal })
        });
        parts.collect()
    }
}

impl Detail {
    /// The item with everything that was said of it; one that came whole has its bytes.
    fn whole(&self) -> String {
        let Some(key) = text_key(&self.kind).filter(|_| self.has_grown) else { return self.raw.clone() };
        let mut changes = self.changes.clone();
        changes.push((key.to_owned(), quoted(&self.text)));
        replaced(&self.raw, &changes)
    }
}

/// A piece of an item as received.
#[derive(Debug)]
pub(super) struct Piece {
    index: Option<u64>,
    kind: String,
    pub(super) text: String,
    raw: String,
}

impl Piece {
    /// `None` when it is no object.
    pub(super) fn read(raw: &str, lone: bool) -> Option<Self> {
        let raw = received(raw, lone);
        let fields = Fields::read(&raw)?;
        let text = |key: &str| -> String {
            let value = fields.get(key).and_then(|raw| serde_json::from_str::<Loose<'_>>(raw.get()).ok());
            value.map(Loose::into_string).unwrap_or_default()
        };
        let index = fields.get("index").and_then(|raw| serde_json::from_str::<LooseInt>(raw.get()).ok());
        let kind = text("type");
        let words = text_key(&kind).map(text).unwrap_or_default();
        Some(Self { index: index.and_then(|index| index.0), kind, text: words, raw: raw.clone() })
    }
}

/// The field of an item that holds its words; items without are whole when they come.
fn text_key(kind: &str) -> Option<&'static str> {
    match kind {
        "reasoning.text" => Some("text"),
        "reasoning.summary" => Some("summary"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts that these pieces of items, and these words, become: text and raw item.
    #[track_caller]
    fn check(words: &str, pieces: &[&str], expect: &[(&str, &str)]) {
        let mut thought = Thought { text: words.to_owned(), ..Thought::default() };
        for raw in pieces {
            let piece = Piece::read(raw, false).unwrap();
            if !thought.grow(&piece) {
                thought.add(piece);
            }
        }
        let parts = thought.close("p").into_iter().map(|part| {
            let AssistantPart::Reasoning(Reasoning { text, seal }) = part else { panic!("{part:?}") };
            let Some(Seal::Item { raw, .. }) = seal else { return (text, String::new()) };
            (text, raw.get().to_owned())
        });
        let parts: Vec<(String, String)> = parts.collect();
        let parts: Vec<(&str, &str)> = parts.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(parts, expect);
    }

    #[test]
    fn items_grow_and_keep_their_bytes() {
        check("hm", &[], &[("hm", "")]);
        check(" \n", &[], &[]);
        let whole = r#"{"type":"reasoning.text", "text":"hm","n":1.0,"signature":"s"}"#;
        check("hm", &[whole], &[("hm", whole)]);
        check(
            "ab",
            &[
                r#"{"type":"reasoning.text","index":0,"text":"a"}"#,
                r#"{"type":"reasoning.text","index":0,"text":"b"}"#,
                r#"{"type":"reasoning.text","index":0,"signature":"s","text":null}"#,
            ],
            &[("ab", r#"{"type":"reasoning.text","index":0,"text":"ab","signature":"s"}"#)],
        );
        let sealed = r#"{"type":"reasoning.encrypted","data":"x","id":"r1","index":1}"#;
        check("hm", &[sealed, sealed], &[("hm", sealed)]);
        check(
            "",
            &[r#"{"type":"reasoning.summary","index":0,"summary":"s"}"#, sealed],
            &[("", r#"{"type":"reasoning.summary","index":0,"summary":"s"}"#), ("", sealed)],
        );
    }
}
