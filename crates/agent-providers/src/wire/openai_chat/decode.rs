//! Chunks and bodies of Chat Completions, decoded into our events.

use agent_core::{
    AssistantPart, Finish, FinishKind, ModelError, ModelErrorKind, ModelEvent, Origin, RawJson,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::block::{Blocks, REFUSAL};
use super::calls::{WireCall, WireFunction};
use super::extras::Extras;
use super::thought::Piece;
use super::usage::UsageFold;
use crate::classify::{ResponseHead, classify, protocol};
use crate::names::ToolNames;
use crate::wire::json::{Fields, Loose, LooseInt, object, received, text_or_raw};
use crate::wire::{Codec, Dialect, End, Json, Progress};

/// The state of one answer.
#[derive(Debug)]
pub(crate) struct ChatCodec {
    is_started: bool,
    blocks: Blocks,
    extras: Extras,
    usage: UsageFold,
    /// The first word for the end that said something.
    finish: Option<String>,
    is_refused: bool,
}

#[derive(Deserialize)]
struct WireChunk<'a> {
    #[serde(borrow, default)]
    id: Loose<'a>,
    #[serde(borrow, default)]
    model: Loose<'a>,
    #[serde(borrow, default)]
    object: Loose<'a>,
    #[serde(borrow, default)]
    choices: Option<&'a RawValue>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    x_groq: Option<&'a RawValue>,
    #[serde(borrow, default)]
    citations: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireChoice<'a> {
    #[serde(default)]
    index: LooseInt,
    #[serde(borrow, default)]
    delta: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    finish_reason: Loose<'a>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireEnvelope<'a> {
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// A piece of the message, or the whole of it.
#[derive(Deserialize)]
pub(super) struct WireSaid<'a> {
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    refusal: Loose<'a>,
    #[serde(borrow, default)]
    reasoning_content: Loose<'a>,
    #[serde(borrow, default)]
    reasoning: Loose<'a>,
    #[serde(borrow, default)]
    reasoning_details: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_calls: Option<&'a RawValue>,
    #[serde(borrow, default)]
    function_call: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WirePart<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Loose<'a>,
    #[serde(borrow, default)]
    text: Loose<'a>,
    #[serde(borrow, default)]
    refusal: Loose<'a>,
    #[serde(borrow, default)]
    thinking: Option<&'a RawValue>,
}

impl ChatCodec {
    pub(crate) fn new(dialect: &Dialect, names: ToolNames) -> Self {
        Self {
            is_started: false,
            blocks: Blocks::new(names, &dialect.provider),
            extras: Extras::default(),
            usage: UsageFold::default(),
            finish: None,
            is_refused: false,
        }
    }

    fn chunk(&mut self, json: &Json<'_>, out: &mut Vec<ModelEvent>) -> Result<Progress, ModelError> {
        let chunk: WireChunk<'_> =
            object(json.text).map_err(|_| protocol("a chunk is no object", json.text))?;
        fail(chunk.error, json.text)?;
        if chunk.object.as_str() == "error" {
            return Err(failure(json.text));
        }
        let envelope = chunk.x_groq.and_then(|raw| object::<WireEnvelope<'_>>(raw.get()).ok());
        let (inner, inner_error) = envelope.map_or((None, None), |inner| (inner.usage, inner.error));
        fail(inner_error, json.text)?;
        let is_ours = chunk.choices.is_some() || chunk.usage.is_some() || inner.is_some();
        if !is_ours && !chunk.object.as_str().starts_with(OBJECT) {
            return Ok(Progress::Unknown);
        }
        let choices = choices(chunk.choices)?;
        self.start(&chunk, !choices.is_empty(), out);
        for choice in choices {
            self.choice(choice, json.lone, out)?;
        }
        if let Some(raw) = chunk.citations {
            self.extras.replace("citations", raw, json.lone);
        }
        for usage in [inner, chunk.usage].into_iter().flatten() {
            self.count(usage, out);
        }
        Ok(Progress::More)
    }

    /// Azure begins with a chunk that says nothing, not even its id.
    fn start(&mut self, chunk: &WireChunk<'_>, has_choices: bool, out: &mut Vec<ModelEvent>) {
        let (id, model) = (chunk.id.as_str(), chunk.model.as_str());
        if self.is_started || !has_choices && id.is_empty() && model.is_empty() {
            return;
        }
        self.is_started = true;
        let message = (!id.is_empty()).then(|| id.to_owned());
        out.push(ModelEvent::Start(Origin { model: model.to_owned(), message, asked: None }));
    }

    fn choice(&mut self, raw: &RawValue, lone: bool, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let choice: WireChoice<'_> =
            object(raw.get()).map_err(|_| protocol("a choice is no object", raw.get()))?;
        if let Some(error) = choice.error.filter(|error| is_said(error.get())) {
            return Err(classify(&ResponseHead::unknown(), format!(r#"{{"error":{error}}}"#).as_bytes()));
        }
        if choice.index.0.unwrap_or(0) > 0 {
            tracing::warn!("a further choice is left out; ask for one answer only");
            return Ok(());
        }
        let said = choice.delta.filter(|raw| raw.get() != "null").or(choice.message);
        if let Some(raw) = said.filter(|raw| raw.get() != "null") {
            self.said(&Json { text: raw.get(), lone }, out)?;
        }
        let word = choice.finish_reason.as_str();
        if self.finish.is_none() && !word.is_empty() {
            self.finish = Some(word.to_owned());
        }
        if let Some(usage) = choice.usage {
            self.count(usage, out);
        }
        Ok(())
    }

    /// Thinking, words, calls: the order in which models give them.
    fn said(&mut self, json: &Json<'_>, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let said: WireSaid<'_> =
            object(json.text).map_err(|_| protocol("a message is no object", json.text))?;
        self.thinking(&said, json.lone, out)?;
        if let Some(content) = said.content {
            self.content(content, json.lone, out)?;
        }
        let refusal = said.refusal.as_str();
        self.is_refused |= !refusal.is_empty();
        self.blocks.text(refusal, json.lone, true, out);
        self.calls(&said, json.lone, out)?;
        if let Some(fields) = Fields::read(json.text) {
            self.extras.take(&fields, KNOWN, json.lone);
        }
        Ok(())
    }

    /// Some providers say the same words twice: in a field, and in items.
    fn thinking(
        &mut self,
        said: &WireSaid<'_>,
        lone: bool,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let mut pieces = Vec::new();
        for raw in list(said.reasoning_details, "the details of thinking are no list")? {
            let piece = Piece::read(raw.get(), lone);
            pieces.push(piece.ok_or_else(|| protocol("an item of thinking is no object", raw.get()))?);
        }
        let itemised: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
        let words = [said.reasoning_content.as_str(), said.reasoning.as_str(), itemised.as_str()];
        let words = words.into_iter().find(|words| !words.is_empty()).unwrap_or_default();
        self.blocks.thought(words, lone, out);
        pieces.into_iter().for_each(|piece| self.blocks.detail(piece));
        Ok(())
    }

    fn content(&mut self, raw: &RawValue, lone: bool, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if !raw.get().starts_with('[') {
            self.blocks.text(&text_or_raw(raw), lone, false, out);
            return Ok(());
        }
        for raw in list(Some(raw), "the content is no list")? {
            let part: WirePart<'_> =
                object(raw.get()).map_err(|_| protocol("a part of the content is no object", raw.get()))?;
            match part.kind.as_str() {
                "text" | "output_text" => self.blocks.text(part.text.as_str(), lone, false, out),
                "refusal" => {
                    self.is_refused = true;
                    self.blocks.text(part.refusal.as_str(), lone, true, out);
                }
                "thinking" => {
                    let words = part.thinking.map(words_of).unwrap_or_default();
                    self.blocks.thought(&words, lone, out);
                }
                kind => match RawJson::parse(received(raw.get(), lone)) {
                    Ok(json) => self.blocks.part(kind, json),
                    Err(_) => return Err(protocol("a part of the content is no JSON", raw.get())),
                },
            }
        }
        Ok(())
    }

    fn calls(
        &mut self,
        said: &WireSaid<'_>,
        lone: bool,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        self.blocks.open_list();
        for raw in list(said.tool_calls, "the calls are no list")? {
            let piece: WireCall<'_> =
                object(raw.get()).map_err(|_| protocol("a call is no object", raw.get()))?;
            self.blocks.call(&piece, raw.get(), lone, out);
        }
        let legacy = said.function_call.filter(|raw| is_said(raw.get()));
        if let Some(raw) = legacy {
            let function: WireFunction<'_> =
                object(raw.get()).map_err(|_| protocol("a call is no object", raw.get()))?;
            self.blocks.call(&WireCall::legacy(function), "{}", lone, out);
        }
        Ok(())
    }

    fn count(&mut self, usage: &RawValue, out: &mut Vec<ModelEvent>) {
        if self.usage.take(usage) {
            out.push(ModelEvent::Usage(self.usage.usage()));
        }
    }

    fn complete(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let raw = self.finish.clone().unwrap_or_default();
        if let Some((_, kind)) = FAILED.iter().find(|(word, _)| *word == raw) {
            let what = format!("the provider stopped with finish_reason {raw:?}; send the request again");
            return Err(ModelError::new(*kind, what));
        }
        let kind = finish_kind(&raw);
        if let Some(data) = self.extras.of_text().and_then(|data| self.blocks.annotate(data)) {
            self.blocks.part("annotations", data);
        }
        for (kind, json) in self.extras.rest() {
            self.blocks.part(&kind, json);
        }
        let was_cut = matches!(kind, FinishKind::Length | FinishKind::ContextWindow);
        self.blocks.finish(was_cut, out);
        let is_open = matches!(kind, FinishKind::Stop | FinishKind::Other);
        let kind = match (self.blocks.has_calls(), self.is_refused) {
            (true, _) if is_open => FinishKind::ToolCalls,
            (false, true) if is_open => FinishKind::Refusal,
            (true | false, _) => kind,
        };
        out.push(ModelEvent::Finish(Finish { kind, raw }));
        Ok(())
    }
}

/// A message of the model's that stands in a request.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) parts: Vec<AssistantPart>,
}

/// Reads a whole message; the input of its calls stays as it is written.
pub(super) fn said(dialect: &Dialect, json: &Json<'_>) -> Result<Said, ModelError> {
    let mut codec = ChatCodec::new(dialect, ToolNames::default());
    codec.blocks = Blocks::recorded(&dialect.provider);
    let mut events = Vec::new();
    codec.said(json, &mut events)?;
    codec.complete(&mut events)?;
    let mut parts = Vec::new();
    for event in events {
        if let ModelEvent::Part(part) = event {
            parts.push(part);
        }
    }
    Ok(Said { parts })
}

impl Codec for ChatCodec {
    fn event(
        &mut self,
        name: &str,
        json: &Json<'_>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<Progress, ModelError> {
        let progress = self.chunk(json, out)?;
        if progress == Progress::Unknown && name == "error" {
            return Err(failure(json.text));
        }
        self.blocks.release(out);
        Ok(progress)
    }

    fn body(&mut self, json: &Json<'_>, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if self.chunk(json, out)? == Progress::Unknown || self.finish.is_none() && self.blocks.is_empty() {
            return Err(protocol("the answer holds no choice", json.text));
        }
        self.complete(out)
    }

    /// A server that says how the model stopped may forget the mark of the end, and the other way round.
    fn end(&mut self, end: End, out: &mut Vec<ModelEvent>) -> Result<Progress, ModelError> {
        let is_whole = match end {
            End::Marked => self.finish.is_some() || !self.blocks.is_empty(),
            End::Bytes => self.finish.is_some(),
        };
        if !is_whole {
            return Ok(Progress::More);
        }
        self.complete(out)?;
        Ok(Progress::Complete)
    }

    fn abandon(&mut self, out: &mut Vec<ModelEvent>) {
        self.blocks.release(out);
    }
}

fn choices(raw: Option<&RawValue>) -> Result<Vec<&RawValue>, ModelError> {
    list(raw, "the choices are no list")
}

fn list<'a>(raw: Option<&'a RawValue>, what: &str) -> Result<Vec<&'a RawValue>, ModelError> {
    let Some(raw) = raw.filter(|raw| raw.get() != "null") else { return Ok(Vec::new()) };
    serde_json::from_str(raw.get()).map_err(|_| protocol(what, raw.get()))
}

/// An error object that stands where an answer should.
fn fail(error: Option<&RawValue>, whole: &str) -> Result<(), ModelError> {
    match error.filter(|error| is_said(error.get())) {
        Some(_) => Err(classify(&ResponseHead::unknown(), whole.as_bytes())),
        None => Ok(()),
    }
}

/// An error whose fields stand bare, without the object around them.
fn failure(bare: &str) -> ModelError {
    classify(&ResponseHead::unknown(), format!(r#"{{"error":{bare}}}"#).as_bytes())
}

fn is_said(raw: &str) -> bool {
    !matches!(raw, "null" | "{}" | "\"\"" | "false")
}

/// Thinking as a text, or as a list of parts with text.
pub(super) fn words_of(raw: &RawValue) -> String {
    let Ok(parts) = serde_json::from_str::<Vec<WirePart<'_>>>(raw.get()) else {
        return text_or_raw(raw).into_owned();
    };
    parts.iter().map(|part| part.text.as_str()).collect()
}

fn finish_kind(raw: &str) -> FinishKind {
    let known = KINDS.iter().find(|(word, _)| *word == raw);
    known.map_or(FinishKind::Other, |(_, kind)| *kind)
}

/// Fields of a message that have a place.
pub(super) const KNOWN: &[&str] = &[
    "role",
    "content",
    REFUSAL,
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "tool_calls",
    "function_call",
];

const OBJECT: &str = "chat.completion";

const KINDS: &[(&str, FinishKind)] = &[
    ("stop", FinishKind::Stop),
    ("eos", FinishKind::Stop),
    ("eos_token", FinishKind::Stop),
    ("end_turn", FinishKind::Stop),
    ("stop_sequence", FinishKind::Stop),
    ("tool_calls", FinishKind::ToolCalls),
    ("function_call", FinishKind::ToolCalls),
    ("tool_use", FinishKind::ToolCalls),
    ("length", FinishKind::Length),
    ("max_tokens", FinishKind::Length),
    ("model_length", FinishKind::Length),
    ("content_filter", FinishKind::ContentFilter),
    ("safety", FinishKind::ContentFilter),
    ("refusal", FinishKind::Refusal),
    ("pause_turn", FinishKind::Pause),
    ("model_context_window_exceeded", FinishKind::ContextWindow),
];

/// Words for an answer that the provider could not give.
const FAILED: &[(&str, ModelErrorKind)] =
    &[("error", ModelErrorKind::Transport), ("insufficient_system_resource", ModelErrorKind::Overloaded)];
