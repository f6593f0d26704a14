//! Gemini's chunks and bodies, decoded into our events.

use std::borrow::Cow;

use agent_core::{
    AssistantPart, CallId, Finish, FinishKind, ModelError, ModelErrorKind, ModelEvent, Origin, ProviderPart,
    RawJson,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::block::{Block, Kind, OpenCall};
use super::part::{Beside, Part, Said, WireCall, owned};
use super::usage::UsageFold;
use crate::classify::{QUOTE, ResponseHead, classify, excerpt, protocol};
use crate::names::ToolNames;
use crate::wire::json::{Fields, Loose, LooseInt, object, received};
use crate::wire::{Codec, Dialect, End, Json, Progress};

/// The state of one answer.
#[derive(Debug)]
pub(crate) struct GenerateCodec {
    names: ToolNames,
    provider: String,
    started: bool,
    open: Option<Block>,
    /// The block that comes next.
    index: u32,
    calls: usize,
    usage: UsageFold,
    finish: Option<String>,
    /// Whether the provider's own tool was called and has not answered.
    awaits_tool: bool,
    /// Why the prompt was refused.
    block: Option<String>,
    /// What the provider says about the whole answer; given at its end.
    metadata: Vec<(&'static str, String)>,
}

#[derive(Deserialize)]
struct WireChunk<'a> {
    #[serde(borrow, default)]
    candidates: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "promptFeedback")]
    feedback: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "usageMetadata")]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "modelVersion")]
    model: Loose<'a>,
    #[serde(borrow, default, rename = "responseId")]
    id: Loose<'a>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireCandidate<'a> {
    #[serde(default)]
    index: LooseInt,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "finishReason")]
    reason: Loose<'a>,
    #[serde(borrow, default, rename = "finishMessage")]
    message: Loose<'a>,
}

#[derive(Deserialize)]
struct WireContent<'a> {
    #[serde(borrow, default)]
    parts: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireFeedback<'a> {
    #[serde(borrow, default, rename = "blockReason")]
    reason: Loose<'a>,
}

impl GenerateCodec {
    pub(crate) fn new(dialect: &Dialect, names: ToolNames) -> Self {
        Self {
            names,
            provider: dialect.provider.clone(),
            started: false,
            open: None,
            index: 0,
            calls: 0,
            usage: UsageFold::default(),
            finish: None,
            awaits_tool: false,
            block: None,
            metadata: Vec::new(),
        }
    }

    fn chunk(&mut self, json: &Json<'_>, out: &mut Vec<ModelEvent>) -> Result<Progress, ModelError> {
        let chunk: WireChunk<'_> =
            object(json.text).map_err(|_| protocol("a piece of the answer is no object", json.text))?;
        if chunk.error.is_some() {
            return Err(classify(&ResponseHead::unknown(), json.text.as_bytes()));
        }
        if chunk.candidates.is_none() && chunk.feedback.is_none() && chunk.usage.is_none() {
            return Ok(Progress::Unknown);
        }
        self.start(&chunk, out);
        if chunk.usage.is_some_and(|raw| self.usage.take(raw)) {
            out.push(ModelEvent::Usage(self.usage.usage()));
        }
        if let Some(feedback) = chunk.feedback {
            let feedback: WireFeedback<'_> = object(feedback.get())
                .map_err(|_| protocol("the feedback on the prompt is no object", feedback.get()))?;
            self.block = said(&feedback.reason, "BLOCK_REASON_UNSPECIFIED").or(self.block.take());
        }
        if let Some(list) = chunk.candidates {
            self.candidates(list, json.lone, out)?;
        }
        Ok(Progress::More)
    }

    fn start(&mut self, chunk: &WireChunk<'_>, out: &mut Vec<ModelEvent>) {
        if !std::mem::replace(&mut self.started, true) {
            let message = Some(chunk.id.as_str().to_owned()).filter(|id| !id.is_empty());
            out.push(ModelEvent::Start(Origin {
                model: chunk.model.as_str().to_owned(),
                message,
                asked: None,
            }));
        }
    }

    /// Only the first of several answers is read: the harness has one conversation.
    fn candidates(
        &mut self,
        list: &RawValue,
        lone: bool,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let all: Vec<&RawValue> = serde_json::from_str(list.get())
            .map_err(|_| protocol("the candidates are no list", list.get()))?;
        for raw in all {
            let candidate: WireCandidate<'_> =
                object(raw.get()).map_err(|_| protocol("a candidate is no object", raw.get()))?;
            if candidate.index.0.unwrap_or(0) > 0 {
                tracing::warn!(
                    index = candidate.index.0,
                    "a further candidate is not read; ask for one only"
                );
                continue;
            }
            self.content(candidate.content, lone, out)?;
            self.about(raw, lone);
            if let Some(reason) = said(&candidate.reason, "FINISH_REASON_UNSPECIFIED") {
                check_reason(&reason, candidate.message.as_str())?;
                self.finish = Some(reason);
            }
        }
        Ok(())
    }

