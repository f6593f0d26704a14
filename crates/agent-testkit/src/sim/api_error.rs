//! Failures in the shape the real service gives them.

use crate::quote::quote;

/// An error answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) status: u16,
    pub(crate) kind: String,
    pub(crate) message: String,
    /// Seconds.
    pub(crate) retry_after: Option<u32>,
}

impl ApiError {
    /// The request breaks a rule; sending it again will not help.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(400, message)
    }

    /// An error of a status, of the kind that status has.
    pub(crate) fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, kind: kind_of(status).into(), message: message.into(), retry_after: None }
    }

    /// An error of a status in the service's usual words.
    pub(crate) fn usual(status: u16) -> Self {
        let known = KINDS.iter().find(|(known, ..)| *known == status);
        Self::new(status, known.map_or("Internal server error", |(_, _, words)| *words))
    }

    /// An error of a kind, with the status that kind has.
    pub(crate) fn of_kind(kind: &str, message: &str) -> Self {
        let known = KINDS.iter().find(|(_, known, _)| *known == kind);
        let status = known.map_or(500, |(status, ..)| *status);
        Self { status, kind: kind.into(), message: message.into(), retry_after: None }
    }

    pub(crate) fn body(&self, request_id: &str) -> String {
        let (error, id) = (self.inner(), quote(request_id));
        format!(r#"{{"type":"error","error":{error},"request_id":{id}}}"#)
    }

    /// The data of an `error` event.
    pub(crate) fn event_data(&self) -> String {
        format!(r#"{{"type":"error","error":{}}}"#, self.inner())
    }

    fn inner(&self) -> String {
        format!(r#"{{"type":{},"message":{}}}"#, quote(&self.kind), quote(&self.message))
    }
}

fn kind_of(status: u16) -> &'static str {
    let known = KINDS.iter().find(|(known, ..)| *known == status);
    let by_class = if status < 500 { "invalid_request_error" } else { "api_error" };
    known.map_or(by_class, |(_, kind, _)| *kind)
}

/// Status, kind, usual words.
const KINDS: [(u16, &str, &str); 11] = [
    (400, "invalid_request_error", "Invalid request"),
    (401, "authentication_error", "invalid x-api-key"),
    (402, "billing_error", "Your credit balance is too low to access the API"),
    (403, "permission_error", "Your API key does not have permission to use the specified resource"),
    (404, "not_found_error", "Not Found"),
    (409, "conflict_error", "The request conflicts with another one"),
    (413, "request_too_large", "Request exceeds the maximum size"),
    (429, "rate_limit_error", "This request would exceed your account's rate limit. Please try again later."),
    (500, "api_error", "Internal server error"),
    (504, "timeout_error", "The request timed out"),
    (529, "overloaded_error", "Overloaded"),
];
