//! The words in which providers say that a prompt is too long.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::fault::RawReply;

/// Whose words are used, and in which shape; see [`crate::Fault::Overflow`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Wording {
    /// Those of the service that was asked.
    #[default]
    Own,
    /// Anthropic: status 400, tokens and maximum.
    Anthropic,
    /// Anthropic's edge: status 413, a body of more than 32 MB.
    AnthropicBytes,
    /// OpenAI: a code of its own.
    Openai,
    /// OpenAI: words without a code.
    OpenaiWords,
    /// OpenAI: a limit that the project set.
    OpenaiConfigured,
    /// OpenAI: more than the limit of a whole minute, status 429.
    OpenaiMinute,
    /// AWS Bedrock.
    Bedrock,
    /// Google Gemini.
    Gemini,
    /// Mistral.
    Mistral,
    /// Cerebras.
    Cerebras,
    /// Groq.
    Groq,
    /// Groq: more than the limit of a whole minute, status 413.
    GroqMinute,
    /// Moonshot.
    Moonshot,
    /// OpenRouter, quoting the provider behind it.
    Openrouter,
    /// xAI.
    Xai,
    /// GitHub Copilot.
    Copilot,
    /// Text Generation Inference and others that say how long the input may be.
    AllowedLength,
    /// vLLM.
    Vllm,
    /// vLLM: the engine behind it.
    VllmEngine,
    /// llama.cpp.
    LlamaCpp,
    /// llama.cpp before it had a type for it: status 500.
    LlamaCppOld,
    /// LM Studio.
    LmStudio,
    /// Ollama.
    Ollama,
    /// A page of a proxy: status 413.
    ProxyPage,
}

impl Wording {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        std::iter::once(Self::Own).chain(TABLE.iter().map(|(wording, ..)| *wording))
    }

    /// The answer; none for the service's own, which depends on the wire.
    pub(crate) fn raw(self) -> Option<RawReply> {
        let (_, status, body) = TABLE.iter().find(|(wording, ..)| *wording == self)?;
        let media = if body.starts_with('{') { "application/json" } else { "text/html" };
        let headers = BTreeMap::from([("content-type".to_owned(), media.to_owned())]);
        Some(RawReply { status: *status, headers, body: (*body).into() })
    }
}

/// Status and body.
const TABLE: &[(Wording, u16, &str)] = &[
    (
        Wording::Anthropic,
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"},"request_id":"req_sim_overflow"}"#,
    ),
    (
        Wording::AnthropicBytes,
        413,
        r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"},"request_id":"req_sim_overflow"}"#,
    ),
    (
        Wording::Openai,
        400,
        r#"{"error":{"message":"This model's maximum context length is 200000 tokens. However, your messages resulted in 210000 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
    ),
    (
        Wording::OpenaiWords,
        400,
        r#"{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","param":"input","code":null}}"#,
    ),
    (
        Wording::OpenaiConfigured,
        400,
        r#"{"error":{"message":"Input tokens exceed the configured limit of 200000 tokens. Your messages resulted in 210000 tokens.","type":"invalid_request_error","param":null,"code":null}}"#,
    ),
    (
        Wording::OpenaiMinute,
        429,
        r#"{"error":{"message":"Request too large for this model on tokens per min (TPM): Limit 200000, Requested 210000. The input or output tokens must be reduced in order to run successfully.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#,
    ),
    (Wording::Bedrock, 400, r#"{"message":"Input is too long for requested model."}"#),
    (
        Wording::Gemini,
        400,
        r#"{"error":{"code":400,"message":"The input token count (210000) exceeds the maximum number of tokens allowed (200000).","status":"INVALID_ARGUMENT"}}"#,
    ),
    (
        Wording::Mistral,
        400,
        r#"{"object":"error","message":"Prompt contains 210000 tokens, too large for model with 200000 maximum context length","type":"invalid_request_prompt","param":null,"code":"3051","raw_status_code":400}"#,
    ),
    (
        Wording::Cerebras,
        400,
        r#"{"message":"Please reduce the length of the messages or completion. Current length is 210000 while limit is 200000","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}"#,
    ),
    (
        Wording::Groq,
        400,
        r#"{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":null}}"#,
    ),
    (
        Wording::GroqMinute,
        413,
        r#"{"error":{"message":"Request too large for this model on tokens per minute (TPM): Limit 200000, Requested 210000, please reduce your message size and try again.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#,
    ),
    (
        Wording::Moonshot,
        400,
        r#"{"error":{"message":"Invalid request: Your request exceeded model token limit: 200000","type":"invalid_request_error","param":null,"code":null}}"#,
    ),
    (
        Wording::Openrouter,
        400,
        r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: 210000 tokens > 200000 maximum\"}}","provider_name":"Behind"}}}"#,
    ),
    (
        Wording::Xai,
        400,
        r#"{"code":"invalid-argument","error":"This model's maximum prompt length is 200000 but the request contains 210000 tokens."}"#,
    ),
    (
        Wording::Copilot,
        400,
        r#"{"error":{"message":"prompt token count of 210000 exceeds the limit of 200000","code":"model_max_prompt_tokens_exceeded","param":"","type":"invalid_request_error"}}"#,
    ),
    (
        Wording::AllowedLength,
        400,
        r#"{"error":{"message":"The request is longer than the maximum allowed input length of 200000 tokens.","type":"invalid_request_error","param":null,"code":null}}"#,
    ),
    (
        Wording::Vllm,
        400,
        r#"{"object":"error","message":"This model's maximum context length is 200000 tokens. However, you requested 210000 tokens in the messages. Please reduce the length of the messages.","type":"BadRequestError","param":null,"code":400}"#,
    ),
    (
        Wording::VllmEngine,
        400,
        r#"{"object":"error","message":"The decoder prompt (length 210000) is longer than the maximum model length of 200000.","type":"BadRequestError","param":null,"code":400}"#,
    ),
    (
        Wording::LlamaCpp,
        400,
        r#"{"error":{"code":400,"message":"request (210000 tokens) exceeds the available context size (200000 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":210000,"n_ctx":200000}}"#,
    ),
    (
        Wording::LlamaCppOld,
        500,
        r#"{"error":{"code":500,"message":"the request exceeds the available context size, try increasing it","type":"server_error"}}"#,
    ),
    (
        Wording::LmStudio,
        400,
        r#"{"error":"Trying to keep the first 210000 tokens when context the overflows. However, the model is loaded with context length of only 200000 tokens."}"#,
    ),
    (Wording::Ollama, 400, r#"{"error":"the input length exceeds the context length"}"#),
    (Wording::ProxyPage, 413, "<html><head><title>413 Request Entity Too Large</title></head></html>"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wording_has_an_answer_and_a_name() {
        let mut names: Vec<String> =
            Wording::all().map(|wording| serde_json::to_string(&wording).unwrap()).collect();
        for wording in Wording::all().skip(1) {
            let raw = wording.raw().unwrap();
            assert!(raw.status >= 400 && !raw.body.is_empty());
        }
        assert!(Wording::Own.raw().is_none());
        names.dedup();
        assert_eq!(names.len(), Wording::all().count());
        // The reader's own list names every variant: one that is not in the table would be missed here.
        let said = serde_json::from_str::<Wording>(r#""?""#).unwrap_err().to_string();
        assert_eq!(said.matches('`').count() / 2, 1 + names.len(), "{said}");
    }
}
