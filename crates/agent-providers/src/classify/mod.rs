//! One place that turns a provider's refusal into a class of failure (requirement M9).

mod excerpt;
mod said;
mod table;
mod wait;

use std::time::SystemTime;

use agent_core::{ModelError, ModelErrorKind};

use self::excerpt::encoding_hint;
pub(crate) use self::excerpt::{QUOTE, excerpt, protocol};
use self::said::{Quota, Said};
use self::table::{
    BAD_KEY, FINAL, NAMES, NO_CREDIT, OVERFLOW, SPENT, STATUSES, TOO_LARGE_AT_ONCE, UNABLE, VAGUE,
    VAGUE_REFUSALS,
};
use crate::wire::json::sound;

/// What is known of a response besides its bytes.
#[derive(Debug, Clone, Copy)]
#[expect(
    clippy::exhaustive_structs,
    reason = "an argument record, written as a literal by transports and tests"
)]
pub struct ResponseHead<'h> {
    /// The HTTP status; `None` for an error inside a stream, or when it was not recorded.
    pub status: Option<u16>,
    /// The headers; names in any case.
    pub headers: &'h [(String, String)],
    /// The time of arrival, against which a date in `retry-after` is measured.
    pub now: SystemTime,
}

impl<'h> ResponseHead<'h> {
    /// A response of which nothing is known but its bytes.
    pub fn unknown() -> ResponseHead<'static> {
        ResponseHead { status: None, headers: &[], now: SystemTime::UNIX_EPOCH }
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&'h str> {
        let mut found = self.headers.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.trim())
    }
}

/// The class of a failed response, in words that tell what to do and never hold a key.
///
/// One function for every provider: it reads the error bodies of Anthropic, OpenAI (both formats, streams too), Google,
/// Mistral, vLLM, llama.cpp, Ollama, OpenRouter, xAI and others, and plain text or a proxy's page. Order of trust: a
/// code or type that says what failed, the status, a name that says little; then words that tell an overflow, a bad
/// key or an empty account from other refusals. What is answered with 400, 401, 403, 404, 413 or 422 is never
/// retryable, and neither is what the server marks with `x-should-retry: false`.
///
/// ```
/// use agent_core::ModelErrorKind;
/// use agent_providers::{ResponseHead, classify};
///
/// let head = ResponseHead { status: Some(529), ..ResponseHead::unknown() };
/// let error = classify(&head, br#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#);
/// assert_eq!(error.kind, ModelErrorKind::Overloaded);
/// assert!(error.retryable);
/// ```
pub fn classify(head: &ResponseHead<'_>, body: &[u8]) -> ModelError {
    let text = String::from_utf8_lossy(body);
    let text = sound(&text);
    let said = Said::read(&text);
    let status = head.status.filter(|status| *status >= 300).or(said.status);
    let asked = wait::asked(head, &said);
    let (named, name) = of_names(&said.names, status);
    let kind = told_apart(named, status, asked.is_some(), &said);
    let mut error = ModelError::new(kind, message(status, name, &said, &text, head));
    // A conflict is over when the other request is: the provider's own clients try it again.
    let is_final = status.is_some_and(|status| FINAL.contains(&status))
        || head.header("x-should-retry").is_some_and(|value| value.eq_ignore_ascii_case("false"));
    error.retryable = !is_final && (kind.retryable() || status == Some(409));
    let reset = || wait::reset(head, &said).filter(|_| kind == ModelErrorKind::RateLimited);
    error.retry_after_ms = asked.or_else(reset).filter(|_| error.retryable);
    error
}

/// An error that was found in the body, with what the head says to it: an encoding that may be why bytes could not be
/// read, and how long to wait.
pub(crate) fn with_head(error: ModelError, head: &ResponseHead<'_>) -> ModelError {
    let hint = encoding_hint(head).filter(|_| error.kind == ModelErrorKind::Protocol);
    let wait = || {
        wait::asked(head, &Said::default())
            .filter(|_| error.retryable && error.kind != ModelErrorKind::Interrupted)
    };
    ModelError {
        retry_after_ms: error.retry_after_ms.or_else(wait),
        message: error.message + &hint.unwrap_or_default(),
        ..error
    }
}