    fn content(
        &mut self,
        raw: Option<&RawValue>,
        lone: bool,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let Some(raw) = raw else { return Ok(()) };
        let content: WireContent<'_> =
            object(raw.get()).map_err(|_| protocol("the content is no object", raw.get()))?;
        let Some(list) = content.parts else { return Ok(()) };
        let parts: Vec<&RawValue> =
            serde_json::from_str(list.get()).map_err(|_| protocol("the parts are no list", list.get()))?;
        for (position, raw) in parts.into_iter().enumerate() {
            // A part goes on in the first one of the next chunk only.
            if position > 0 && !self.open.as_ref().is_some_and(Block::is_call) {
                self.close(out)?;
            }
            let part = Part::read(raw).map_err(|_| protocol("a part cannot be read", raw.get()))?;
            self.part(part, raw, lone, out)?;
        }
        Ok(())
    }

    fn part(
        &mut self,
        part: Part<'_>,
        raw: &RawValue,
        lone: bool,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        match part {
            Part::Empty => {}
            Part::Text(words) => self.words(Kind::text(), &words, lone, out)?,
            Part::Thought(words) => self.words(Kind::thought(), &words, lone, out)?,
            Part::Call { call, beside } => self.call(&call, &beside, lone, out)?,
            Part::Result(_) => self.other("functionResponse", raw, lone, out)?,
            Part::Other { kind } => self.other(&kind, raw, lone, out)?,
        }
        Ok(())
    }

    /// More came after a finish reason: that was the end of a round with the provider's own tools, and there will be
    /// another one.
    fn goes_on(&mut self) {
        self.finish = None;
    }

    /// Words of one kind go on until something stands beside them, which ends their part.
    fn words(
        &mut self,
        kind: Kind,
        said: &Said<'_>,
        lone: bool,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        if said.text.is_empty() && said.beside.is_empty() {
            return Ok(());
        }
        if !said.text.is_empty() {
            self.goes_on();
        }
        if !self.open.as_ref().is_some_and(|open| open.is_like(&kind)) {
            self.close(out)?;
        }
        let block = self.open.get_or_insert_with(|| Block::new(self.index, kind));
        block.say(&said.text, lone, out);
        if said.beside.is_empty() {
            return Ok(());
        }
        block.keep(owned(&said.beside, lone));
        self.close(out)
    }

    fn call(
        &mut self,
        wire: &WireCall<'_>,
        beside: &Beside<'_>,
        lone: bool,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        if !self.open.as_ref().is_some_and(|open| open.goes_on_in(wire)) {
            self.close(out)?;
            if wire.is_blank() && beside.is_empty() {
                return Ok(());
            }
            self.goes_on();
            let call = self.new_call(wire);
            self.open = Some(Block::new(self.index, Kind::Call(call)));
        }
        let Some(block) = &mut self.open else { return Ok(()) };
        block.keep(owned(beside, lone));
        block.fill(wire, lone, out);
        if wire.continues() { Ok(()) } else { self.close(out) }
    }

    fn new_call(&mut self, wire: &WireCall<'_>) -> OpenCall {
        let own = CallId::new(wire.id.as_str()).ok();
        let id = own.clone().unwrap_or_else(|| CallId::positional(self.calls));
        self.calls += 1;
        OpenCall::new(id, own.is_some(), self.names.real(wire.name.as_str()), wire.name.as_str())
    }

    /// What only the provider understands, as it came.
    fn other(
        &mut self,
        kind: &str,
        raw: &RawValue,
        lone: bool,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        self.close(out)?;
        self.goes_on();
        self.awaits_tool = matches!(kind, "executableCode" | "toolCall");
        self.index = self.index.saturating_add(1);
        out.push(self.provider_part(kind, received(raw.get(), lone))?);
        Ok(())
    }

    fn provider_part(&self, kind: &str, raw: String) -> Result<ModelEvent, ModelError> {
        let raw = RawJson::parse(raw.as_str()).map_err(|_| protocol("a part cannot be kept", &raw))?;
        let part = ProviderPart { provider: self.provider.clone(), kind: kind.to_owned(), raw };
        Ok(ModelEvent::Part(AssistantPart::Provider(part)))
    }

    /// Keeps what is said about the whole answer: sources, citations, probabilities. Repetitions are none.
    fn about(&mut self, candidate: &RawValue, lone: bool) {
        let fields = Fields::read(candidate.get()).unwrap_or_default();
        for (key, raw) in fields.0.iter().filter(|(_, raw)| !matches!(raw.get(), "null" | "{}" | "[]")) {
            let Some(kind) = METADATA.iter().find(|kind| *kind == key) else { continue };
            let raw = received(raw.get(), lone);
            if !self.metadata.iter().any(|(known, old)| known == kind && *old == raw) {
                self.metadata.push((kind, raw));
            }
        }
    }

    fn close(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let Some(block) = self.open.take() else { return Ok(()) };
        self.index = self.index.saturating_add(1);
        let was_cut = self.finish.as_deref().is_some_and(|raw| finish_kind(raw) == FinishKind::Length);
        block.close(&self.provider, was_cut, out)
    }

