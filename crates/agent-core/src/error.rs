//! How a model call fails, and whether trying again can help.

use serde::{Deserialize, Serialize};

/// A failed model call (requirement M9).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{}: {message}", self.kind.as_str())]
#[expect(clippy::exhaustive_structs, reason = "built by every codec and transport")]
pub struct ModelError {
    /// The class of the failure.
    pub kind: ModelErrorKind,
    /// Whether the same request may succeed later.
    pub retryable: bool,
    /// How long the provider asks to wait, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// What happened, in words; never holds a key.
    pub message: String,
}

/// Classes of failure. Exhaustive: a terminal reason and an exit status are derived from each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "each class has its own recovery")]
pub enum ModelErrorKind {
    /// The request is larger than the model's window.
    ContextOverflow,
    /// Too many requests or tokens for now.
    RateLimited,
    /// The provider has no capacity for now.
    Overloaded,
    /// The key is missing or wrong.
    Authentication,
    /// The key may not do this.
    Permission,
    /// The provider does not take this request; the same one will fail again.
    InvalidRequest,
    /// The account has no money or quota left.
    QuotaExhausted,
    /// The network or the provider's server failed.
    Transport,
    /// The answer does not follow the provider's format.
    Protocol,
    /// The answer ended before its last event.
    Interrupted,
    /// This side stopped it.
    Cancelled,
}

impl ModelErrorKind {
    /// Whether a failure of this class is worth another try in general.
    pub fn retryable(self) -> bool {
        match self {
            Self::RateLimited | Self::Overloaded | Self::Transport | Self::Interrupted => true,
            Self::ContextOverflow
            | Self::Authentication
            | Self::Permission
            | Self::InvalidRequest
            | Self::QuotaExhausted
            | Self::Protocol
            | Self::Cancelled => false,
        }
    }

    /// The word used in events and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ContextOverflow => "context_overflow",
            Self::RateLimited => "rate_limited",
            Self::Overloaded => "overloaded",
            Self::Authentication => "authentication",
            Self::Permission => "permission",
            Self::InvalidRequest => "invalid_request",
            Self::QuotaExhausted => "quota_exhausted",
            Self::Transport => "transport",
            Self::Protocol => "protocol",
            Self::Interrupted => "interrupted",
            Self::Cancelled => "cancelled",
        }
    }
}

impl ModelError {
    /// A failure of a class, retryable as the class is.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self { kind, retryable: kind.retryable(), retry_after_ms: None, message: message.into() }
    }

    /// The call was stopped from this side.
    pub fn cancelled() -> Self {
        Self::new(ModelErrorKind::Cancelled, "the call was cancelled")
    }

    /// The answer ended before its last event.
    pub fn interrupted(after: &str) -> Self {
        Self::new(
            ModelErrorKind::Interrupted,
            format!("the answer ended {after}, before the event that completes it; send the request again"),
        )
    }
}
