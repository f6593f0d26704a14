//! A scripted reply as a message of the real wire: one JSON object, or server-sent events.

use agent_core::{RawJson, Usage};
use bytes::Bytes;

use super::api_error::ApiError;
use super::usage;
use crate::pieces::pieces;
use crate::quote::quote;
use crate::script::{Reply, ScriptCall};

/// A reply with what the wire says around it.
#[derive(Debug)]
pub(super) struct Message<'a> {
    pub(super) reply: &'a Reply,
    /// Position in the script; ids are made of it, so that they are equal after a restart.
    pub(super) position: usize,
    /// The model the request asked for.
    pub(super) model: &'a str,
    pub(super) usage: &'a Usage,
}

impl Message<'_> {
    /// The whole answer as one JSON object.
    pub(super) fn json(&self) -> Result<String, ApiError> {
        let mut blocks = Vec::new();
        if let Some(text) = &self.reply.reasoning {
            let (text, signature) = (quote(text), quote(&self.signature()));
            blocks.push(format!(r#"{{"type":"thinking","thinking":{text},"signature":{signature}}}"#));
        }
        if let Some(text) = &self.reply.text {
            blocks.push(format!(r#"{{"type":"text","text":{}}}"#, quote(text)));
        }
        for (number, call) in self.reply.calls.iter().enumerate() {
            blocks.push(self.call(call, number, whole_input(call)?.get()));
        }
        let content = blocks.join(",");
        let stop = quote(self.reply.stop_word());
        Ok(self.envelope(&content, &stop, &usage::wire(self.usage)))
    }

    /// The answer as events; deltas are of about `delta_bytes` bytes.
    pub(super) fn events(&self, delta_bytes: usize) -> Vec<Bytes> {
        let mut events = Vec::new();
        let start = self.envelope("", "null", &usage::wire_at_start(self.usage));
        events.push(event("message_start", &format!(r#"{{"type":"message_start","message":{start}}}"#)));
        for (index, block) in self.blocks(delta_bytes).into_iter().enumerate() {
            events.push(event(
                "content_block_start",
                &format!(
                    r#"{{"type":"content_block_start","index":{index},"content_block":{}}}"#,
                    block.start
                ),
            ));
            if index == 0 {
                events.push(ping());
            }
            events.extend(block.deltas.iter().map(|delta| {
                let data = format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#);
                event("content_block_delta", &data)
            }));
            let stop = format!(r#"{{"type":"content_block_stop","index":{index}}}"#);
            events.push(event("content_block_stop", &stop));
        }
        if events.len() == 1 {
            events.push(ping());
        }
        let (stop, usage) = (quote(self.reply.stop_word()), usage::wire(self.usage));
        events.push(event(
            "message_delta",
            &format!(
                r#"{{"type":"message_delta","delta":{{"stop_reason":{stop},"stop_sequence":null}},"usage":{usage}}}"#
            ),
        ));
        events.push(event("message_stop", r#"{"type":"message_stop"}"#));
        events
    }

    fn blocks(&self, delta_bytes: usize) -> Vec<Block> {
        let mut blocks = Vec::new();
        if let Some(text) = &self.reply.reasoning {
            let mut block = Block::new(r#"{"type":"thinking","thinking":"","signature":""}"#);
            block.tell("thinking_delta", "thinking", pieces(text, delta_bytes));
            block.tell("signature_delta", "signature", std::iter::once(self.signature().as_str()));
            blocks.push(block);
        }
        if let Some(text) = &self.reply.text {
            let mut block = Block::new(r#"{"type":"text","text":""}"#);
            block.tell("text_delta", "text", pieces(text, delta_bytes));
            blocks.push(block);
        }
        for (number, call) in self.reply.calls.iter().enumerate() {
            let mut block = Block::new(&self.call(call, number, "{}"));
            let input = std::iter::once("").chain(pieces(call.input.as_str(), delta_bytes));
            block.tell("input_json_delta", "partial_json", input);
            blocks.push(block);
        }
        blocks
    }

    fn call(&self, call: &ScriptCall, number: usize, input: &str) -> String {
        let (id, name) = (quote(&call.id_at(self.position, number)), quote(&call.name));
        format!(r#"{{"type":"tool_use","id":{id},"name":{name},"input":{input}}}"#)
    }

    fn envelope(&self, content: &str, stop: &str, usage: &str) -> String {
        let (id, model) = (self.position, quote(self.model));
        format!(
            r#"{{"id":"msg_sim_{id:04}","type":"message","role":"assistant","model":{model},"content":[{content}],"stop_reason":{stop},"stop_sequence":null,"usage":{usage}}}"#
        )
    }

    fn signature(&self) -> String {
        format!("sim-signature-{:04}", self.position)
    }
}

/// One server-sent event.
pub(super) fn event(name: &str, data: &str) -> Bytes {
    format!("event: {name}\ndata: {data}\n\n").into()
}

fn ping() -> Bytes {
    event("ping", r#"{"type":"ping"}"#)
}

/// The input of a call as one value; text that is none cannot stand in a JSON answer.
fn whole_input(call: &ScriptCall) -> Result<RawJson, ApiError> {
    RawJson::parse(call.input.as_str()).map_err(|_| {
        ApiError::invalid(format!(
            "the script calls {:?} with input that is not JSON, which only a streamed answer can carry: ask with \
             \"stream\": true",
            call.name
        ))
    })
}

struct Block {
    start: String,
    deltas: Vec<String>,
}

impl Block {
    fn new(start: &str) -> Self {
        Self { start: start.into(), deltas: Vec::new() }
    }

    fn tell<'t>(&mut self, kind: &str, name: &str, texts: impl Iterator<Item = &'t str>) {
        let delta = |text| format!(r#"{{"type":"{kind}","{name}":{}}}"#, quote(text));
        self.deltas.extend(texts.map(delta));
    }
}
