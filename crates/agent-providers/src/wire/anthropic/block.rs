//! One content block while it arrives: its deltas are collected until it is complete.

use std::borrow::Cow;
use std::sync::Arc;

use agent_core::{
    AssistantPart, AssistantText, CallId, ModelError, ModelEvent, ProviderData, ProviderPart, RawJson,
    Reasoning, Seal, Text,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::classify::protocol;
use crate::names::ToolNames;
use crate::wire::Json;
use crate::wire::json::{
    Fields, Joiner, Loose, object, others, quoted, raw_or_wrapped, received, replaced, text_or_raw,
};

/// What a block is read with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading<'r> {
    /// The tag of parts that only this provider understands.
    pub(crate) provider: &'r str,
    pub(crate) names: &'r ToolNames,
    /// Calls before the block, for one that has no id.
    pub(crate) calls: usize,
}

/// A block that has begun.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) index: u32,
    kind: Kind,
    joiner: Joiner,
    lost: Option<Lost>,
}

/// A block that is complete, and what could not be kept of it.
#[derive(Debug)]
pub(crate) struct Closed {
    pub(crate) done: Done,
    pub(crate) lost: Option<Lost>,
}

/// What should go back as it was received and cannot: those who watch are told, since the provider may miss it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Lost {
    #[error("the citations of a text block are no list of JSON values; the words are kept without them")]
    Citations(#[source] serde_json::Error),
    #[error("a {kind:?} block is no JSON once its deltas are put in; it is left out")]
    Block {
        kind: String,
        #[source]
        cause: serde_json::Error,
    },
}

/// What a complete block is.
#[derive(Debug)]
pub(crate) enum Done {
    /// It says nothing: blank text, or thinking that is neither shown nor sealed.
    Nothing,
    Part(AssistantPart),
    /// A call of ours, whose input may have been cut.
    Call(PlainCall),
}

/// A call whose input text is not judged yet.
#[derive(Debug)]
pub(crate) struct PlainCall {
    pub(crate) id: CallId,
    /// All its deltas share it.
    pub(crate) name: Arc<str>,
    pub(crate) input: String,
    /// What else the provider says of it: who called.
    pub(crate) data: Option<ProviderData>,
}

#[derive(Debug)]
enum Kind {
    Text { text: String, citations: Vec<String> },
    Thinking { text: String, signature: String },
    Redacted { data: String },
    Call { call: PlainCall, given: String },
    Other { kind: String, start: String, input: Option<String>, merged: Vec<(String, String)> },
}

#[derive(Deserialize)]
struct WireBlock<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Loose<'a>,
    #[serde(borrow, default)]
    text: Loose<'a>,
    #[serde(borrow, default)]
    thinking: Loose<'a>,
    #[serde(borrow, default)]
    signature: Loose<'a>,
    #[serde(borrow, default)]
    data: Loose<'a>,
    #[serde(borrow, default)]
    id: Loose<'a>,
    #[serde(borrow, default)]
    name: Loose<'a>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    citations: Option<&'a RawValue>,
}

/// A change to a block.
#[derive(Deserialize)]
pub(crate) struct WireDelta<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Loose<'a>,
    #[serde(borrow, default)]
    text: Loose<'a>,
    #[serde(borrow, default)]
    thinking: Loose<'a>,
    #[serde(borrow, default)]
    signature: Loose<'a>,
    #[serde(borrow, default)]
    partial_json: Option<&'a RawValue>,
    #[serde(borrow, default)]
    citation: Option<&'a RawValue>,
}

