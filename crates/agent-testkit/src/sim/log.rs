//! What the simulated provider was asked.

use std::sync::{Mutex, PoisonError};

use agent_core::Usage;
use bytes::Bytes;
use hyper::http::request::Parts;
use serde::Serialize;
use tokio::sync::watch;

/// A request as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordedRequest {
    /// The HTTP method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Names in lower case and values, in order; keys are `[redacted]`.
    pub headers: Vec<(String, String)>,
    /// The body, byte for byte.
    pub body: Bytes,
    /// Which connection it came on, counted from 0; equal numbers mean that the connection was used again.
    pub connection: u64,
}

/// A request that the simulated provider refused by its own rules, not because the script said so.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// Which request, counted from 0.
    pub request: usize,
    /// The HTTP status given.
    pub status: u16,
    /// The words given.
    pub message: String,
}

/// How a request was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Served {
    /// Which request, counted from 0.
    pub request: usize,
    /// The HTTP method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The model asked for; empty when the body names none.
    pub model: String,
    /// The HTTP status; none when the connection was closed in place of an answer.
    pub status: Option<u16>,
    /// Tokens reported; none for an error and for a recorded answer.
    pub usage: Option<Usage>,
    /// The words of an error.
    pub error: Option<String>,
    /// Whether the simulated provider refused the request by its own rules; else the script asked for the error.
    pub refused: bool,
}

/// Requests, answers and refusals so far.
#[derive(Debug, Default)]
pub(super) struct Log {
    requests: Mutex<Vec<RecordedRequest>>,
    served: Mutex<Vec<Served>>,
    refusals: Mutex<Vec<Refusal>>,
    arrived: watch::Sender<usize>,
    answered: watch::Sender<usize>,
}

impl RecordedRequest {
    pub(super) fn new(parts: &Parts, body: Bytes, connection: u64) -> Self {
        let headers = parts.headers.iter().map(|(name, value)| {
            let secret = matches!(name.as_str(), "x-api-key" | "authorization" | "x-goog-api-key");
            let shown = if secret { "[redacted]".into() } else { String::from_utf8_lossy(value.as_bytes()) };
            (name.as_str().to_owned(), shown.into_owned())
        });
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        Self {
            method: parts.method.as_str().to_owned(),
            path: path.to_owned(),
            headers: headers.collect(),
            body,
            connection,
        }
    }

    /// The value of a header; names are in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl AsRef<[u8]> for RecordedRequest {
    /// The body.
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

impl Log {
    /// Takes a request and gives its number.
    pub(super) fn record(&self, request: RecordedRequest) -> usize {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.push(request);
        let count = requests.len();
        drop(requests);
        self.arrived.send_replace(count);
        count - 1
    }

    pub(super) fn serve(&self, served: Served) {
        let mut all = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(served);
        let count = all.len();
        drop(all);
        self.answered.send_replace(count);
    }

    pub(super) fn all_served(&self) -> Vec<Served> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until so many requests, and one more, are answered; gives the last of them.
    pub(super) async fn served(&self, number: usize) -> Served {
        let mut answered = self.answered.subscribe();
        loop {
            if let Some(served) = self.served.lock().unwrap_or_else(PoisonError::into_inner).get(number) {
                return served.clone();
            }
            if answered.changed().await.is_err() {
                // The sender lives in `self`, which is borrowed here: the channel cannot close.
                std::future::pending::<()>().await;
            }
        }
    }

    pub(super) fn refuse(&self, refusal: Refusal) {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner).push(refusal);
    }

    pub(super) fn requests(&self) -> Vec<RecordedRequest> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn refusals(&self) -> Vec<Refusal> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until the request of this number, counted from 0, has arrived.
    pub(super) async fn request(&self, number: usize) -> RecordedRequest {
        let mut arrived = self.arrived.subscribe();
        loop {
            if let Some(request) = self.requests().get(number) {
                return request.clone();
            }
            if arrived.changed().await.is_err() {
                // The sender lives in `self`, which is borrowed here: the channel cannot close.
                std::future::pending::<()>().await;
            }
        }
    }
}
