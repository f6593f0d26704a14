//! Anthropic's events and bodies, decoded into ours.

use agent_core::{AssistantPart, Finish, FinishKind, ModelError, ModelEvent, Origin, ToolCall, ToolInput};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::block::{Block, Closed, Done, PlainCall, Reading};
use super::usage::UsageFold;
use super::usual::{is_bare, usual_delta, usual_stop};
use crate::classify::{ResponseHead, classify, protocol};
use crate::names::ToolNames;
use crate::wire::json::{Loose, LooseInt};
use crate::wire::{Codec, Dialect, Json, Progress};

/// The state of one answer.
#[derive(Debug)]
pub(crate) struct MessagesCodec {
    names: ToolNames,
    provider: String,
    started: Option<String>,
    open: Vec<Block>,
    /// The block that the last event began, as it was said.
    begun: Option<(u32, String)>,
    /// Parts behind a call whose input is not complete JSON: whether it was cut is known only from the stop reason.
    /// Invariant: empty, or the first one is such a call.
    held: Vec<Held>,
    calls: usize,
    usage: UsageFold,
    stop: Option<String>,
}

#[derive(Debug)]
enum Held {
    Part(AssistantPart),
    Call(PlainCall),
}

#[derive(Deserialize)]
struct WireEvent<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Loose<'a>,
    #[serde(default)]
    index: LooseInt,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow, default)]
    delta: Option<&'a RawValue>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    context_management: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireMessage<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Loose<'a>,
    #[serde(borrow, default)]
    id: Loose<'a>,
    #[serde(borrow, default)]
    model: Loose<'a>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    stop_reason: Loose<'a>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    context_management: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireStop<'a> {
    #[serde(borrow, default)]
    stop_reason: Loose<'a>,
}

#[derive(Deserialize)]
struct WireManagement<'a> {
    #[serde(borrow, default)]
    applied_edits: Option<Vec<&'a RawValue>>,
}

/// What the provider cleared before the model read it.
#[derive(Deserialize)]
struct WireEdit {
    #[serde(default)]
    cleared_input_tokens: LooseInt,
}

impl MessagesCodec {
    pub(crate) fn new(dialect: &Dialect, names: ToolNames) -> Self {
        Self {
            names,
            provider: dialect.provider.clone(),
            started: None,
            open: Vec::new(),
            begun: None,
            held: Vec::new(),
            calls: 0,
            usage: UsageFold::default(),
            stop: None,
        }
    }

    fn start(
        &mut self,
        message: WireMessage<'_>,
        lone: bool,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let id = message.id.as_str();
        match &self.started {
            Some(started) if started == id => return Ok(()),
            Some(started) => {
                let both = format!("{started} and {id}");
                return Err(protocol("a second answer began before the first one ended", &both));
            }
            None => self.started = Some(id.to_owned()),
        }
        let id = (!id.is_empty()).then(|| id.to_owned());
        out.push(ModelEvent::Start(Origin {
            model: message.model.as_str().to_owned(),
            message: id,
            asked: None,
        }));
        self.count(message.usage, out);
        cleared(message.context_management, out);
        self.content(message.content, lone, out)?;
        self.stopped(message.stop_reason);
        Ok(())
    }

    /// Blocks that arrive whole.
    fn content(
        &mut self,
        list: Option<&RawValue>,
        lone: bool,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let Some(list) = list.map(RawValue::get).filter(|list| *list != "null") else { return Ok(()) };
        let blocks: Vec<&RawValue> =
            serde_json::from_str(list).map_err(|_| protocol("the content is no list of blocks", list))?;
        for (index, raw) in (0..).zip(blocks) {
            self.open(index, &Json { text: raw.get(), lone }, out)?;
            self.close(index, out);
        }
        Ok(())
    }

    fn open(&mut self, index: u32, raw: &Json<'_>, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        self.close(index, out);
        let reading = Reading { provider: &self.provider, names: &self.names, calls: self.calls };
        let block = Block::open(index, raw, reading, out)?;
        self.calls += usize::from(block.is_call());
        self.open.push(block);
        Ok(())
    }

    /// Begins a block. A call that begins twice in a row, in the same words, is one call.
    fn begin(&mut self, index: u32, raw: &Json<'_>, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let again = self.begun.as_ref().is_some_and(|(at, text)| *at == index && text == raw.text);
        if again && self.open.iter().any(|block| block.index == index && block.is_call()) {
            return Ok(());
        }
        self.open(index, raw, out)?;
        self.begun = Some((index, raw.text.to_owned()));
        Ok(())
    }

