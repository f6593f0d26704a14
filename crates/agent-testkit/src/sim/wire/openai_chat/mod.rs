//! The chat completions service of OpenAI, and of everyone who is compatible with it.

mod validate;

use agent_cache::{CacheRules, Format};
use agent_core::ModelProfile;
use bytes::Bytes;
use hyper::header::HeaderMap;
use serde_json::Value;

use super::{Check, Compared, Events, Message, Wire, openai};
use crate::pieces::pieces;
use crate::quote::quote;
use crate::script::ScriptCall;
use crate::sim::api_error::{ApiError, Usual};

/// `POST /v1/chat/completions`.
#[derive(Debug)]
pub(super) struct ChatCompletions;

impl Wire for ChatCompletions {
    fn check_head(&self, headers: &HeaderMap) -> Check {
        openai::check_key(headers)
    }

    fn check_body(&self, request: &Value) -> Check {
        validate::check(request)
    }

    fn json(&self, message: &Message<'_>) -> Result<String, ApiError> {
        Ok(Answer(message).json())
    }

    fn events(&self, message: &Message<'_>, delta_bytes: usize) -> Events {
        Answer(message).events(delta_bytes)
    }

    fn error_body(&self, error: &ApiError, _request_id: &str) -> String {
        openai::error_body(error)
    }

    fn error_event(&self, error: &ApiError, _position: usize) -> Bytes {
        data(&openai::error_body(error))
    }

    fn usual(&self) -> &'static [Usual] {
        &openai::USUAL
    }

    fn id_header(&self) -> &'static str {
        "x-request-id"
    }

    fn format(&self) -> Format {
        Format::OpenaiChat
    }

    fn tag(&self) -> &'static str {
        "openai-chat"
    }

    fn provider(&self) -> &'static str {
        "openai"
    }

    fn message_id(&self, number: &str) -> String {
        format!("chatcmpl-sim-{number}")
    }

    fn compares<'r>(&self, _request: &'r Value) -> Compared<'r> {
        Compared::NotAsked
    }

    fn check_model(&self, request: &Value, rules: &CacheRules, _profile: &ModelProfile) -> Check {
        openai::check_cache_options(request, rules)
    }

    fn overflow(&self, tokens: u64, most: u64) -> ApiError {
        let message = format!(
            "This model's maximum context length is {most} tokens. However, your messages resulted in {tokens} tokens. Please reduce the length of the messages."
        );
        ApiError::invalid(message).at("messages").coded("context_length_exceeded")
    }

    fn used_up(&self, _until: &str, wait: &str) -> [(&'static str, String); 2] {
        openai::used_up(wait)
    }
}

/// A scripted reply as a completion.
struct Answer<'a>(&'a Message<'a>);

