//! The messages service of Anthropic.

mod usage;
mod validate;

use agent_core::RawJson;
use bytes::Bytes;
use hyper::header::HeaderMap;
use serde_json::Value;

use super::{Check, Events, Message, Wire, named, text};
use crate::pieces::pieces;
use crate::quote::quote;
use crate::script::ScriptCall;
use crate::sim::api_error::{ApiError, Usual};

/// `POST /v1/messages`.
#[derive(Debug)]
pub(super) struct Messages;

impl Wire for Messages {
    fn check_head(&self, headers: &HeaderMap) -> Check {
        let bearer = text(headers, "authorization").strip_prefix("Bearer ").unwrap_or_default();
        if [text(headers, "x-api-key"), bearer].iter().all(|key| key.trim().is_empty()) {
            return Err(self.error(401, "x-api-key header is required"));
        }
        if headers.get("anthropic-version").is_none() {
            return Err(ApiError::invalid("anthropic-version: header is required"));
        }
        Ok(())
    }

    fn check_body(&self, request: &Value) -> Check {
        validate::check(request)
    }

    fn json(&self, message: &Message<'_>) -> Result<String, ApiError> {
        Answer(message).json()
    }

    fn events(&self, message: &Message<'_>, delta_bytes: usize) -> Events {
        let list = Answer(message).events(delta_bytes);
        Events { end: list.len() - 1, list }
    }

    fn error_body(&self, error: &ApiError, request_id: &str) -> String {
        let (error, id) = (inner(error), quote(request_id));
        format!(r#"{{"type":"error","error":{error},"request_id":{id}}}"#)
    }

    fn error_event(&self, error: &ApiError, _position: usize) -> Bytes {
        named("error", &format!(r#"{{"type":"error","error":{}}}"#, inner(error)))
    }

    fn usual(&self) -> &'static [Usual] {
        &USUAL
    }

    fn id_header(&self) -> &'static str {
        "request-id"
    }
}

fn inner(error: &ApiError) -> String {
    format!(r#"{{"type":{},"message":{}}}"#, quote(&error.kind), quote(&error.message))
}

/// A scripted reply as a message of the real wire.
struct Answer<'a>(&'a Message<'a>);

impl Answer<'_> {
    /// The whole answer as one JSON object.
    fn json(&self) -> Result<String, ApiError> {
        let mut blocks = Vec::new();
        if let Some(text) = &self.0.reply.reasoning {
            let (text, signature) = (quote(text), quote(&self.signature()));
            blocks.push(format!(r#"{{"type":"thinking","thinking":{text},"signature":{signature}}}"#));
        }
        if let Some(text) = &self.0.reply.text {
            blocks.push(format!(r#"{{"type":"text","text":{}}}"#, quote(text)));
        }
        for (number, call) in self.0.reply.calls.iter().enumerate() {
            blocks.push(self.call(call, number, whole_input(call)?.get()));
        }
        let content = blocks.join(",");
        let stop = quote(self.0.reply.stop_word());
        Ok(self.envelope(&content, &stop, &usage::wire(self.0.usage)))
    }

    /// The answer as events; deltas are of about `delta_bytes` bytes.
    fn events(&self, delta_bytes: usize) -> Vec<Bytes> {
        let mut events = Vec::new();
        let start = self.envelope("", "null", &usage::wire_at_start(self.0.usage));
        events.push(named("message_start", &format!(r#"{{"type":"message_start","message":{start}}}"#)));
        for (index, block) in self.blocks(delta_bytes).into_iter().enumerate() {
            events.push(named(
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
                named("content_block_delta", &data)
            }));
            let stop = format!(r#"{{"type":"content_block_stop","index":{index}}}"#);
            events.push(named("content_block_stop", &stop));
        }
        if events.len() == 1 {
            events.push(ping());
        }
        let (stop, usage) = (quote(self.0.reply.stop_word()), usage::wire_at_end(self.0.usage));
        events.push(named(
            "message_delta",
            &format!(
                r#"{{"type":"message_delta","delta":{{"stop_reason":{stop},"stop_sequence":null}},"usage":{usage}}}"#
            ),
        ));
        events.push(named("message_stop", r#"{"type":"message_stop"}"#));
        events
    }

    fn blocks(&self, delta_bytes: usize) -> Vec<Block> {
        let mut blocks = Vec::new();
        if let Some(text) = &self.0.reply.reasoning {
            let mut block = Block::new(r#"{"type":"thinking","thinking":"","signature":""}"#);
            block.tell("thinking_delta", "thinking", pieces(text, delta_bytes));
            block.tell("signature_delta", "signature", std::iter::once(self.signature().as_str()));
            blocks.push(block);
        }
        if let Some(text) = &self.0.reply.text {
            let mut block = Block::new(r#"{"type":"text","text":""}"#);
            block.tell("text_delta", "text", pieces(text, delta_bytes));
            blocks.push(block);
        }
        for (number, call) in self.0.reply.calls.iter().enumerate() {
            let mut block = Block::new(&self.call(call, number, "{}"));
            let input = std::iter::once("").chain(pieces(call.input.as_str(), delta_bytes));
            block.tell("input_json_delta", "partial_json", input);
            blocks.push(block);
        }
        blocks
    }

    fn call(&self, call: &ScriptCall, number: usize, input: &str) -> String {
        let (id, name) = (quote(&call.id_at("toolu", self.0.position, number)), quote(&call.name));
        format!(r#"{{"type":"tool_use","id":{id},"name":{name},"input":{input}}}"#)
    }

    fn envelope(&self, content: &str, stop: &str, usage: &str) -> String {
        let (id, model) = (self.0.position, quote(self.0.model));
        format!(
            r#"{{"id":"msg_sim_{id:04}","type":"message","role":"assistant","model":{model},"content":[{content}],"stop_reason":{stop},"stop_sequence":null,"usage":{usage}}}"#
        )
    }

    fn signature(&self) -> String {
        format!("sim-signature-{:04}", self.0.position)
    }
}

fn ping() -> Bytes {
    named("ping", r#"{"type":"ping"}"#)
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

/// Status, kind, usual words.
const USUAL: [Usual; 11] = [
    Usual::new(400, "invalid_request_error", "Invalid request"),
    Usual::new(401, "authentication_error", "invalid x-api-key"),
    Usual::new(402, "billing_error", "Your credit balance is too low to access the API"),
    Usual::new(
        403,
        "permission_error",
        "Your API key does not have permission to use the specified resource",
    ),
    Usual::new(404, "not_found_error", "Not Found"),
    Usual::new(409, "conflict_error", "The request conflicts with another one"),
    Usual::new(413, "request_too_large", "Request exceeds the maximum size"),
    Usual::new(
        429,
        "rate_limit_error",
        "This request would exceed your account's rate limit. Please try again later.",
    ),
    Usual::new(500, "api_error", "Internal server error"),
    Usual::new(504, "timeout_error", "The request timed out"),
    Usual::new(529, "overloaded_error", "Overloaded"),
];
