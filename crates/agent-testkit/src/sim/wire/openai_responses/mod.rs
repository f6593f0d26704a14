//! The responses service of OpenAI, without memory: a conversation comes with each request.

mod items;
mod stream;
mod validate;

use agent_core::Usage;
use bytes::Bytes;
use hyper::header::HeaderMap;
use serde_json::Value;

use super::{Check, Events, Message, Wire, named, openai};
use crate::quote::quote;
use crate::sim::api_error::{ApiError, Usual};
use items::Item;

/// `POST /v1/responses`.
#[derive(Debug)]
pub(super) struct Responses;

impl Wire for Responses {
    fn check_head(&self, headers: &HeaderMap) -> Check {
        openai::check_key(headers)
    }

    fn check_body(&self, request: &Value) -> Check {
        validate::check(request)
    }

    fn json(&self, message: &Message<'_>) -> Result<String, ApiError> {
        let answer = Answer::new(message);
        Ok(answer.envelope(answer.status(), &answer.output(), &usage(message.usage)))
    }

    fn events(&self, message: &Message<'_>, delta_bytes: usize) -> Events {
        let list = stream::events(&Answer::new(message), delta_bytes);
        Events { end: list.len() - 1, list }
    }

    fn error_body(&self, error: &ApiError, _request_id: &str) -> String {
        openai::error_body(error)
    }

    fn error_event(&self, error: &ApiError, position: usize) -> Bytes {
        // The event has one word for the class, where a body has a type and a code.
        let code = quote(error.code.unwrap_or(&error.kind));
        let (message, param) = (quote(&error.message), openai::or_null(error.param.as_deref()));
        named(
            "error",
            &format!(
                r#"{{"type":"error","sequence_number":{position},"code":{code},"message":{message},"param":{param}}}"#
            ),
        )
    }

    fn usual(&self) -> &'static [Usual] {
        &openai::USUAL
    }

    fn id_header(&self) -> &'static str {
        "x-request-id"
    }
}

/// A scripted reply as a response.
struct Answer<'a> {
    message: &'a Message<'a>,
    items: Vec<Item<'a>>,
}

impl<'a> Answer<'a> {
    fn new(message: &'a Message<'a>) -> Self {
        Self { message, items: items::items(message) }
    }

    fn output(&self) -> String {
        self.items.iter().map(Item::whole).collect::<Vec<_>>().join(",")
    }

    /// `completed`, or why not.
    fn status(&self) -> &'static str {
        if self.cause().is_some() { "incomplete" } else { "completed" }
    }

    /// Why the answer is not complete: the one thing this service has in place of a stop word.
    fn cause(&self) -> Option<&'static str> {
        match self.message.reply.stop_word() {
            "max_tokens" | "length" | "max_output_tokens" => Some("max_output_tokens"),
            "refusal" | "content_filter" => Some("content_filter"),
            _ => None,
        }
    }

    fn envelope(&self, status: &str, output: &str, usage: &str) -> String {
        let Message { position, model, request, .. } = self.message;
        let cause = self.cause().filter(|_| status == "incomplete");
        let cause = cause.map_or_else(|| "null".into(), |cause| format!(r#"{{"reason":"{cause}"}}"#));
        let given = |field: &str| request.get(field).filter(|value| !value.is_null());
        let echo = |field: &str, usual: &str| given(field).map_or_else(|| usual.to_owned(), Value::to_string);
        let (instructions, limit) = (echo("instructions", "null"), echo("max_output_tokens", "null"));
        let (choice, tools) = (echo("tool_choice", "\"auto\""), echo("tools", "[]"));
        let (parallel, store) = (echo("parallel_tool_calls", "true"), echo("store", "true"));
        let (temperature, top_p) = (echo("temperature", "1.0"), echo("top_p", "1.0"));
        let model = quote(model);
        format!(
            r#"{{"id":"resp_sim_{position:04}","object":"response","created_at":{CREATED},"status":"{status}","error":null,"incomplete_details":{cause},"instructions":{instructions},"max_output_tokens":{limit},"model":{model},"output":[{output}],"parallel_tool_calls":{parallel},"previous_response_id":null,"store":{store},"temperature":{temperature},"tool_choice":{choice},"tools":{tools},"top_p":{top_p},"truncation":"disabled","usage":{usage},"metadata":{{}}}}"#
        )
    }
}

/// Cached tokens are a part of the input's here. The provider's own object of a scripted usage goes out as it is.
fn usage(usage: &Usage) -> String {
    if let Some(raw) = &usage.raw {
        return raw.get().to_owned();
    }
    let Usage { output, reasoning, cache_read, .. } = usage;
    let (input, write) = (usage.total_input(), usage.cache_write());
    let total = input.saturating_add(*output);
    format!(
        r#"{{"input_tokens":{input},"input_tokens_details":{{"cached_tokens":{cache_read},"cache_write_tokens":{write}}},"output_tokens":{output},"output_tokens_details":{{"reasoning_tokens":{reasoning}}},"total_tokens":{total}}}"#
    )
}

/// The same second for every answer, so that two runs agree.
const CREATED: u64 = 1_700_000_000;
