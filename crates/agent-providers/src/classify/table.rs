//! The words of providers and what each of them means.

use agent_core::ModelErrorKind;

/// Codes, types and statuses that say what failed, in lower case. They are trusted more than the HTTP status.
pub(super) const NAMES: &[(&str, ModelErrorKind)] = &[
    ("access_terminated_error", ModelErrorKind::Permission),
    ("api_key_invalid", ModelErrorKind::Authentication),
    ("authentication_error", ModelErrorKind::Authentication),
    ("billing_error", ModelErrorKind::QuotaExhausted),
    ("billing_hard_limit_reached", ModelErrorKind::QuotaExhausted),
    ("billing_not_active", ModelErrorKind::QuotaExhausted),
    ("capacity_exceeded", ModelErrorKind::Overloaded),
    ("compaction_unavailable", ModelErrorKind::Overloaded),
    ("conflict_error", ModelErrorKind::InvalidRequest),
    ("context_length_exceeded", ModelErrorKind::ContextOverflow),
    ("context_window_exceeded", ModelErrorKind::ContextOverflow),
    ("engine_overloaded", ModelErrorKind::Overloaded),
    ("engine_overloaded_error", ModelErrorKind::Overloaded),
    ("exceed_context_size_error", ModelErrorKind::ContextOverflow),
    ("exceeded_current_quota_error", ModelErrorKind::QuotaExhausted),
    ("incorrect_api_key", ModelErrorKind::Authentication),
    ("insufficient_balance", ModelErrorKind::QuotaExhausted),
    ("insufficient_quota", ModelErrorKind::QuotaExhausted),
    ("invalid_api_key", ModelErrorKind::Authentication),
    ("invalid_authentication_error", ModelErrorKind::Authentication),
    ("invalid_encrypted_content", ModelErrorKind::InvalidRequest),
    ("invalid_prompt", ModelErrorKind::InvalidRequest),
    ("model_not_found", ModelErrorKind::InvalidRequest),
    ("not_found_error", ModelErrorKind::InvalidRequest),
    ("not_supported_error", ModelErrorKind::InvalidRequest),
    ("overloaded_error", ModelErrorKind::Overloaded),
    ("payment_required", ModelErrorKind::QuotaExhausted),
    ("permission_denied", ModelErrorKind::Permission),
    ("permission_error", ModelErrorKind::Permission),
    ("rate_limit_error", ModelErrorKind::RateLimited),
    ("rate_limit_exceeded", ModelErrorKind::RateLimited),
    ("rate_limit_reached_error", ModelErrorKind::RateLimited),
    ("rate_limited", ModelErrorKind::RateLimited),
    ("request_too_large", ModelErrorKind::ContextOverflow),
    ("requests", ModelErrorKind::RateLimited),
    ("resource_exhausted", ModelErrorKind::RateLimited),
    ("server_overloaded", ModelErrorKind::Overloaded),
    ("service_tier_capacity_exceeded", ModelErrorKind::Overloaded),
    ("slow_down", ModelErrorKind::Overloaded),
    ("timeout_error", ModelErrorKind::Transport),
    ("tokens", ModelErrorKind::RateLimited),
    ("too_many_requests", ModelErrorKind::RateLimited),
    ("unauthenticated", ModelErrorKind::Authentication),
    ("unavailable", ModelErrorKind::Overloaded),
    ("unavailable_error", ModelErrorKind::Overloaded),
    ("unsupported_country_region_territory", ModelErrorKind::Permission),
];

