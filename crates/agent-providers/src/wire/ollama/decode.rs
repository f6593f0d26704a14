//! Ollama's objects, decoded into our events.

use std::sync::Arc;

use agent_core::{
    AssistantPart, CallId, Finish, FinishKind, ModelError, ModelEvent, Origin, ProviderData, ProviderPart,
    RawJson, Reasoning, ToolCall, ToolInput,
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::usage::usage;
use crate::classify::{ResponseHead, classify, protocol};
use crate::names::ToolNames;
use crate::wire::json::{Joiner, Loose, object, quoted, received, text_or_raw};
use crate::wire::{Codec, Dialect, Json, Progress};

/// The state of one answer.
#[derive(Debug)]
pub(crate) struct ChatCodec {
    names: ToolNames,
    provider: String,
    started: bool,
    open: Option<Block>,
    /// The block that comes next.
    index: u32,
    calls: usize,
}

/// Words or thinking while they grow.
#[derive(Debug)]
struct Block {
    is_thought: bool,
    text: String,
    joiner: Joiner,
}

#[derive(Deserialize)]
struct WireChunk<'a> {
    #[serde(borrow, default)]
    model: Loose<'a>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    done: Option<&'a RawValue>,
    #[serde(borrow, default)]
    done_reason: Loose<'a>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct WireMessage<'a> {
    #[serde(borrow, default)]
    pub(super) role: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) thinking: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) tool_calls: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) images: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default, alias = "name")]
    pub(super) tool_name: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) tool_call_id: Loose<'a>,
}

#[derive(Deserialize)]
pub(super) struct WireCall<'a> {
    #[serde(borrow, default)]
    pub(super) id: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) function: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct WireFunction<'a> {
    #[serde(borrow, default)]
    pub(super) name: Loose<'a>,
    #[serde(borrow, default)]
    pub(super) arguments: Option<&'a RawValue>,
}

impl ChatCodec {
    pub(crate) fn new(dialect: &Dialect, names: ToolNames) -> Self {
        let provider = dialect.provider.clone();
        Self { names, provider, started: false, open: None, index: 0, calls: 0 }
    }

    fn chunk(&mut self, json: &Json<'_>, out: &mut Vec<ModelEvent>) -> Result<Progress, ModelError> {
        let chunk: WireChunk<'_> =
            object(json.text).map_err(|_| protocol("a line of the answer is no object", json.text))?;
        if chunk.error.is_some() {
            return Err(classify(&ResponseHead::unknown(), json.text.as_bytes()));
        }
        let is_done = chunk.done.is_some_and(|raw| raw.get() == "true");
        if chunk.message.is_none() && chunk.done.is_none() {
            return Ok(Progress::Unknown);
        }
        if !std::mem::replace(&mut self.started, true) {
            out.push(ModelEvent::Start(Origin {
                model: chunk.model.as_str().to_owned(),
                message: None,
                asked: None,
            }));
        }
        if let Some(raw) = chunk.message {
            let message: WireMessage<'_> =
                object(raw.get()).map_err(|_| protocol("the message is no object", raw.get()))?;
            self.message(&message, json.lone, out)?;
        }
        out.extend(usage(json.text).map(ModelEvent::Usage));
        if !is_done {
            return Ok(Progress::More);
        }
        self.close(out);
        let raw = chunk.done_reason.into_string();
        out.push(ModelEvent::Finish(Finish { kind: self.finish_kind(&raw), raw }));
        Ok(Progress::Complete)
    }

    fn message(
        &mut self,
        message: &WireMessage<'_>,
        lone: bool,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), ModelError> {
        self.words(true, message.thinking.as_str(), lone, out);
        let content = message.content.map(text_or_raw).unwrap_or_default();
        self.words(false, &content, lone, out);
        for raw in list(message.tool_calls)? {
            self.call(raw, lone, out)?;
        }
        let images: Vec<&str> = message.images.iter().flatten().map(|raw| raw.get()).collect();
        if !images.is_empty() {
            self.close(out);
            let raw = RawJson::parse(format!("{{\"images\":[{}]}}", images.join(",")))
                .map_err(|_| protocol("the images of the answer cannot be kept", ""))?;
            let part = ProviderPart { provider: self.provider.clone(), kind: "images".to_owned(), raw };
            out.push(ModelEvent::Part(AssistantPart::Provider(part)));
        }
        Ok(())
    }

