//! The responses service of OpenAI, without memory: a conversation comes with each request.

mod items;
mod stream;
mod validate;

use agent_cache::{CacheRules, Format};
use agent_core::ModelProfile;
use bytes::Bytes;
use hyper::header::HeaderMap;
use serde_json::{Value, json};

use super::{Check, Compared, Events, Message, Wire, named, openai};
use crate::quote::quote;
use crate::sim::account::Diagnosis;
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
        Ok(answer.envelope(answer.status(), &answer.output(), &usage(message)))
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

    fn format(&self) -> Format {
        Format::OpenaiResponses
    }

    fn tag(&self) -> &'static str {
        "openai-responses"
    }

    fn provider(&self) -> &'static str {
        "openai"
    }

    fn message_id(&self, number: &str) -> String {
        format!("resp_sim_{number}")
    }

    fn compares<'r>(&self, request: &'r Value) -> Compared<'r> {
        let id = request["prompt_cache_options"]["comparison_response_id"].as_str();
        id.map_or(Compared::NotAsked, Compared::With)
    }

    fn check_model(&self, request: &Value, rules: &CacheRules, _profile: &ModelProfile) -> Check {
        openai::check_cache_options(request, rules)
    }

    fn overflow(&self, _tokens: u64, _most: u64) -> ApiError {
        let message =
            "Your input exceeds the context window of this model. Please adjust your input and try again.";
        ApiError::invalid(message).at("input").coded("context_length_exceeded")
    }

    fn used_up(&self, _until: &str, wait: &str) -> [(&'static str, String); 2] {
        openai::used_up(wait)
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

    /// The member about misses, for those who asked.
    fn diagnostics(&self) -> String {
        let told = match self.message.diagnosis {
            None => return String::new(),
            Some(Diagnosis::First | Diagnosis::Same) => json!({ "type": "cache_hit" }),
            Some(Diagnosis::NotFound) => json!({ "type": "comparison_response_not_found" }),
            Some(Diagnosis::Changed(miss)) => json!({ "type": "cache_miss", "reason": miss.reason }),
        };
        format!(r#","prompt_cache_diagnostics":{told}"#)
    }

    fn envelope(&self, status: &str, output: &str, usage: &str) -> String {
        let Message { number, model, request, .. } = self.message;
        let id = quote(&Responses.message_id(number));
        let diagnostics = if usage == "null" { String::new() } else { self.diagnostics() };
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
            r#"{{"id":{id},"object":"response","created_at":{CREATED},"status":"{status}","error":null,"incomplete_details":{cause},"instructions":{instructions},"max_output_tokens":{limit},"model":{model},"output":[{output}],"parallel_tool_calls":{parallel},"previous_response_id":null,"store":{store},"temperature":{temperature},"tool_choice":{choice},"tools":{tools},"top_p":{top_p},"truncation":"disabled","usage":{usage}{diagnostics},"metadata":{{}}}}"#
        )
    }
}

/// Cached tokens are a part of the input's here. The provider's own object of a scripted usage goes out as it is.
fn usage(message: &Message<'_>) -> String {
    let usage = message.usage;
    if let Some(raw) = &usage.raw {
        return raw.get().to_owned();
    }
    let (input, output, reasoning) = (usage.total_input(), usage.output, usage.reasoning);
    let cached = openai::cached(message, true);
    let total = input.saturating_add(output);
    format!(
        r#"{{"input_tokens":{input},"input_tokens_details":{{{cached}}},"output_tokens":{output},"output_tokens_details":{{"reasoning_tokens":{reasoning}}},"total_tokens":{total}}}"#
    )
}

/// The same second for every answer, so that two runs agree.
const CREATED: u64 = 1_700_000_000;