/// Names that some providers give to everything: a status of [`STATUSES`] says more.
pub(super) const VAGUE: &[(&str, ModelErrorKind)] = &[
    ("aborted", ModelErrorKind::Transport),
    ("already_exists", ModelErrorKind::InvalidRequest),
    ("api_error", ModelErrorKind::Transport),
    ("cancelled", ModelErrorKind::Transport),
    ("deadline_exceeded", ModelErrorKind::Transport),
    ("failed_precondition", ModelErrorKind::InvalidRequest),
    ("internal", ModelErrorKind::Transport),
    ("internal_error", ModelErrorKind::Transport),
    ("internal_server_error", ModelErrorKind::Transport),
    ("internalservererror", ModelErrorKind::Transport),
    ("badrequesterror", ModelErrorKind::InvalidRequest),
    ("not_found", ModelErrorKind::InvalidRequest),
    ("notfounderror", ModelErrorKind::InvalidRequest),
    ("out_of_range", ModelErrorKind::InvalidRequest),
    ("server_error", ModelErrorKind::Transport),
    ("unimplemented", ModelErrorKind::InvalidRequest),
    ("upstream_error", ModelErrorKind::Transport),
    ("vector_store_timeout", ModelErrorKind::Transport),
];

/// How vague names of refused requests begin: `invalid_request_error`, `unsupported_value`, `image_too_large`.
pub(super) const VAGUE_REFUSALS: &[&str] =
    &["invalid_", "unsupported_", "missing_", "image_", "unknown_param"];

/// What an HTTP status says by itself.
pub(super) const STATUSES: &[(u16, ModelErrorKind)] = &[
    (400, ModelErrorKind::InvalidRequest),
    (401, ModelErrorKind::Authentication),
    (402, ModelErrorKind::QuotaExhausted),
    (403, ModelErrorKind::Permission),
    (404, ModelErrorKind::InvalidRequest),
    (408, ModelErrorKind::Transport),
    (413, ModelErrorKind::ContextOverflow),
    (422, ModelErrorKind::InvalidRequest),
    (429, ModelErrorKind::RateLimited),
    (498, ModelErrorKind::Overloaded),
    (499, ModelErrorKind::Transport),
    (503, ModelErrorKind::Overloaded),
    (529, ModelErrorKind::Overloaded),
];

/// Statuses of requests that fail again however often they are sent (requirement M10).
pub(super) const FINAL: &[u16] = &[400, 401, 403, 404, 413, 422];

/// Refused for its size: the model's window. Bedrock, Cerebras, Gemini, Groq, llama.cpp, LM Studio, OpenAI, vLLM, xAI.
pub(super) const OVERFLOW: &[&str] = &[
    "prompt is too long",
    "input is too long",
    "context length",
    "context window",
    "context limit",
    "context size",
    "context_length",
    "maximum number of tokens allowed",
    "maximum model length",
    "maximum prompt length",
    "maximum allowed input length",
    "model token limit",
    "reduce the length of the messages",
    "input tokens exceed the configured limit",
    "prompt token count",
    "when context the overflows",
    "while limit is",
];

/// Refused for its size: it is larger than the limit of a whole minute, so no wait makes it fit.
pub(super) const TOO_LARGE_AT_ONCE: &[&str] = &["request too large", "tokens must be reduced"];

/// A rate limit that is no matter of minutes, unless the answer says when to come back.
pub(super) const SPENT: &[&str] =
    &["usage limit", "spend limit", "spending limit", "spend cap", "credit", "quota", "insufficient balance"];

/// A refusal that is about money.
pub(super) const NO_CREDIT: &[&str] = &[
    "credit balance is too low",
    "reached your specified api usage limits",
    "insufficient balance",
    "available credits",
    "any credits",
    "key limit exceeded",
    "spending limit",
];

/// A refusal that is about the key, by providers that call it an invalid request.
pub(super) const BAD_KEY: &[&str] =
    &["incorrect api key", "invalid api key", "api key not valid", "api key is invalid", "api key not found"];

/// A failure of the server that is about the request: a local server that was started without what it needs.
pub(super) const UNABLE: &[&str] = &[
    "input is not supported",
    "requires --jinja",
    "cannot use both",
    "does not support tools",
    "does not support thinking",
    "failed to parse grammar",
];