impl Block {
    /// Opens a block as it is announced, or whole.
    pub(crate) fn open(
        index: u32,
        raw: &Json<'_>,
        reading: Reading<'_>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<Self, ModelError> {
        let block: WireBlock<'_> =
            object(raw.text).map_err(|_| protocol("a content block is no object", raw.text))?;
        let mut lost = None;
        let mut joiner = Joiner::default();
        let kind = match block.kind.as_str() {
            "text" => {
                let citations = block.citations.map_or(Ok(Vec::new()), |list| items(list, raw.lone));
                let citations = citations.unwrap_or_else(|cause| {
                    lost = Some(Lost::Citations(cause));
                    Vec::new()
                });
                Kind::Text { text: joiner.join(block.text.as_str(), raw.lone), citations }
            }
            "thinking" => Kind::Thinking {
                text: joiner.join(block.thinking.as_str(), raw.lone),
                signature: block.signature.into_string(),
            },
            "redacted_thinking" => Kind::Redacted { data: block.data.into_string() },
            "tool_use" => {
                let Reading { provider, names, calls } = reading;
                let id = CallId::new(block.id.into_string()).unwrap_or_else(|_| CallId::positional(calls));
                let (name, data) = (names.real(block.name.as_str()).into(), call_data(raw, provider));
                let call = PlainCall { id, name, input: String::new(), data };
                Kind::Call { call, given: block.input.map(given_input).unwrap_or_default() }
            }
            kind => {
                let start = received(raw.text, raw.lone);
                Kind::Other { kind: kind.to_owned(), start, input: None, merged: Vec::new() }
            }
        };
        let block = Self { index, kind, joiner, lost };
        out.extend(block.opening());
        Ok(block)
    }

    /// Whether it is a call of ours.
    pub(crate) fn is_call(&self) -> bool {
        matches!(self.kind, Kind::Call { .. })
    }

    /// Takes a change and tells it to those who watch.
    pub(crate) fn take(&mut self, raw: &Json<'_>, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let delta: WireDelta<'_> =
            object(raw.text).map_err(|_| protocol("a delta is no object", raw.text))?;
        let (index, kind) = (self.index, delta.kind.as_str());
        let words = match kind {
            "text_delta" => delta.text.0.unwrap_or_default(),
            "thinking_delta" => delta.thinking.0.unwrap_or_default(),
            "input_json_delta" => delta.partial_json.map(text_or_raw).unwrap_or_default(),
            _ => Cow::default(),
        };
        if self.say(kind, words, raw.lone, out) {
            return Ok(());
        }
        match (kind, &mut self.kind) {
            ("citations_delta", Kind::Text { citations, .. }) => {
                citations.extend(delta.citation.map(|citation| received(citation.get(), raw.lone)));
            }
            // A second signature stands for the whole block: it replaces the first.
            ("signature_delta", Kind::Thinking { signature, .. }) => {
                *signature = delta.signature.into_string()
            }
            ("compaction_delta", Kind::Other { start, merged, .. }) => merge(start, merged, raw),
            (unknown, _) => {
                tracing::debug!(index, unknown, "a delta that this block does not take is skipped")
            }
        }
        Ok(())
    }

    /// Takes more words or more input, in a delta of this type; `false` when the block takes none of it.
    pub(crate) fn say(
        &mut self,
        kind: &str,
        words: Cow<'_, str>,
        lone: bool,
        out: &mut Vec<ModelEvent>,
    ) -> bool {
        let index = self.index;
        match (kind, &mut self.kind) {
            ("text_delta", Kind::Text { text, .. }) => {
                let new = self.joiner.join(words, lone);
                append(text, &new);
                push_text(out, index, new);
            }
            ("thinking_delta", Kind::Thinking { text, .. }) => {
                let new = self.joiner.join(words, lone);
                append(text, &new);
                push_reasoning(out, index, new);
            }
            ("input_json_delta", Kind::Call { call, .. }) => {
                let new = self.joiner.join(words, lone);
                append(&mut call.input, &new);
                push_input(out, index, call, new);
            }
            ("input_json_delta", Kind::Other { input, .. }) => {
                let new = self.joiner.join(words, lone);
                input.get_or_insert_default().push_str(&new);
            }
            _ => return false,
        }
        true
    }

