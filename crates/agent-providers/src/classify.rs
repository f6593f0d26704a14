//! One place that turns a provider's refusal into a class of failure (requirement M9).

use std::time::{Duration, SystemTime};

use agent_core::{ModelError, ModelErrorKind, floor_boundary};
use serde::Deserialize;

use crate::wire::json::{Loose, LooseInt, mended};

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
/// Order of trust: words that name an overflow or an empty account, the type in the body, the status.
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
    let (text, _) = mended(&text);
    let said = Said::read(&text);
    let status = head.status.filter(|status| *status >= 300).or(said.status);
    let retry_after_ms = retry_after(head);
    let by_type = TYPES.iter().find(|(name, _)| *name == said.kind).map(|(_, kind)| *kind);
    let by_status = || status.map_or(ModelErrorKind::Transport, of_status);
    let mut kind = by_type.unwrap_or_else(by_status);
    let words = said.message.to_lowercase();
    if kind == ModelErrorKind::InvalidRequest && has(&words, OVERFLOW) {
        kind = ModelErrorKind::ContextOverflow;
    }
    let capped = kind == ModelErrorKind::RateLimited && retry_after_ms.is_none() && has(&words, SPENT);
    let refused = kind == ModelErrorKind::InvalidRequest && has(&words, NO_CREDIT);
    if capped || refused {
        kind = ModelErrorKind::QuotaExhausted;
    }
    let mut error = ModelError::new(kind, message(status, &said, &text, head));
    error.retry_after_ms = retry_after_ms.filter(|_| kind.retryable());
    // A conflict is over when the other request is: the provider's own clients try it again.
    error.retryable |= status == Some(409);
    error
}

/// At most `limit` bytes of a text, on a character boundary, with nothing in it that looks like a key.
pub(crate) fn excerpt(text: &str, limit: usize) -> String {
    let mut clean = redacted(text);
    if clean.len() > limit {
        clean.truncate(floor_boundary(&clean, limit));
        clean.push('\u{2026}');
    }
    clean
}

/// A data line that is not what the format promises.
pub(crate) fn protocol(what: &str, quote: &str) -> ModelError {
    let quote = excerpt(quote, QUOTE);
    ModelError::new(
        ModelErrorKind::Protocol,
        format!("{what}: {quote:?}; check that the address speaks the format it is configured for"),
    )
}

/// An error that was found in the body, with what the head says to it: an encoding that may be why bytes could not be
/// read, and how long to wait.
pub(crate) fn with_head(error: ModelError, head: &ResponseHead<'_>) -> ModelError {
    let hint = encoding_hint(head).filter(|_| error.kind == ModelErrorKind::Protocol);
    let wait = || retry_after(head).filter(|_| error.retryable && error.kind != ModelErrorKind::Interrupted);
    ModelError {
        retry_after_ms: error.retry_after_ms.or_else(wait),
        message: error.message + &hint.unwrap_or_default(),
        ..error
    }
}

/// What to do about an encoding of the content: none is asked for, so none is undone.
fn encoding_hint(head: &ResponseHead<'_>) -> Option<String> {
    let encoding = head.header("content-encoding").filter(|name| !name.is_empty())?;
    if encoding.eq_ignore_ascii_case("identity") {
        return None;
    }
    let encoding = excerpt(encoding, QUOTE);
    Some(format!(
        "; it arrived with content-encoding {encoding}, which was not asked for: turn compression off in the server or the proxy in front of it"
    ))
}

/// Hides what looks like a secret key: providers quote a wrong one back.
fn redacted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, start)) = KEY_STARTS.iter().filter_map(|s| Some((rest.find(s)?, *s))).min() {
        let (before, key) = rest.split_at(at);
        out.push_str(before);
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '+' | '=');
        let secret = key.get(start.len()..).unwrap_or_default();
        let len = secret.find(|c| !good(c)).unwrap_or(secret.len());
        let (key, after) = key.split_at(start.len() + len);
        out.push_str(if len >= SHORTEST_KEY { "[redacted]" } else { key });
        rest = after;
    }
    out + rest
}

fn of_status(status: u16) -> ModelErrorKind {
    let known = STATUSES.iter().find(|(code, _)| *code == status).map(|(_, kind)| *kind);
    known.unwrap_or(match status {
        500.. => ModelErrorKind::Transport,
        _ => ModelErrorKind::InvalidRequest,
    })
}

fn message(status: Option<u16>, said: &Said, text: &str, head: &ResponseHead<'_>) -> String {
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
    if !said.kind.is_empty() {
        message.push_str(&format!(" ({})", excerpt(&said.kind, QUOTE)));
    }
    message.push_str(&format!(": {words}"));
    let request = head.header("request-id").map(str::to_owned).unwrap_or_else(|| said.request.clone());
    if !request.is_empty() {
        message.push_str(&format!(" [request {}]", excerpt(&request, QUOTE)));
    }
    message
}

