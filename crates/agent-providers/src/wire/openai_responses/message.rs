//! The words of a message item: what was streamed and what was said to be complete made one, and written again.

use agent_core::{AssistantPart, AssistantText, ProviderData, Text};
use serde_json::value::RawValue;

use super::item::{Watch, rest_of};
use super::segment::{ID, fields};
use super::shape::{OUTPUT_TEXT, PART, REFUSAL, Words, data_of, object_of, words};
use crate::wire::json::{Fields, quoted, sound, text_or_raw};

/// What was streamed of one part of a message.
#[derive(Debug)]
pub(super) struct Streamed<'p> {
    pub(super) at: u64,
    pub(super) block: u32,
    pub(super) text: &'p str,
    pub(super) is_refusal: bool,
    pub(super) annotations: &'p [String],
}

/// A message of the model while it is written.
#[derive(Debug, Default)]
pub(super) struct Message {
    parts: Vec<Said>,
    /// Its fields besides its content.
    fields: Vec<(String, String)>,
}

/// Words while they are written.
#[derive(Debug)]
struct Said {
    text: String,
    /// Further fields of theirs, as JSON; empty without any.
    part: String,
}

impl Message {
    /// A message with the fields that came with its words.
    pub(super) fn of(data: Option<&ProviderData>, has_ids: bool) -> Self {
        let fields = fields(data, |key| key != PART && (has_ids || !OF_ITEM.contains(&key)));
        Self { parts: Vec::new(), fields }
    }

    /// What is known of the part that words came in: JSON, or nothing.
    pub(super) fn part_of(data: Option<&ProviderData>) -> String {
        fields(data, |key| key == PART).pop().map(|(_, raw)| raw).unwrap_or_default()
    }

    /// Whether words of both are words of one message: only an item that is known as one has several parts.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.is_item() && self.fields == other.fields
    }

    /// Appends words; `part` are further fields of theirs, as JSON.
    pub(super) fn push(&mut self, text: &str, part: &str) {
        self.parts.push(Said { text: text.to_owned(), part: sound(part).into_owned() });
    }

    /// Words of which nothing else is known are a plain text: a list of parts is taken for an item of the provider's,
    /// which has an id.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        let content = match &self.parts[..] {
            [Said { text, part }] if part.is_empty() && !self.is_item() => quoted(text),
            parts => format!("[{}]", parts.iter().map(Said::json).collect::<Vec<_>>().join(",")),
        };
        let mut out = format!(r#"{{"type":"message","role":"assistant","content":{content}"#);
        for (key, raw) in self.fields {
            out.push_str(&format!(",{}:{raw}", quoted(&key)));
        }
        out.push('}');
        out.into_bytes()
    }

    fn is_item(&self) -> bool {
        self.fields.iter().any(|(key, _)| OF_ITEM.contains(&key.as_str()))
    }
}

impl Said {
    /// A part of a list; the kind of plain words need not be known.
    fn json(&self) -> String {
        let given = Fields::read(&self.part).unwrap_or_default();
        let kind = given.get("type").map(text_or_raw).unwrap_or(OUTPUT_TEXT.into());
        let key = if kind == REFUSAL { REFUSAL } else { "text" };
        let mut out = format!(r#"{{"type":{},"{key}":{}"#, quoted(&kind), quoted(&self.text));
        for (key, raw) in given.0.iter().filter(|(key, _)| key != "type") {
            out.push_str(&format!(",{}:{}", quoted(key), raw.get()));
        }
        out.push('}');
        out
    }
}

/// The parts of a message; `None` when its content holds anything but words. `fields` are those of the whole item.
pub(super) fn message(
    content: Option<&RawValue>,
    streamed: Vec<Streamed<'_>>,
    fields: &[(String, String)],
    watch: &mut Watch<'_>,
) -> Option<Vec<AssistantPart>> {
    let mut said: Vec<(Words, Option<u32>)> =
        words(content, watch.lone)?.into_iter().map(|words| (words, None)).collect();
    for piece in streamed {
        let at = usize::try_from(piece.at).unwrap_or(usize::MAX);
        match said.get_mut(at) {
            Some((words, block)) => {
                let rest = rest_of(piece.text, &words.text).to_owned();
                watch.text(piece.block, &rest);
                words.text = format!("{}{rest}", piece.text);
                *block = Some(piece.block);
                annotate(words, &piece);
            }
            // The complete item does not say what was streamed.
            None => {
                let mut words =
                    Words { text: piece.text.to_owned(), is_refusal: piece.is_refusal, fields: Vec::new() };
                annotate(&mut words, &piece);
                said.push((words, Some(piece.block)));
            }
        }
    }
    let parts = said.into_iter().filter_map(|(words, block)| {
        if block.is_none() {
            let index = watch.next_block();
            watch.text(index, &words.text);
        }
        part(words, fields, watch.provider)
    });
    Some(parts.collect())
}

/// Sources that the complete part does not name.
fn annotate(words: &mut Words, piece: &Streamed<'_>) {
    if !piece.annotations.is_empty() && words.fields.iter().all(|(key, _)| key != ANNOTATIONS) {
        words.fields.push((ANNOTATIONS.to_owned(), format!("[{}]", piece.annotations.join(","))));
    }
}

/// Words as a part; blank ones are none.
fn part(words: Words, fields: &[(String, String)], provider: &str) -> Option<AssistantPart> {
    let text = Text::new(words.text)?;
    let mut own = words.fields;
    if words.is_refusal && own.iter().all(|(key, _)| key != "type") {
        own.push(("type".to_owned(), quoted(REFUSAL)));
    }
    let mut all = fields.to_vec();
    if !own.is_empty() {
        all.push((PART.to_owned(), object_of(&own)));
    }
    Some(AssistantPart::Text(AssistantText { text, data: data_of(provider, &all) }))
}

const ANNOTATIONS: &str = "annotations";
/// Fields that only a message of the provider's own has.
const OF_ITEM: [&str; 2] = [ID, "status"];