impl Answer<'_> {
    /// The whole answer as one JSON object.
    fn json(&self) -> String {
        let reply = self.0.reply;
        let mut message =
            format!(r#""role":"assistant","content":{}"#, openai::or_null(reply.text.as_deref()));
        if let Some(thinking) = &reply.reasoning {
            message.push_str(&format!(r#","{REASONING}":{}"#, quote(thinking)));
        }
        if !reply.calls.is_empty() {
            let calls = reply
                .calls
                .iter()
                .enumerate()
                .map(|(number, call)| format!("{{{}}}", self.call(call, number, call.input.as_str())));
            message.push_str(&format!(r#","tool_calls":[{}]"#, calls.collect::<Vec<_>>().join(",")));
        }
        let stop = quote(self.stop_word());
        let choice = format!(
            r#"{{"index":0,"message":{{{message},"refusal":null,"annotations":[]}},"logprobs":null,"finish_reason":{stop}}}"#
        );
        self.envelope("chat.completion", &choice, &format!(r#","usage":{}"#, usage(self.0)))
    }

    /// The answer as chunks; thinking, words and calls are deltas of one message.
    fn events(&self, delta_bytes: usize) -> Events {
        let reply = self.0.reply;
        let begin = if reply.text.is_some() { r#""""# } else { "null" };
        let mut list =
            vec![self.chunk(&format!(r#"{{"role":"assistant","content":{begin},"refusal":null}}"#), "null")];
        for (field, words) in [(REASONING, &reply.reasoning), ("content", &reply.text)] {
            let deltas = words.iter().flat_map(|words| pieces(words, delta_bytes));
            list.extend(
                deltas.map(|piece| self.chunk(&format!(r#"{{"{field}":{}}}"#, quote(piece)), "null")),
            );
        }
        for (number, call) in reply.calls.iter().enumerate() {
            let begin = format!(r#""index":{number},{}"#, self.call(call, number, ""));
            let more = pieces(call.input.as_str(), delta_bytes)
                .map(|piece| format!(r#""index":{number},"function":{{"arguments":{}}}"#, quote(piece)));
            let deltas = std::iter::once(begin).chain(more);
            list.extend(
                deltas.map(|delta| self.chunk(&format!(r#"{{"tool_calls":[{{{delta}}}]}}"#), "null")),
            );
        }
        let end = list.len();
        list.push(self.chunk("{}", &quote(self.stop_word())));
        if self.wants_usage() {
            let counts = format!(r#","usage":{}"#, usage(self.0));
            list.push(data(&self.envelope("chat.completion.chunk", "", &counts)));
        }
        list.push(data("[DONE]"));
        Events { list, end }
    }

    fn chunk(&self, delta: &str, stop: &str) -> Bytes {
        let choice = format!(r#"{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{stop}}}"#);
        let usage = if self.wants_usage() { r#","usage":null"# } else { "" };
        data(&self.envelope("chat.completion.chunk", &choice, usage))
    }

    /// Tokens are told in a stream only when they were asked for.
    fn wants_usage(&self) -> bool {
        self.0.request["stream_options"]["include_usage"] == true
    }

    fn call(&self, call: &ScriptCall, number: usize, input: &str) -> String {
        let (id, name) = (quote(&call.id_at("call", self.0.position, number)), quote(&call.name));
        let input = quote(input);
        format!(r#""id":{id},"type":"function","function":{{"name":{name},"arguments":{input}}}"#)
    }

    fn envelope(&self, object: &str, choice: &str, usage: &str) -> String {
        let (id, model) = (quote(&ChatCompletions.message_id(self.0.number)), quote(self.0.model));
        format!(
            r#"{{"id":{id},"object":"{object}","created":{CREATED},"model":{model},"choices":[{choice}]{usage},"service_tier":"default","system_fingerprint":"fp_sim"}}"#
        )
    }

    fn stop_word(&self) -> &str {
        match self.0.reply.stop_word() {
            "end_turn" | "stop_sequence" => "stop",
            "tool_use" => "tool_calls",
            "max_tokens" => "length",
            "refusal" => "content_filter",
            other => other,
        }
    }
}

/// One chunk of the stream; its events have no names.
fn data(json: &str) -> Bytes {
    format!("data: {json}\n\n").into()
}

/// Cached tokens are a part of the prompt's here. The provider's own object of a scripted usage goes out as it is.
fn usage(message: &Message<'_>) -> String {
    let usage = message.usage;
    if let Some(raw) = &usage.raw {
        return raw.get().to_owned();
    }
    let (input, output, reasoning) = (usage.total_input(), usage.output, usage.reasoning);
    let cached = openai::cached(message, false);
    let total = input.saturating_add(output);
    format!(
        r#"{{"prompt_tokens":{input},"completion_tokens":{output},"total_tokens":{total},"prompt_tokens_details":{{{cached},"audio_tokens":0}},"completion_tokens_details":{{"reasoning_tokens":{reasoning},"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}}}"#
    )
}

/// OpenAI tells no thinking on this wire; the compatible services that do call it so.
const REASONING: &str = "reasoning_content";

/// The same second for every answer, so that two runs agree.
const CREATED: u64 = 1_700_000_000;