    fn delta(
        &mut self,
        index: LooseInt,
        raw: &Json<'_>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        let block = match index_of(index) {
            Some(index) => self.open.iter_mut().find(|block| block.index == index),
            None => self.open.last_mut(),
        };
        match block {
            Some(block) => block.take(raw, out),
            None => Err(protocol("a delta belongs to no open block", raw.text)),
        }
    }

    /// Takes an event of the usual shape; `None`, with nothing done, when the general way must be gone.
    fn usual(&mut self, name: &str, json: &Json<'_>, out: &mut Vec<ModelEvent>) -> Option<Progress> {
        match name {
            "content_block_delta" => {
                let delta = usual_delta(json.text)?;
                let block = self.open.iter_mut().find(|block| block.index == delta.index)?;
                block.say(delta.kind, delta.words, json.lone, out).then(|| self.begun = None)?;
            }
            "content_block_stop" => {
                let index = usual_stop(json.text)?;
                self.begun = None;
                self.close(index, out);
            }
            "message_stop" if is_bare(json.text, "message_stop") => {
                self.complete(out);
                return Some(Progress::Complete);
            }
            "ping" if is_bare(json.text, "ping") => {}
            _ => return None,
        }
        Some(Progress::More)
    }

    fn close(&mut self, index: u32, out: &mut Vec<ModelEvent>) {
        let Some(at) = self.open.iter().position(|block| block.index == index) else { return };
        let Closed { done, lost } = self.open.remove(at).close(&self.provider, out);
        if let Some(lost) = lost {
            tracing::warn!(index, error = &lost as &dyn std::error::Error, "a part of the answer is lost");
        }
        match done {
            Done::Nothing => {}
            Done::Part(part) => self.give(part, out),
            Done::Call(call) => {
                let complete = Some(ToolInput::cut(&call.input)).filter(|input| input.json().is_some());
                match complete {
                    Some(input) => self.give(call.judged(input), out),
                    None => self.held.push(Held::Call(call)),
                }
            }
        }
    }

    fn give(&mut self, part: AssistantPart, out: &mut Vec<ModelEvent>) {
        if self.held.is_empty() {
            out.push(ModelEvent::Part(part));
        } else {
            self.held.push(Held::Part(part));
        }
    }

    /// Lets held parts go. Only the last call of an answer can have been cut by the output limit.
    fn release(&mut self, out: &mut Vec<ModelEvent>) {
        let was_cut = matches!(self.stop.as_deref(), Some("max_tokens" | "model_context_window_exceeded"));
        let last = self.held.iter().rposition(|held| match held {
            Held::Call(_) => true,
            Held::Part(part) => part.as_call().is_some(),
        });
        for (at, held) in std::mem::take(&mut self.held).into_iter().enumerate() {
            out.push(ModelEvent::Part(match held {
                Held::Part(part) => part,
                Held::Call(call) if was_cut && Some(at) == last => {
                    let input = ToolInput::cut(&call.input);
                    call.judged(input)
                }
                Held::Call(call) => call.finished(),
            }));
        }
    }

    fn count(&mut self, usage: Option<&RawValue>, out: &mut Vec<ModelEvent>) {
        if usage.is_some_and(|raw| self.usage.take(raw)) {
            out.push(ModelEvent::Usage(self.usage.usage()));
        }
    }

    fn stopped(&mut self, reason: Loose<'_>) {
        if let Some(reason) = reason.0 {
            self.stop = Some(reason.into_owned());
        }
    }

    fn complete(&mut self, out: &mut Vec<ModelEvent>) {
        while let Some(index) = self.open.first().map(|block| block.index) {
            self.close(index, out);
        }
        self.release(out);
        let raw = self.stop.take().unwrap_or_default();
        out.push(ModelEvent::Finish(Finish { kind: finish_kind(&raw), raw }));
    }

    fn next_index(&self) -> u32 {
        self.open.last().map_or(0, |block| block.index.saturating_add(1))
    }
}

