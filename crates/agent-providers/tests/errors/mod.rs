//! Failures of every vendor, by class (requirement M9).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, SystemTime};

use agent_core::{ModelError, ModelErrorKind};
use agent_providers::{ResponseHead, classify};
use proptest::prelude::*;
use serde::Deserialize;

use crate::support::{corpus, files, read};

/// A failed response and the class it has.
#[derive(Deserialize)]
struct Row {
    case: String,
    status: Option<u16>,
    headers: BTreeMap<String, String>,
    body: String,
    kind: ModelErrorKind,
    retryable: bool,
    retry_after_ms: Option<u64>,
}

/// A line of a recorded conversation.
#[derive(Deserialize)]
struct Exchange {
    response: Recorded,
}

#[derive(Deserialize)]
struct Recorded {
    status: u16,
    body: String,
}

fn class(status: Option<u16>, headers: &BTreeMap<String, String>, body: &[u8]) -> ModelError {
    let headers: Vec<_> = headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    // Fri, 15 Jan 2027 08:00:00 GMT.
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    classify(&ResponseHead { status, headers: &headers, now }, body)
}

#[test]
fn every_vendor_by_its_shapes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/errors/vendors.jsonl");
    let text = String::from_utf8(read(&path)).unwrap();
    let (mut wrong, mut kinds) = (Vec::new(), BTreeSet::new());
    for line in text.lines() {
        let row: Row = serde_json::from_str(line).unwrap();
        let error = class(row.status, &row.headers, row.body.as_bytes());
        kinds.insert(row.kind);
        if (error.kind, error.retryable, error.retry_after_ms)
            != (row.kind, row.retryable, row.retry_after_ms)
        {
            wrong.push(format!(
                "{}: {:?}, retryable {}, {:?}",
                row.case, error, error.retryable, error.retry_after_ms
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(kinds.len(), 8, "every class a response can have, found {kinds:?}");
}

#[test]
fn messages_say_who_failed() {
    let check = |status: u16, body: &str, expect: &str| {
        assert_eq!(class(Some(status), &BTreeMap::new(), body.as_bytes()).message, expect);
    };
    check(
        429,
        r#"{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"{\"error\":{\"message\":\"busy\",\"code\":\"slow_down\"}}","provider_name":"Tea House"}}}"#,
        "the provider answered 429 (slow_down): Provider returned error: Tea House: busy",
    );
    check(
        422,
        r#"{"detail":[{"loc":["body","model"],"msg":"Field required"}]}"#,
        r#"the provider answered 422: ["body","model"]: Field required"#,
    );
    check(502, "<html><title>502 Bad Gateway</title></html>", "the provider answered 502: 502 Bad Gateway");
    check(
        400,
        r#"{"code":"invalid-argument","error":"Incorrect API key provided."}"#,
        "the provider answered 400 (invalid-argument): Incorrect API key provided.",
    );
    // What no honest server sends is read to a depth and not beyond.
    let raw = format!("{}1{}", r#"{"metadata":{"raw":"#.repeat(200_000), "}}".repeat(200_000));
    assert_eq!(class(Some(500), &BTreeMap::new(), raw.as_bytes()).kind, ModelErrorKind::Transport);
    let nested = format!("{}1{}", r#"{"error":"#.repeat(200_000), "}".repeat(200_000));
    assert_eq!(class(Some(500), &BTreeMap::new(), nested.as_bytes()).kind, ModelErrorKind::Transport);
}

proptest! {
    /// Whatever a server says, there is a class, and a wait only where trying again can help.
    #[test]
    fn any_body_has_a_class(
        status in proptest::option::of(100_u16..700),
        body in prop_oneof![".{0,80}", r#"[\[\]{}:,"a-z0-9 .]{0,80}"#],
        (name, value) in (prop_oneof!["retry-after(-ms)?", "x-ratelimit-reset-[a-z]{1,3}"], "[0-9a-zA-Z:.+ -]{0,32}"),
    ) {
        let remaining = (name.replace("reset", "remaining"), "0".to_owned());
        let headers = BTreeMap::from([remaining, (name, value)]);
        let error = class(status, &headers, body.as_bytes());
        prop_assert!(error.retryable || error.retry_after_ms.is_none());
        prop_assert!(!matches!(status, Some(400 | 401 | 403 | 404 | 413 | 422)) || !error.retryable);
        prop_assert!(error.message.len() < 2_000);
    }
}

#[test]
fn recorded_failures_have_their_class() {
    let Some(folder) = corpus("recorded_failures_have_their_class") else { return };
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for vendor in VENDORS {
        for (_, bytes) in files(&folder.join("recorded/exchanges").join(vendor)) {
            let text = String::from_utf8(bytes).unwrap();
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            let failed = lines.map(|line| serde_json::from_str::<Exchange>(line).unwrap().response);
            for response in failed.filter(|response| response.status >= 400) {
                let error = class(Some(response.status), &BTreeMap::new(), response.body.as_bytes());
                assert!(!error.message.contains("readable"), "{vendor}: {error}");
                let retry = if error.retryable { " retryable" } else { "" };
                let line = format!("{vendor} {} {}{retry}", response.status, error.kind.as_str());
                *counts.entry(line).or_default() += 1;
            }
        }
    }
    let lines: Vec<_> = counts.iter().map(|(line, count)| format!("{line}: {count}")).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    anthropic 400 invalid_request: 3
    anthropic 401 authentication: 2
    anthropic 404 invalid_request: 1
    deepseek 400 invalid_request: 7
    deepseek 401 authentication: 1
    gemini 404 invalid_request: 1
    groq 401 authentication: 1
    llamacpp 400 context_overflow: 1
    llamacpp 400 invalid_request: 3
    llamacpp 500 invalid_request: 3
    mistral 400 invalid_request: 3
    openai 400 invalid_request: 5
    openai 401 authentication: 2
    openrouter 400 invalid_request: 1
    xai 400 authentication: 1
    xai 400 invalid_request: 1
    ");
}

#[test]
fn recorded_streams_that_fail() {
    let Some(folder) = corpus("recorded_streams_that_fail") else { return };
    let streams = folder.join("recorded/streams");
    let none = BTreeMap::new();
    let google = class(Some(429), &none, &read(&streams.join("google-429-retry-info.json")));
    assert_eq!(
        (google.kind, google.retryable, google.retry_after_ms),
        (ModelErrorKind::RateLimited, true, Some(34_400))
    );
    let lines = String::from_utf8(read(&streams.join("openai-error.1.chunks.txt"))).unwrap();
    let is_error =
        |line: &&str| line.contains(r#""type":"error""#) || line.contains(r#""type":"response.failed""#);
    let errors: Vec<_> =
        lines.lines().filter(is_error).map(|line| class(None, &none, line.as_bytes())).collect();
    assert_eq!(errors.len(), 2);
    for error in errors {
        assert_eq!((error.kind, error.retryable), (ModelErrorKind::QuotaExhausted, false), "{error}");
    }
}

const VENDORS: &[&str] = &[
    "anthropic",
    "deepseek",
    "gemini",
    "groq",
    "llamacpp",
    "mistral",
    "ollama",
    "openai",
    "openrouter",
    "xai",
];