    fn complete(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        self.close(out)?;
        for (kind, raw) in std::mem::take(&mut self.metadata) {
            out.push(self.provider_part(kind, format!("{{\"{kind}\":{raw}}}"))?);
        }
        let blocked = self.block.take();
        let raw = self.finish.clone().or_else(|| blocked.clone()).unwrap_or_default();
        let mut kind = finish_kind(&raw);
        if blocked.is_some() {
            kind = FinishKind::ContentFilter;
        } else if kind == FinishKind::Stop && self.calls > 0 {
            kind = FinishKind::ToolCalls;
        }
        out.push(ModelEvent::Finish(Finish { kind, raw }));
        Ok(())
    }
}

impl Codec for GenerateCodec {
    fn event(&mut self, _: &str, json: &Json<'_>, out: &mut Vec<ModelEvent>) -> Result<Progress, ModelError> {
        self.chunk(json, out)
    }

    /// A whole answer, or the list of pieces that a stream without events is.
    fn body(&mut self, json: &Json<'_>, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let pieces: Vec<&RawValue> = match json.text.trim_start().starts_with('[') {
            true => serde_json::from_str(json.text).unwrap_or_default(),
            false => Vec::from_iter(serde_json::from_str::<&RawValue>(json.text).ok()),
        };
        let mut is_answer = false;
        for piece in pieces {
            is_answer |= self.chunk(&Json { text: piece.get(), lone: json.lone }, out)? == Progress::More;
        }
        if !is_answer {
            return Err(protocol("the answer has no candidates", json.text));
        }
        self.complete(out)
    }

    /// A finish reason is no end: the provider's own tools go on after one. The end is where the bytes end, unless
    /// such a tool has not answered.
    fn end(&mut self, _: End, out: &mut Vec<ModelEvent>) -> Result<Progress, ModelError> {
        let is_over = self.finish.as_deref().is_some_and(|raw| raw != "STOP" || !self.awaits_tool);
        if !is_over && self.block.is_none() {
            return Ok(Progress::More);
        }
        self.complete(out)?;
        Ok(Progress::Complete)
    }

    fn abandon(&mut self, _: &mut Vec<ModelEvent>) {}
}

/// A word that says something.
fn said(word: &Loose<'_>, nothing: &str) -> Option<String> {
    word.0.as_deref().filter(|word| !word.is_empty() && *word != nothing).map(Cow::from).map(Cow::into_owned)
}

/// Refuses an answer whose call its own provider could not read: nothing of it can be used, and it is rolled anew.
///
/// To end the turn with it would look as if the model had nothing more to say. Where a signature is missing, the
/// same request fails again.
fn check_reason(reason: &str, message: &str) -> Result<(), ModelError> {
    let retryable = match reason {
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "MALFORMED_RESPONSE" => true,
        "MISSING_THOUGHT_SIGNATURE" => false,
        _ => return Ok(()),
    };
    let hint = match retryable {
        true => {
            "send the request again; if it stays, simplify the schemas of the tools or raise the temperature"
        }
        false => "the history lacks the signature of a call; keep answers of this provider as they came",
    };
    let kind = if retryable { ModelErrorKind::Protocol } else { ModelErrorKind::InvalidRequest };
    let words = excerpt(message, QUOTE);
    let words = if words.is_empty() { String::new() } else { format!(" ({words})") };
    let error = ModelError::new(kind, format!("the answer ended with {reason}{words}: {hint}"));
    Err(ModelError { retryable, ..error })
}

fn finish_kind(raw: &str) -> FinishKind {
    let known = KINDS.iter().find(|(word, _)| *word == raw);
    known.map_or(FinishKind::Other, |(_, kind)| *kind)
}

const KINDS: &[(&str, FinishKind)] = &[
    ("STOP", FinishKind::Stop),
    ("MAX_TOKENS", FinishKind::Length),
    // The limit of one request; what follows is behind a token of the provider, which is kept.
    ("CONTINUATION", FinishKind::Length),
    ("SAFETY", FinishKind::ContentFilter),
    ("RECITATION", FinishKind::ContentFilter),
    ("LANGUAGE", FinishKind::ContentFilter),
    ("BLOCKLIST", FinishKind::ContentFilter),
    ("PROHIBITED_CONTENT", FinishKind::ContentFilter),
    ("SPII", FinishKind::ContentFilter),
    ("IMAGE_SAFETY", FinishKind::ContentFilter),
    ("IMAGE_PROHIBITED_CONTENT", FinishKind::ContentFilter),
    ("IMAGE_RECITATION", FinishKind::ContentFilter),
    ("MODEL_ARMOR", FinishKind::ContentFilter),
    ("ESCALATION", FinishKind::ContentFilter),
    ("PUP_LIMITED_DISABLED", FinishKind::ContentFilter),
];

/// What a candidate says about the answer as a whole. It is for readers and never sent back.
pub(crate) const METADATA: &[&str] =
    &["groundingMetadata", "citationMetadata", "urlContextMetadata", "logprobsResult", "continuationToken"];