impl Codec for MessagesCodec {
    fn event(
        &mut self,
        name: &str,
        json: &Json<'_>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<Progress, ModelError> {
        if let Some(progress) = self.usual(name, json, out) {
            return Ok(progress);
        }
        let event: WireEvent<'_> = serde_json::from_str(json.text)
            .map_err(|_| protocol("an event is not a JSON object", json.text))?;
        let kind = if event.kind.0.is_some() { event.kind.as_str() } else { name };
        match kind {
            "message_start" => self.start(message(text_of(event.message))?, json.lone, out)?,
            "content_block_start" => {
                let index = index_of(event.index).unwrap_or_else(|| self.next_index());
                self.begin(index, &Json { text: text_of(event.content_block), lone: json.lone }, out)?;
            }
            "content_block_delta" => {
                self.begun = None;
                self.delta(event.index, &Json { text: text_of(event.delta), lone: json.lone }, out)?;
            }
            "content_block_stop" => {
                self.begun = None;
                let index = index_of(event.index).or(self.open.last().map(|block| block.index));
                index.into_iter().for_each(|index| self.close(index, out));
            }
            "message_delta" => {
                let stop: WireStop<'_> = serde_json::from_str(text_of(event.delta))
                    .map_err(|_| protocol("a message delta is no object", json.text))?;
                self.stopped(stop.stop_reason);
                self.count(event.usage, out);
                cleared(event.context_management, out);
            }
            "message_stop" => {
                self.complete(out);
                return Ok(Progress::Complete);
            }
            "error" => return Err(classify(&ResponseHead::unknown(), json.text.as_bytes())),
            "ping" => {}
            _ if event.error.is_some() => {
                return Err(classify(&ResponseHead::unknown(), json.text.as_bytes()));
            }
            unknown => {
                tracing::debug!(unknown, "an event of an unknown type is skipped");
                return Ok(Progress::Unknown);
            }
        }
        Ok(Progress::More)
    }

    fn body(&mut self, json: &Json<'_>, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let message = message(json.text)?;
        if message.error.is_some() || message.kind.as_str() == "error" {
            return Err(classify(&ResponseHead::unknown(), json.text.as_bytes()));
        }
        if message.content.is_none() {
            return Err(protocol("the answer is no message", json.text));
        }
        self.start(message, json.lone, out)?;
        self.complete(out);
        Ok(())
    }

    fn abandon(&mut self, out: &mut Vec<ModelEvent>) {
        self.release(out);
    }
}

impl PlainCall {
    /// The call of an answer that was not cut.
    pub(crate) fn finished(self) -> AssistantPart {
        let input = ToolInput::finished(&self.input);
        self.judged(input)
    }

    fn judged(self, input: ToolInput) -> AssistantPart {
        let name = self.name.as_ref().to_owned();
        AssistantPart::ToolCall(ToolCall { id: self.id, name, input, data: self.data })
    }
}

/// Tells what the provider's own edits of the context took out. It is for those who watch, so that an edit of a shape that is
/// not known is no reason to lose the answer.
fn cleared(management: Option<&RawValue>, out: &mut Vec<ModelEvent>) {
    let Some(raw) = management.filter(|raw| raw.get() != "null") else { return };
    let edits = match serde_json::from_str::<WireManagement<'_>>(raw.get()) {
        Ok(management) => management.applied_edits.unwrap_or_default(),
        Err(error) => {
            tracing::warn!(%error, "what the provider edited of the context cannot be read");
            return;
        }
    };
    let tokens = edits.iter().filter_map(|edit| {
        let edit: WireEdit = serde_json::from_str(edit.get()).ok()?;
        edit.cleared_input_tokens.0
    });
    let tokens = tokens.fold(0, u64::saturating_add);
    if tokens > 0 {
        out.push(ModelEvent::Cleared { tokens });
    }
}

fn index_of(index: LooseInt) -> Option<u32> {
    index.0.and_then(|index| u32::try_from(index).ok())
}

fn text_of(raw: Option<&RawValue>) -> &str {
    raw.map_or("{}", RawValue::get)
}

fn message(text: &str) -> Result<WireMessage<'_>, ModelError> {
    serde_json::from_str(text).map_err(|_| protocol("the message is no object", text))
}

fn finish_kind(raw: &str) -> FinishKind {
    let known = KINDS.iter().find(|(word, _)| *word == raw);
    known.map_or(FinishKind::Other, |(_, kind)| *kind)
}

const KINDS: &[(&str, FinishKind)] = &[
    ("end_turn", FinishKind::Stop),
    ("stop_sequence", FinishKind::Stop),
    ("tool_use", FinishKind::ToolCalls),
    ("max_tokens", FinishKind::Length),
    ("model_context_window_exceeded", FinishKind::ContextWindow),
    ("refusal", FinishKind::Refusal),
    ("pause_turn", FinishKind::Pause),
];
