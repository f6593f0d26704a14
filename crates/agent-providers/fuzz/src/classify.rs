//! Failed responses: each has a class, short words without keys, and a wait only where waiting helps.

use agent_core::ModelErrorKind;
use agent_providers::{ResponseHead, classify};

use crate::cuts::seed;

/// Checks the bytes as the body of an error of many statuses, with a header made of them.
pub fn check(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let after = text.chars().take((seed(data) % 12) as usize).collect();
    let headers = [("Retry-After".to_owned(), after)];
    for status in STATUSES {
        for headers in [&headers[..], &[]] {
            one(&ResponseHead { status, headers, ..ResponseHead::unknown() }, data);
        }
    }
}

fn one(head: &ResponseHead<'_>, body: &[u8]) {
    let error = classify(head, body);
    assert_eq!(error, classify(head, body), "the class depends on more than the response");
    assert!(!error.message.is_empty() && error.message.len() < LONGEST, "{} bytes", error.message.len());
    assert!(error.retry_after_ms.is_none() || error.retryable, "a wait that cannot help: {error:?}");
    let ours = matches!(error.kind, ModelErrorKind::Interrupted | ModelErrorKind::Cancelled);
    assert!(!ours, "a response that came whole is neither interrupted nor cancelled: {error:?}");
}

const STATUSES: [Option<u16>; 9] =
    [None, Some(400), Some(401), Some(404), Some(409), Some(413), Some(429), Some(500), Some(529)];

/// Words of the provider are cut; three quotes and what is said around them fit in this many bytes.
const LONGEST: usize = 4096;