    /// The block as a part of the provider's.
    pub(crate) fn close(mut self, provider: &str, out: &mut Vec<ModelEvent>) -> Closed {
        let rest = self.joiner.end();
        let mut lost = self.lost;
        let done = match self.kind {
            Kind::Text { text, citations } => text_part(provider, text + rest, &citations, &mut lost),
            Kind::Thinking { text, signature } => thinking_part(provider, text + rest, signature),
            Kind::Redacted { data } => {
                let seal = Seal::Redacted { provider: provider.to_owned(), data };
                Done::Part(AssistantPart::Reasoning(Reasoning { text: String::new(), seal: Some(seal) }))
            }
            Kind::Call { mut call, given } => {
                call.input.push_str(rest);
                if call.input.trim().is_empty() && !given.is_empty() {
                    push_input(out, self.index, &call, given.clone());
                    call.input = given;
                }
                Done::Call(call)
            }
            Kind::Other { kind, start, input, mut merged } => {
                // Blank input leaves the one the block began with.
                let input = input.map(|text| text + rest).filter(|text| !text.trim().is_empty());
                merged.extend(input.map(|text| ("input".to_owned(), raw_or_wrapped(&text).to_string())));
                let whole = if merged.is_empty() { start } else { replaced(&start, &merged) };
                provider_part(provider, kind, whole).unwrap_or_else(|cause| {
                    lost = Some(cause);
                    Done::Nothing
                })
            }
        };
        Closed { done, lost }
    }

    /// What the beginning already says; a call is announced with no input.
    fn opening(&self) -> Option<ModelEvent> {
        let index = self.index;
        match &self.kind {
            Kind::Text { text, .. } if !text.is_empty() => {
                Some(ModelEvent::TextDelta { index, text: text.clone() })
            }
            Kind::Thinking { text, .. } if !text.is_empty() => {
                Some(ModelEvent::ReasoningDelta { index, text: text.clone() })
            }
            Kind::Call { call, .. } => Some(input_delta(index, call, String::new())),
            Kind::Text { .. } | Kind::Thinking { .. } | Kind::Redacted { .. } | Kind::Other { .. } => None,
        }
    }
}

fn text_part(provider: &str, text: String, citations: &[String], lost: &mut Option<Lost>) -> Done {
    let Some(text) = Text::new(text) else { return Done::Nothing };
    let mut part = AssistantText { text, data: None };
    if !citations.is_empty() {
        match RawJson::parse(format!("[{}]", citations.join(","))) {
            Ok(json) => part.data = Some(ProviderData { provider: provider.to_owned(), json }),
            Err(cause) => *lost = Some(Lost::Citations(cause)),
        }
    }
    Done::Part(AssistantPart::Text(part))
}

fn provider_part(provider: &str, kind: String, whole: String) -> Result<Done, Lost> {
    match RawJson::parse(whole) {
        Ok(raw) => {
            let part = ProviderPart { provider: provider.to_owned(), kind, raw };
            Ok(Done::Part(AssistantPart::Provider(part)))
        }
        Err(cause) => Err(Lost::Block { kind, cause }),
    }
}

fn thinking_part(provider: &str, text: String, signature: String) -> Done {
    let seal =
        (!signature.is_empty()).then(|| Seal::Signature { provider: provider.to_owned(), value: signature });
    if seal.is_none() && text.trim().is_empty() {
        return Done::Nothing;
    }
    Done::Part(AssistantPart::Reasoning(Reasoning { text, seal }))
}

/// The fields of a call that have no other place, as received.
fn call_data(raw: &Json<'_>, provider: &str) -> Option<ProviderData> {
    let rest = others(&Fields::read(raw.text)?, &CALL_FIELDS)?;
    let json = RawJson::parse(received(&rest, raw.lone)).ok()?;
    Some(ProviderData { provider: provider.to_owned(), json })
}

/// Input that stands in the first event of a block; an empty object there only keeps the place.
fn given_input(raw: &RawValue) -> String {
    let text = text_or_raw(raw);
    let blank = text.split_whitespace().collect::<String>();
    if matches!(blank.as_str(), "" | "{}" | "null") { String::new() } else { text.into_owned() }
}

/// A compaction block grows field by field: texts are appended, other values replaced, null says nothing.
fn merge(start: &str, merged: &mut Vec<(String, String)>, raw: &Json<'_>) {
    let (Some(delta), Some(begun)) = (Fields::read(raw.text), Fields::read(start)) else {
        tracing::warn!("a piece of a compaction block cannot be read; it is missing in what is kept");
        return;
    };
    for (key, value) in delta.0.into_iter().filter(|(key, value)| key != "type" && value.get() != "null") {
        let known = merged.iter().position(|(name, _)| *name == key);
        let before = match known.and_then(|at| merged.get(at)) {
            Some((_, value)) => value.clone(),
            None => begun.get(&key).map_or_else(String::new, |raw| raw.get().to_owned()),
        };
        let value = appended(&before, &received(value.get(), raw.lone));
        match known.and_then(|at| merged.get_mut(at)) {
            Some((_, old)) => *old = value,
            None => merged.push((key.into_owned(), value)),
        }
    }
}