    fn words(&mut self, is_thought: bool, words: &str, lone: bool, out: &mut Vec<ModelEvent>) {
        if words.is_empty() {
            return;
        }
        if self.open.as_ref().is_some_and(|open| open.is_thought != is_thought) {
            self.close(out);
        }
        let index = self.index;
        let block = self.open.get_or_insert_with(|| Block {
            is_thought,
            text: String::new(),
            joiner: Joiner::default(),
        });
        let text = block.joiner.join(words, lone);
        block.text.push_str(&text);
        if !text.is_empty() {
            out.push(delta(is_thought, index, text));
        }
    }

    /// A call arrives whole.
    fn call(&mut self, raw: &RawValue, lone: bool, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        self.close(out);
        let call = call(raw, lone, self.calls, &self.provider)
            .map_err(|_| protocol("a call of a tool cannot be read", raw.get()))?;
        let call = ToolCall { name: self.names.real(&call.name), ..call };
        self.calls += 1;
        let (index, id, tool) = (self.index, call.id.clone(), Arc::<str>::from(call.name.as_str()));
        let piece =
            |json: String| ModelEvent::ToolInputDelta { index, call: id.clone(), tool: tool.clone(), json };
        out.push(piece(String::new()));
        out.push(piece(call.input.as_str().to_owned()));
        out.push(ModelEvent::Part(AssistantPart::ToolCall(call)));
        self.index = self.index.saturating_add(1);
        Ok(())
    }

    fn close(&mut self, out: &mut Vec<ModelEvent>) {
        let Some(mut block) = self.open.take() else { return };
        let rest = block.joiner.end();
        if !rest.is_empty() {
            out.push(delta(block.is_thought, self.index, rest.to_owned()));
        }
        self.index = self.index.saturating_add(1);
        let text = block.text + rest;
        if text.trim().is_empty() {
            return;
        }
        let part = match block.is_thought {
            true => Some(AssistantPart::Reasoning(Reasoning { text, seal: None })),
            false => AssistantPart::text(text),
        };
        out.extend(part.map(ModelEvent::Part));
    }

    fn finish_kind(&self, raw: &str) -> FinishKind {
        match raw {
            "stop" if self.calls > 0 => FinishKind::ToolCalls,
            "stop" => FinishKind::Stop,
            "length" => FinishKind::Length,
            // Servers from before there were reasons say none.
            "" if self.calls > 0 => FinishKind::ToolCalls,
            "" => FinishKind::Stop,
            _ => FinishKind::Other,
        }
    }
}

impl Codec for ChatCodec {
    fn event(&mut self, _: &str, json: &Json<'_>, out: &mut Vec<ModelEvent>) -> Result<Progress, ModelError> {
        self.chunk(json, out)
    }

    /// Only lists come here: an object is the first of a stream.
    fn body(&mut self, json: &Json<'_>, _: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        Err(protocol("the answer is no object", json.text))
    }

    fn abandon(&mut self, _: &mut Vec<ModelEvent>) {}
}

/// A call with its name as on the wire. An id that the provider gave goes back with it.
pub(super) fn call(
    raw: &RawValue,
    lone: bool,
    position: usize,
    provider: &str,
) -> Result<ToolCall, serde_json::Error> {
    let wire: WireCall<'_> = object(raw.get())?;
    let function: WireFunction<'_> = object(wire.function.map_or("", RawValue::get))?;
    let given = function.arguments.map(text_or_raw).unwrap_or_default();
    let input = received(&given, lone);
    let own = CallId::new(wire.id.as_str()).ok();
    let data =
        own.as_ref().map(|id| RawJson::parse(format!("{{\"id\":{}}}", quoted(id.as_str())))).transpose()?;
    Ok(ToolCall {
        id: own.unwrap_or_else(|| CallId::positional(position)),
        name: function.name.into_string(),
        input: ToolInput::finished(&input),
        data: data.map(|json| ProviderData { provider: provider.to_owned(), json }),
    })
}

/// The items of a list that may be absent.
fn list(raw: Option<&RawValue>) -> Result<Vec<&RawValue>, ModelError> {
    let text = raw.map_or("[]", RawValue::get);
    serde_json::from_str(text).map_err(|_| protocol("the calls of tools are no list", text))
}

fn delta(is_thought: bool, index: u32, text: String) -> ModelEvent {
    match is_thought {
        true => ModelEvent::ReasoningDelta { index, text },
        false => ModelEvent::TextDelta { index, text },
    }
}
