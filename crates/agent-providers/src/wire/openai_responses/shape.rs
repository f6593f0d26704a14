//! Items as they are written: what of them our types name, and what travels beside it.

use agent_core::{CallId, ProviderData, RawJson};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::wire::json::{Fields, Loose, quoted, raw_or_wrapped, received, text_or_raw};

/// The fields of an item that our types name.
#[derive(Debug, Default, Deserialize)]
pub(super) struct WireItem<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) role: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) summary: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) call_id: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) id: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) name: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) output: Option<&'a RawValue>,
}

/// One part of a message: its words, and its fields that our types do not name.
#[derive(Debug, Default)]
pub(super) struct Words {
    pub(super) text: String,
    pub(super) is_refusal: bool,
    /// Names and JSON, in the order received.
    pub(super) fields: Vec<(String, String)>,
}

#[derive(Deserialize)]
struct WirePart<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Loose<'a>,
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    refusal: Option<&'a RawValue>,
}

impl WireItem<'_> {
    /// The type; an item that only names a role is a message.
    pub(super) fn kind(&self) -> &str {
        if self.kind.0.is_none() && self.role.0.is_some() { MESSAGE } else { self.kind.as_str() }
    }

    /// The id of a call: the one its result names, or else that of the item.
    pub(super) fn given_id(&self) -> Option<CallId> {
        let id = if self.call_id.as_str().is_empty() { &self.id } else { &self.call_id };
        CallId::new(id.as_str()).ok()
    }

    /// The text of a call's arguments; objects in its place are taken as they are written.
    pub(super) fn input(&self, lone: bool) -> String {
        self.arguments.map(|raw| received(&text_or_raw(raw), lone)).unwrap_or_default()
    }

    /// The visible thinking of a reasoning item: its summary, or else its content.
    pub(super) fn thinking(&self, lone: bool) -> String {
        let summary = self.summary.map(|raw| texts(raw, lone)).unwrap_or_default();
        if summary.is_empty() {
            self.content.map(|raw| texts(raw, lone)).unwrap_or_default()
        } else {
            summary
        }
    }
}

/// The parts of a message; `None` when one of them is no words.
pub(super) fn words(content: Option<&RawValue>, lone: bool) -> Option<Vec<Words>> {
    let Some(content) = content.filter(|raw| raw.get() != "null") else { return Some(Vec::new()) };
    if content.get().starts_with('"') {
        let text = received(&text_or_raw(content), lone);
        return Some(vec![Words { text, ..Words::default() }]);
    }
    let parts: Vec<&RawValue> = serde_json::from_str(content.get()).ok()?;
    parts.into_iter().map(|raw| part(raw.get(), lone)).collect()
}

fn part(raw: &str, lone: bool) -> Option<Words> {
    let (part, fields) = (serde_json::from_str::<WirePart<'_>>(raw).ok()?, Fields::read(raw)?);
    let is_refusal = part.kind.as_str() == REFUSAL;
    let text = if is_refusal { part.refusal.or(part.text) } else { part.text };
    // Some gateways leave the field out when there is nothing in it.
    let known = is_refusal || part.kind.as_str() == OUTPUT_TEXT;
    if text.is_none() && !known {
        return None;
    }
    let text = text.map(|raw| received(&text_or_raw(raw), lone)).unwrap_or_default();
    // Probabilities are large, and of no use to the model that gave them.
    let is_kept = |key: &str, value: &str| match key {
        "text" | "refusal" | "logprobs" => false,
        "type" => part.kind.as_str() != OUTPUT_TEXT,
        _ => !matches!(value, "null" | "[]"),
    };
    let kept = fields.0.iter().filter(|(key, value)| is_kept(key, value.get()));
    let fields = kept.map(|(key, value)| (key.to_string(), received(value.get(), lone))).collect();
    Some(Words { text, is_refusal, fields })
}

/// The texts of a list of parts, a blank line between them.
fn texts(list: &RawValue, lone: bool) -> String {
    let parts: Vec<WirePart<'_>> = serde_json::from_str(list.get()).unwrap_or_default();
    let texts = parts.iter().filter_map(|part| part.text.map(|raw| received(&text_or_raw(raw), lone)));
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(BETWEEN)
}

/// The fields of an object but those named, and those that say nothing.
pub(super) fn besides(raw: &str, named: &[&str], lone: bool) -> Vec<(String, String)> {
    let fields = Fields::read(raw).unwrap_or_default().0.into_iter();
    let rest = fields.filter(|(key, value)| !named.contains(&key.as_ref()) && value.get() != "null");
    rest.map(|(key, value)| (key.into_owned(), received(value.get(), lone))).collect()
}

/// Fields as an object.
pub(super) fn object_of(fields: &[(String, String)]) -> String {
    let fields: Vec<String> = fields.iter().map(|(key, value)| format!("{}:{value}", quoted(key))).collect();
    format!("{{{}}}", fields.join(","))
}

/// Fields as what a provider attached; none without any.
pub(super) fn data_of(provider: &str, fields: &[(String, String)]) -> Option<ProviderData> {
    let json = || raw_or_wrapped(&object_of(fields));
    (!fields.is_empty()).then(|| ProviderData { provider: provider.to_owned(), json: json() })
}

/// Whether the data of a text says that it declines.
pub(super) fn is_refusal(data: &str) -> bool {
    let part = Fields::read(data).and_then(|fields| fields.get(PART));
    let kind = part.and_then(|part| Fields::read(part.get())?.get("type"));
    kind.is_some_and(|kind| text_or_raw(kind) == REFUSAL)
}

/// An object as received; only stand-ins for halves of surrogate pairs are replaced.
pub(super) fn raw_of(raw: &str, lone: bool) -> RawJson {
    raw_or_wrapped(&received(raw, lone))
}

pub(super) const MESSAGE: &str = "message";
pub(super) const REASONING: &str = "reasoning";
pub(super) const CALL: &str = "function_call";
pub(super) const OUTPUT_TEXT: &str = "output_text";
pub(super) const REFUSAL: &str = "refusal";
/// What of the data of a text belongs to its part, and not to the whole message.
pub(super) const PART: &str = "part";
/// Stands between two parts of thinking.
pub(super) const BETWEEN: &str = "\n\n";
