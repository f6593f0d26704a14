//! Failures of every provider by shape, status and words.

use std::time::Duration;

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
    format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}},"request_id":"req_7"}}"#)
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
    for (status, kind) in
        [(401, K::Authentication), (413, K::ContextOverflow), (422, K::InvalidRequest), (429, K::RateLimited)]
    {
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
    check(400, &error("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"), Overflow, false);
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
    check(400, &error("invalid_request_error", "Your credit balance is too low"), K::QuotaExhausted, false);
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
    let error = of(401, &[], &error("authentication_error", "invalid x-api-key: sk-ant-api03-abcDEF_123-45"));
    assert_eq!(
        error.message,
        "the provider answered 401 (authentication_error): invalid x-api-key: [redacted] [request req_7]"
    );
    let page = format!("<html>{}</html>", "\u{e9}".repeat(500));
    let error = of(502, &[], &page);
    assert!(error.message.len() < 300 && error.message.contains("<html>\u{e9}"), "{}", error.message);
    assert_eq!(
        of(503, &[("request-id", "req_1")], " ").message,
        "the provider answered 503: without a message [request req_1]"
    );
}
