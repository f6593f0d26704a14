//! The messages service of Anthropic.

mod usage;
mod validate;

use agent_cache::{CacheRules, Format, Refusal as MarkRefusal, RequestError};
use agent_core::{ModelProfile, RawJson};
use bytes::Bytes;
use hyper::header::HeaderMap;
use serde_json::{Value, json};

use super::{Check, Compared, Events, Message, Wire, named, text};
use crate::pieces::pieces;
use crate::quote::quote;
use crate::script::ScriptCall;
use crate::sim::account::Diagnosis;
use crate::sim::api_error::{ApiError, Usual};
use crate::sim::limited::rfc3339;
use crate::sim::thinking::place;

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

    fn format(&self) -> Format {
        Format::Anthropic
    }

    fn tag(&self) -> &'static str {
        "anthropic"
    }

    fn provider(&self) -> &'static str {
        "anthropic"
    }

    fn message_id(&self, number: &str) -> String {
        format!("msg_sim_{number}")
    }

    fn compares<'r>(&self, request: &'r Value) -> Compared<'r> {
        let Some(asked) = request["diagnostics"].as_object() else { return Compared::NotAsked };
        asked.get("previous_message_id").and_then(Value::as_str).map_or(Compared::First, Compared::With)
    }

    fn check_model(&self, request: &Value, _rules: &CacheRules, profile: &ModelProfile) -> Check {
        validate::check_model(request, profile)
    }

    fn check_betas(&self, request: &Value, betas: &str) -> Check {
        validate::check_betas(request, betas)
    }

    fn overflow(&self, tokens: u64, most: u64) -> ApiError {
        ApiError::invalid(format!("prompt is too long: {tokens} tokens > {most} maximum"))
    }

    fn used_up(&self, until: &str, _wait: &str) -> [(&'static str, String); 2] {
        [
            ("anthropic-ratelimit-input-tokens-remaining", "0".into()),
            ("anthropic-ratelimit-input-tokens-reset", rfc3339(until)),
        ]
    }

    fn unreadable(&self, error: &RequestError) -> ApiError {
        let RequestError::Ttl { path, .. } = error else { return ApiError::invalid(error.to_string()) };
        let place = place(path);
        let place = if path == "cache_control" { place } else { format!("{place}.cache_control") };
        ApiError::invalid(format!("{place}.ttl: Input should be '5m' or '1h'"))
    }

    fn misplaced(&self, refusal: &MarkRefusal) -> ApiError {
        ApiError::invalid(if let MarkRefusal::Order { path } = refusal {
            format!(
                "{}.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.",
                place(path)
            )
        } else if let MarkRefusal::NotMarkable { path, what } = refusal {
            format!("{}.cache_control: cache_control cannot be set for {what}", place(path))
        } else {
            refusal.to_string()
        })
    }

    fn prewarms(&self, request: &Value) -> bool {
        request["max_tokens"] == 0
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
            let (text, signature) = (quote(text), quote(&self.0.signature));
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
            block.tell("signature_delta", "signature", std::iter::once(self.0.signature.as_str()));
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
        let (id, model) = (quote(&Messages.message_id(self.0.number)), quote(self.0.model));
        let diagnostics = self.diagnostics();
        format!(
            r#"{{"id":{id},"type":"message","role":"assistant","model":{model},"content":[{content}],"stop_reason":{stop},"stop_sequence":null,"usage":{usage}{diagnostics}}}"#
        )
    }

    /// The member about misses, for those who asked.
    fn diagnostics(&self) -> String {
        let told = match self.0.diagnosis {
            None => return String::new(),
            Some(Diagnosis::First | Diagnosis::Same) => "null".to_owned(),
            Some(Diagnosis::NotFound) => {
                r#"{"cache_miss_reason":{"type":"previous_message_not_found"}}"#.into()
            }
            Some(Diagnosis::Changed(miss)) => json!({ "cache_miss_reason": miss }).to_string(),
        };
        format!(r#","diagnostics":{told}"#)
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