/// The class by names and status, and the name to show.
fn of_names(names: &[String], status: Option<u16>) -> (ModelErrorKind, &str) {
    let first = names.first().map_or("", String::as_str);
    let look_up = |table: &[(&str, ModelErrorKind)], name: &str| {
        let name = name.split(':').next().unwrap_or_default().to_ascii_lowercase().replace('-', "_");
        table.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    };
    if let Some(found) = names.iter().find_map(|name| Some((look_up(NAMES, name)?, name.as_str()))) {
        return found;
    }
    let by_status = STATUSES.iter().find(|(code, _)| Some(*code) == status).map(|(_, kind)| *kind);
    let vague = |name: &String| {
        let is_refusal = VAGUE_REFUSALS.iter().any(|start| name.to_ascii_lowercase().starts_with(start));
        look_up(VAGUE, name).or(is_refusal.then_some(ModelErrorKind::InvalidRequest))
    };
    let kind = by_status.or_else(|| names.iter().find_map(vague)).unwrap_or(match status {
        Some(500..) | None => ModelErrorKind::Transport,
        Some(_) => ModelErrorKind::InvalidRequest,
    });
    (kind, first)
}

/// Tells apart by words what providers put under one name.
fn told_apart(kind: ModelErrorKind, status: Option<u16>, says_when: bool, said: &Said) -> ModelErrorKind {
    use ModelErrorKind as K;
    let words = said.message.to_lowercase();
    let has = |any: &[&str]| any.iter().any(|part| words.contains(part));
    let failed = kind == K::Transport && status.is_some_and(|status| status >= 500);
    let refused = kind == K::InvalidRequest;
    if (refused || failed) && has(OVERFLOW) {
        K::ContextOverflow
    } else if (refused || kind == K::Permission) && has(NO_CREDIT) {
        K::QuotaExhausted
    } else if refused && has(BAD_KEY) {
        K::Authentication
    } else if failed && has(UNABLE) {
        K::InvalidRequest
    } else if kind == K::RateLimited {
        limited(says_when, said.quota, &has)
    } else {
        kind
    }
}

/// Tells a limit that time lifts from a request that is too large for it and from an account that is empty.
fn limited(says_when: bool, quota: Option<Quota>, has: &dyn Fn(&[&str]) -> bool) -> ModelErrorKind {
    match quota {
        Some(Quota::Daily) => ModelErrorKind::QuotaExhausted,
        _ if has(TOO_LARGE_AT_ONCE) => ModelErrorKind::ContextOverflow,
        None if !says_when && has(SPENT) => ModelErrorKind::QuotaExhausted,
        None | Some(Quota::Short) => ModelErrorKind::RateLimited,
    }
}

fn message(status: Option<u16>, name: &str, said: &Said, text: &str, head: &ResponseHead<'_>) -> String {
    let words = if said.message.trim().is_empty() {
        match text.trim() {
            "" => "without a message".to_owned(),
            text => {
                let hint = encoding_hint(head).unwrap_or_default();
                format!("without a readable message: {}{hint}", excerpt(text, QUOTE))
            }
        }
    } else {
        excerpt(said.message.trim(), LONGEST_MESSAGE)
    };
    let mut message = match status {
        Some(status) => format!("the provider answered {status}"),
        None => "the provider answered with an error".to_owned(),
    };
    if !name.is_empty() {
        message.push_str(&format!(" ({})", excerpt(name, QUOTE)));
    }
    message.push_str(&format!(": {words}"));
    let request = head.header("request-id").or_else(|| head.header("x-request-id")).unwrap_or(&said.request);
    if !request.is_empty() {
        message.push_str(&format!(" [request {}]", excerpt(request, QUOTE)));
    }
    message
}

const LONGEST_MESSAGE: usize = 500;

#[cfg(test)]
mod tests;