/// How long to wait, in milliseconds: milliseconds, then seconds, then a date.
fn retry_after(head: &ResponseHead<'_>) -> Option<u64> {
    if let Some(ms) = head.header("retry-after-ms").and_then(|value| value.parse::<f64>().ok()) {
        return millis(ms / 1000.0);
    }
    let value = head.header("retry-after")?;
    if let Ok(seconds) = value.parse::<f64>() {
        return millis(seconds);
    }
    let at = httpdate::parse_http_date(value).ok()?;
    let wait = at.duration_since(head.now).unwrap_or_default();
    u64::try_from(wait.as_millis()).ok()
}

fn millis(seconds: f64) -> Option<u64> {
    let wait = Duration::try_from_secs_f64(seconds).ok()?;
    u64::try_from(wait.as_millis()).ok()
}

fn has(words: &str, any: &[&str]) -> bool {
    any.iter().any(|part| words.contains(part))
}

/// What an error body says, whichever of the usual shapes it has.
#[derive(Debug, Default)]
struct Said {
    kind: String,
    message: String,
    request: String,
    status: Option<u16>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    error: Option<&'a serde_json::value::RawValue>,
    #[serde(borrow, default)]
    message: Loose<'a>,
    #[serde(borrow, default)]
    request_id: Loose<'a>,
}

#[derive(Deserialize, Default)]
struct Inner<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Loose<'a>,
    #[serde(borrow, default)]
    message: Loose<'a>,
    #[serde(default)]
    code: LooseInt,
}

impl Said {
    fn read(text: &str) -> Self {
        let Ok(envelope) = serde_json::from_str::<Envelope<'_>>(text.trim()) else { return Self::default() };
        let request = envelope.request_id.into_string();
        let error = envelope.error.map_or("null", |raw| raw.get());
        if let Ok(Loose(Some(message))) = serde_json::from_str::<Loose<'_>>(error) {
            return Self { message: message.into_owned(), request, ..Self::default() };
        }
        let inner = serde_json::from_str::<Inner<'_>>(error).unwrap_or_default();
        let message = inner.message.0.or(envelope.message.0).unwrap_or_default().into_owned();
        let status =
            inner.code.0.and_then(|code| u16::try_from(code).ok()).filter(|code| (400..600).contains(code));
        Self { kind: inner.kind.into_string(), message, request, status }
    }
}

