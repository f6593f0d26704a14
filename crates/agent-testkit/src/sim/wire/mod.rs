//! How each provider's service looks from outside: what it refuses, what it says, how it fails.
//!
//! A wire knows nothing of scripts, faults and connections: `answer` plays those, the same on every wire.

mod anthropic;
mod openai;
mod openai_chat;
mod openai_responses;

use std::fmt;

use agent_cache::{CacheRules, Format, Refusal as MarkRefusal, RequestError};
use agent_core::{ModelProfile, Usage};
use bytes::Bytes;
use hyper::header::HeaderMap;
use serde_json::Value;

use super::account::{Accounts, Diagnosis, SimCache};
use super::api_error::{ApiError, Usual};
use super::log::Refusal;
use crate::script::Reply;

pub(super) type Check = Result<(), ApiError>;

/// One service.
pub(super) trait Wire: fmt::Debug + Sync {
    /// Refuses headers that the service refuses.
    fn check_head(&self, headers: &HeaderMap) -> Check;

    /// Refuses a body that the service refuses, in the order and the words of the real one.
    fn check_body(&self, request: &Value) -> Check;

    /// The whole answer as one JSON object.
    fn json(&self, message: &Message<'_>) -> Result<String, ApiError>;

    /// The answer as events; deltas are of about `delta_bytes` bytes.
    fn events(&self, message: &Message<'_>, delta_bytes: usize) -> Events;

    /// The body of an error.
    fn error_body(&self, error: &ApiError, request_id: &str) -> String;

    /// An error in a stream, as the event of this position.
    fn error_event(&self, error: &ApiError, position: usize) -> Bytes;

    /// What it usually says with each status.
    fn usual(&self) -> &'static [Usual];

    /// The header that names a request.
    fn id_header(&self) -> &'static str;

    /// The format of its requests.
    fn format(&self) -> Format;

    /// Its models in the catalog.
    fn tag(&self) -> &'static str;

    /// Whose cache rules count.
    fn provider(&self) -> &'static str;

    /// The id of the answer of this number.
    fn message_id(&self, number: &str) -> String;

    /// The earlier request with which this one asks to be compared.
    fn compares<'r>(&self, request: &'r Value) -> Compared<'r>;

    /// Refuses settings that the model does not take.
    fn check_model(&self, request: &Value, rules: &CacheRules, profile: &ModelProfile) -> Check;

    /// Refuses what belongs to a beta feature that the head of the request did not ask for.
    fn check_betas(&self, _request: &Value, _betas: &str) -> Check {
        Ok(())
    }

    /// A prompt of so many tokens where fewer are the most.
    fn overflow(&self, tokens: u64, most: u64) -> ApiError;

    /// Headers that say that a limit is used up until a time, or for a span.
    fn used_up(&self, until: &str, wait: &str) -> [(&'static str, String); 2];

    /// A body that cannot be read for its cache markers.
    fn unreadable(&self, error: &RequestError) -> ApiError {
        ApiError::invalid(error.to_string())
    }

    /// Markers that the service does not take.
    fn misplaced(&self, refusal: &MarkRefusal) -> ApiError {
        ApiError::invalid(refusal.to_string())
    }

    /// Whether the request only fills the cache, and wants no answer.
    fn prewarms(&self, _request: &Value) -> bool {
        false
    }

    /// An error of a status in these words.
    fn error(&self, status: u16, message: &str) -> ApiError {
        ApiError::of_status(self.usual(), status, Some(message))
    }

    /// An error of a status in the usual words.
    fn usual_error(&self, status: u16) -> ApiError {
        ApiError::of_status(self.usual(), status, None)
    }
}

/// A reply with what the wire says around it.
#[derive(Debug)]
pub(super) struct Message<'a> {
    pub(super) reply: &'a Reply,
    /// Position in the script; ids are made of it, so that they are equal after a restart.
    pub(super) position: usize,
    /// The number in the answer's own id.
    pub(super) number: &'a str,
    /// The model the request asked for.
    pub(super) model: &'a str,
    pub(super) usage: &'a Usage,
    /// The request, for what it asks to be told.
    pub(super) request: &'a Value,
    /// What stands under its thinking.
    pub(super) signature: String,
    /// How it compares with the request it names.
    pub(super) diagnosis: Option<Diagnosis>,
    /// Whether tokens written to the cache are told on wires where not every model has them.
    pub(super) tells_writes: bool,
}

/// What a request asks to be compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compared<'r> {
    NotAsked,
    /// There is no earlier one, and diagnostics are wanted from now on.
    First,
    /// The one that was answered under this id.
    With(&'r str),
}

/// A streamed answer.
#[derive(Debug)]
pub(super) struct Events {
    /// Invariant: never empty.
    pub(super) list: Vec<Bytes>,
    /// The first event after which the answer is whole: faults come before it.
    pub(super) end: usize,
}

/// The wire spoken at a path, whatever stands in front of it.
pub(super) fn of_path(path: &str) -> Option<&'static dyn Wire> {
    WIRES.iter().find(|(end, _)| path.ends_with(end)).map(|(_, wire)| *wire)
}

/// Checks the body of one request to a path as the simulated provider does, without a server (requirement V2).
///
/// The paths are those of [`super::SimProvider`]; the refusal has the status and the words of the service, and 404 for
/// a path that it does not have. Signatures of thinking are left alone: only a server knows which it gave.
///
/// ```
/// use agent_testkit::check_request;
///
/// let body = br#"{"model":"m","max_tokens":8,"messages":[{"role":"assistant","content":"hi"}]}"#;
/// let refusal = check_request("/v1/messages", body).unwrap_err();
/// assert_eq!((refusal.status, refusal.message.contains("first message")), (400, true));
/// assert!(check_request("/v1/responses", br#"{"model":"m","input":"hi"}"#).is_ok());
/// ```
pub fn check_request(path: &str, body: &[u8]) -> Result<(), Refusal> {
    let spoken = of_path(path).ok_or_else(|| DEFAULT.usual_error(404));
    let checked = spoken.and_then(|wire| {
        let request = read(body)?;
        wire.check_body(&request)?;
        let accounts = Accounts::new(SimCache::default(), None);
        accounts.check(wire, &accounts.read(wire, body)?, &request)
    });
    checked.map_err(|ApiError { status, message, .. }| Refusal { request: 0, status, message })
}

/// A body as JSON.
pub(super) fn read(body: &[u8]) -> Result<Value, ApiError> {
    serde_json::from_slice(body)
        .map_err(|error| ApiError::invalid(format!("The request body is not valid JSON: {error}")))
}

/// The wire of requests whose path says nothing.
pub(super) const DEFAULT: &dyn Wire = &anthropic::Messages;

/// One server-sent event with a name.
fn named(name: &str, data: &str) -> Bytes {
    format!("event: {name}\ndata: {data}\n\n").into()
}

/// A header's value; empty when it is missing or no text.
fn text<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// The items of an array; nothing for a value that is none.
fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

const WIRES: [(&str, &dyn Wire); 3] = [
    ("/v1/messages", &anthropic::Messages),
    // Compatible services have no version, or another one, in front.
    ("/chat/completions", &openai_chat::ChatCompletions),
    ("/responses", &openai_responses::Responses),
];
