//! Ways a provider fails, to be put in front of a reply.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::overflow::Wording;
use crate::tape::{from_hex, to_hex};

/// One failed answer of the simulated provider (requirement V2).
///
/// `after` counts server-sent events that still go out; it is cut down so that the fault always comes before the
/// last event. A request that is not streamed has no events: an error event becomes its status, a cut leaves
/// half of the body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Fault {
    /// A status with the provider's error body, in place of an answer.
    Status {
        /// For example 429, 529, 500, 401, 400, 413.
        status: u16,
        /// Seconds in the `retry-after` header.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<u32>,
        /// The words in the body; by default those the provider uses.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// A refusal for now that says when to come back, in one of the forms that providers use.
    RateLimited {
        /// Milliseconds to wait.
        wait_ms: u64,
        /// How that is told; by default as seconds in the `retry-after` header.
        #[serde(default)]
        told: RetryHint,
        /// By default 429.
        #[serde(default = "too_many_requests")]
        status: u16,
    },
    /// The prompt is too long for the model, in the words of some provider.
    Overflow {
        /// Whose words; by default those of the service that was asked.
        #[serde(default)]
        wording: Wording,
    },
    /// An `error` event in a stream that began well.
    ErrorEvent {
        /// Events before it.
        after: usize,
        /// The provider's word, for example `overloaded_error`.
        kind: String,
        /// The words in it.
        message: String,
    },
    /// The connection breaks in the middle of the answer.
    Cut {
        /// Events before it.
        after: usize,
    },
    /// The answer stays open and nothing more comes, until the client or the server goes away.
    Stall {
        /// Events before it.
        after: usize,
    },
    /// The reply itself, with a pause before each event.
    Slow {
        /// Milliseconds before each event.
        delay_ms: u64,
    },
    /// The reply itself, with events that come twice. An answer that is not streamed has none.
    Duplicate {
        /// Which event comes twice, counted from 0; by default each of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        event: Option<usize>,
    },
    /// The connection is closed without any answer.
    Hangup,
    /// This answer, byte for byte.
    Raw(RawReply),
}

/// The forms in which providers say when to come back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RetryHint {
    /// Seconds in the `retry-after` header, rounded up.
    #[default]
    RetryAfter,
    /// Milliseconds in the `retry-after-ms` header.
    RetryAfterMs,
    /// An HTTP date in the `retry-after` header.
    HttpDate,
    /// Headers that say that a limit is used up and when it is filled again, as the service that is asked writes them.
    Reset,
    /// Words in the body: "Please try again in 7.66s."
    Words,
    /// A detail in the body, as Google writes it: `"retryDelay": "7.66s"`.
    Detail,
}

/// A recorded answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "ReplyLine", try_from = "ReplyLine")]
#[expect(clippy::exhaustive_structs, reason = "a record of an HTTP answer")]
pub struct RawReply {
    /// The HTTP status.
    pub status: u16,
    /// The headers; those about framing (`content-length`, `transfer-encoding`, `connection`) are made anew.
    pub headers: BTreeMap<String, String>,
    /// The body. In a file it is a JSON string, `body`; one that is no text is `body_hex`, two digits a byte.
    pub body: Bytes,
}

/// An answer as it stands in a file.
#[derive(Serialize, Deserialize)]
struct ReplyLine {
    status: u16,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body_hex: Option<String>,
}

impl Fault {
    /// A status with the provider's usual words.
    pub fn status(status: u16) -> Self {
        Self::Status { status, retry_after: None, message: None }
    }

    /// A prompt that is too long, in the words of the service that is asked.
    pub fn overflow() -> Self {
        Self::Overflow { wording: Wording::Own }
    }

    /// The reply itself with each event twice.
    pub fn duplicates() -> Self {
        Self::Duplicate { event: None }
    }

    /// Whether the reply itself is given, in an unusual way.
    pub(crate) fn delivers(&self) -> bool {
        matches!(self, Self::Slow { .. } | Self::Duplicate { .. })
    }

    /// Whether an answer begins, so that the request is accounted for.
    pub(crate) fn begins(&self, streamed: bool) -> bool {
        let in_stream = matches!(self, Self::ErrorEvent { .. }) && streamed;
        self.delivers() || in_stream || matches!(self, Self::Cut { .. } | Self::Stall { .. })
    }

    /// Status 429 that asks to wait this many seconds.
    pub fn rate_limited(retry_after: u32) -> Self {
        Self::Status { status: 429, retry_after: Some(retry_after), message: None }
    }

    /// An `overloaded_error` event after some events.
    pub fn overloaded_event(after: usize) -> Self {
        Self::ErrorEvent { after, kind: "overloaded_error".into(), message: "Overloaded".into() }
    }
}

impl RawReply {
    /// A recorded event stream.
    pub fn sse(body: impl Into<Bytes>) -> Self {
        Self::typed("text/event-stream; charset=utf-8", body)
    }

    /// A recorded JSON answer with status 200.
    pub fn json(body: impl Into<Bytes>) -> Self {
        Self::typed("application/json", body)
    }

    fn typed(media: &str, body: impl Into<Bytes>) -> Self {
        let headers = BTreeMap::from([("content-type".to_owned(), media.to_owned())]);
        Self { status: 200, headers, body: body.into() }
    }
}

impl From<RawReply> for ReplyLine {
    fn from(RawReply { status, headers, body }: RawReply) -> Self {
        let (body, body_hex) = match std::str::from_utf8(&body) {
            Ok(text) => (Some(text.to_owned()), None),
            Err(_) => (None, Some(to_hex(&body))),
        };
        Self { status, headers, body, body_hex }
    }
}

impl TryFrom<ReplyLine> for RawReply {
    type Error = &'static str;

    fn try_from(line: ReplyLine) -> Result<Self, Self::Error> {
        let ReplyLine { status, headers, body, body_hex } = line;
        let body = match (body, body_hex) {
            (Some(text), None) => text.into_bytes(),
            (None, Some(digits)) => from_hex(&digits).ok_or("body_hex is not hexadecimal")?,
            (Some(_), Some(_)) => return Err("a response has body or body_hex, not both"),
            (None, None) => return Err("missing field `body`, or `body_hex` for what is no text"),
        };
        Ok(Self { status, headers, body: body.into() })
    }
}

fn too_many_requests() -> u16 {
    429
}