const STATUSES: &[(u16, ModelErrorKind)] = &[
    (400, ModelErrorKind::InvalidRequest),
    (401, ModelErrorKind::Authentication),
    (402, ModelErrorKind::QuotaExhausted),
    (403, ModelErrorKind::Permission),
    (408, ModelErrorKind::Transport),
    (413, ModelErrorKind::ContextOverflow),
    (429, ModelErrorKind::RateLimited),
    (503, ModelErrorKind::Overloaded),
    (529, ModelErrorKind::Overloaded),
];
const TYPES: &[(&str, ModelErrorKind)] = &[
    ("invalid_request_error", ModelErrorKind::InvalidRequest),
    ("authentication_error", ModelErrorKind::Authentication),
    ("billing_error", ModelErrorKind::QuotaExhausted),
    ("insufficient_quota", ModelErrorKind::QuotaExhausted),
    ("permission_error", ModelErrorKind::Permission),
    ("not_found_error", ModelErrorKind::InvalidRequest),
    ("conflict_error", ModelErrorKind::InvalidRequest),
    ("request_too_large", ModelErrorKind::ContextOverflow),
    ("rate_limit_error", ModelErrorKind::RateLimited),
    ("api_error", ModelErrorKind::Transport),
    ("timeout_error", ModelErrorKind::Transport),
    ("overloaded_error", ModelErrorKind::Overloaded),
];
const OVERFLOW: &[&str] = &[
    "prompt is too long",
    "input is too long",
    "context length",
    "context window",
    "context limit",
    "context size",
    "context_length",
    "maximum number of tokens allowed",
    "while limit is",
];
const SPENT: &[&str] = &["usage limit", "spend limit", "spending limit", "spend cap", "credit", "quota"];
const NO_CREDIT: &[&str] = &["credit balance is too low", "reached your specified api usage limits"];
const KEY_STARTS: &[&str] = &["sk-", "Bearer "];
const SHORTEST_KEY: usize = 5;
pub(crate) const QUOTE: usize = 200;
const LONGEST_MESSAGE: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, headers: &[(&str, &str)], body: &str) -> ModelError {
        let headers: Vec<_> = headers.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        // Sun, 06 Nov 1994 08:49:37 GMT.
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        classify(
            &ResponseHead { status: (status > 0).then_some(status), headers: &headers, now },
            body.as_bytes(),
        )
    }

    fn error(kind: &str, message: &str) -> String {
        format!(
            r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}},"request_id":"req_7"}}"#
        )
    }

    /// A failure of this status and body has this class, and may or may not be tried again.
    #[track_caller]
    fn check(status: u16, body: &str, kind: ModelErrorKind, retryable: bool) {
        let error = of(status, &[], body);
        assert_eq!((error.kind, error.retryable), (kind, retryable), "{error}");
    }

    #[test]
    fn statuses_and_types() {
        use ModelErrorKind as K;
        check(400, &error("invalid_request_error", "bad"), K::InvalidRequest, false);
        check(401, &error("authentication_error", "no"), K::Authentication, false);
        check(402, &error("billing_error", "pay"), K::QuotaExhausted, false);
        check(403, &error("permission_error", "no"), K::Permission, false);
        check(404, &error("not_found_error", "model: x"), K::InvalidRequest, false);
        check(409, &error("conflict_error", "busy"), K::InvalidRequest, true);
        check(413, &error("request_too_large", "big"), K::ContextOverflow, false);
        check(429, &error("rate_limit_error", "slow"), K::RateLimited, true);
        check(500, &error("api_error", "oops"), K::Transport, true);
        check(504, &error("timeout_error", "late"), K::Transport, true);
        check(529, &error("overloaded_error", "full"), K::Overloaded, true);
        for (status, kind) in [
            (401, K::Authentication),
            (413, K::ContextOverflow),
            (422, K::InvalidRequest),
            (429, K::RateLimited),
        ] {
            check(status, "", kind, kind.retryable());
        }
        for (status, kind) in [
            (500, K::Transport),
            (502, K::Transport),
            (503, K::Overloaded),
            (529, K::Overloaded),
            (599, K::Transport),
        ] {
            check(status, "<html>", kind, true);
        }
        check(500, &error("overloaded_error", "full"), K::Overloaded, true);
        check(0, &error("overloaded_error", "full"), K::Overloaded, true);
        check(200, &error("overloaded_error", "full"), K::Overloaded, true);
        check(0, r#"{"error":{"code":502,"message":"upstream"}}"#, K::Transport, true);
        check(0, &error("brand_new_error", "?"), K::Transport, true);
    }

    #[test]
    fn overflow_is_told_by_its_words() {
        use ModelErrorKind::ContextOverflow as Overflow;
        check(
            400,
            &error("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"),
            Overflow,
            false,
        );
        check(400, &error("validation", "Input is too long for requested model."), Overflow, false);
        check(400, r#"{"error":"exceeds the available context size"}"#, Overflow, false);
        check(400, r#"{"message":"Current length is 9 while limit is 8"}"#, Overflow, false);
        check(429, &error("rate_limit_error", "context window requests"), ModelErrorKind::RateLimited, true);
    }

    #[test]
    fn an_empty_account_is_no_rate_limit() {
        use ModelErrorKind as K;
        let cap = error("rate_limit_error", "You have reached your spend limit");
        check(429, &cap, K::QuotaExhausted, false);
        assert_eq!(of(429, &[("retry-after", "3")], &cap).kind, K::RateLimited, "it says when to come back");
        check(
            400,
            &error("invalid_request_error", "Your credit balance is too low"),
            K::QuotaExhausted,
            false,
        );
        check(429, &error("insufficient_quota", "exceeded your current quota"), K::QuotaExhausted, false);
    }

    #[test]
    fn waits_in_every_form() {
        let wait = |headers: &[(&str, &str)]| of(429, headers, "").retry_after_ms;
        assert_eq!(wait(&[("Retry-After", "12")]), Some(12_000));
        assert_eq!(wait(&[("retry-after", "0.5")]), Some(500));
        assert_eq!(wait(&[("retry-after", "9"), ("retry-after-ms", "250")]), Some(250));
        assert_eq!(wait(&[("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT")]), Some(10_000));
        assert_eq!(wait(&[("retry-after", "Sun, 06 Nov 1994 08:49:07 GMT")]), Some(0), "it is past");
        assert_eq!(wait(&[("retry-after", "soon")]), None);
        assert_eq!(wait(&[("retry-after", "-1")]), None);
        assert_eq!(of(400, &[("retry-after", "12")], "").retry_after_ms, None, "waiting does not help");
    }

    #[test]
    fn messages_are_short_and_hold_no_key() {
        let error =
            of(401, &[], &error("authentication_error", "invalid x-api-key: sk-ant-api03-abcDEF_123-45"));
        assert_eq!(
            error.message,
            "the provider answered 401 (authentication_error): invalid x-api-key: [redacted] [request req_7]"
        );
        assert_eq!(redacted("risk-free, Bearer abc.def/ghi= x sk-1"), "risk-free, [redacted] x sk-1");
        let page = format!("<html>{}</html>", "\u{e9}".repeat(500));
        let error = of(502, &[], &page);
        assert!(error.message.len() < 300 && error.message.contains("<html>\u{e9}"), "{}", error.message);
        assert_eq!(
            of(503, &[("request-id", "req_1")], " ").message,
            "the provider answered 503: without a message [request req_1]"
        );
    }
}