fn appended(before: &str, new: &str) -> String {
    match (serde_json::from_str::<String>(before), serde_json::from_str::<String>(new)) {
        (Ok(before), Ok(new)) => quoted(&(before + &new)),
        _ => new.to_owned(),
    }
}

fn items(list: &RawValue, lone: bool) -> Result<Vec<String>, serde_json::Error> {
    let all: Vec<&RawValue> = serde_json::from_str(list.get())?;
    Ok(all.into_iter().map(|raw| received(raw.get(), lone)).collect())
}

/// What a text has room for when it begins to grow.
const ROOM: usize = 512;
/// Fields of a call that are told in other ways; a cache marker is of one request only.
pub(super) const CALL_FIELDS: [&str; 5] = ["type", "id", "name", "input", "cache_control"];

/// Adds a piece to a text that grows by many small ones.
fn append(text: &mut String, piece: &str) {
    if text.capacity() == 0 && !piece.is_empty() {
        text.reserve(ROOM);
    }
    text.push_str(piece);
}

fn push_text(out: &mut Vec<ModelEvent>, index: u32, text: String) {
    if !text.is_empty() {
        out.push(ModelEvent::TextDelta { index, text });
    }
}

fn push_reasoning(out: &mut Vec<ModelEvent>, index: u32, text: String) {
    if !text.is_empty() {
        out.push(ModelEvent::ReasoningDelta { index, text });
    }
}

fn push_input(out: &mut Vec<ModelEvent>, index: u32, call: &PlainCall, json: String) {
    if !json.is_empty() {
        out.push(input_delta(index, call, json));
    }
}

fn input_delta(index: u32, call: &PlainCall, json: String) -> ModelEvent {
    ModelEvent::ToolInputDelta { index, call: call.id.clone(), tool: call.name.clone(), json }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The block, with what the provider said of it later, closes to a part or not, and this is said to be lost.
    #[track_caller]
    fn check(raw: &str, merged: &[(&str, &str)], is_part: bool, expect: &str) {
        let json = Json { text: raw, lone: false };
        let reading = Reading { provider: "p", names: &ToolNames::default(), calls: 0 };
        let mut block = Block::open(0, &json, reading, &mut Vec::new()).unwrap();
        if let Kind::Other { merged: into, .. } = &mut block.kind {
            into.extend(merged.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
        }
        let Closed { done, lost } = block.close("p", &mut Vec::new());
        assert_eq!(matches!(done, Done::Part(_)), is_part, "{done:?}");
        assert_eq!(lost.map(|lost| lost.to_string()).unwrap_or_default(), expect);
    }

    #[test]
    fn what_cannot_go_back_as_received_is_named() {
        const LIST: &str =
            "the citations of a text block are no list of JSON values; the words are kept without them";
        check(r#"{"type":"text","text":"hi","citations":[{"url":"a"}]}"#, &[], true, "");
        check(r#"{"type":"text","text":"hi","citations":null}"#, &[], true, "");
        check(r#"{"type":"text","text":"hi","citations":{"url":"a"}}"#, &[], true, LIST);
        check(r#"{"type":"odd","citations":7}"#, &[("n", "1")], true, "");
        check(
            r#"{"type":"odd","n":1}"#,
            &[("n", "{")],
            false,
            r#"a "odd" block is no JSON once its deltas are put in; it is left out"#,
        );
    }

    #[test]
    fn a_list_is_no_block() {
        let json = Json { text: r#"["text","hi"]"#, lone: false };
        let reading = Reading { provider: "p", names: &ToolNames::default(), calls: 0 };
        assert!(Block::open(0, &json, reading, &mut Vec::new()).is_err());
    }
}
