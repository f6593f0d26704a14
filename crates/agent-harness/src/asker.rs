//! Who answers when a call needs a person's permission.

use std::fmt::Debug;
use std::sync::Arc;

use agent_core::{Layer, RawJson};
use agent_tools::{AskRequest, PermissionRule};
use async_trait::async_trait;

/// Puts a question to a person, one at a time.
#[async_trait]
pub trait Asker: Debug + Send + Sync {
    /// The person's answer; an error counts as nobody being there, and surfaces in the log.
    ///
    /// An answer that cannot be used leaves the request open: it is put again, and [`AskRequest::asked_again`] says why.
    async fn ask(&self, request: &AskRequest) -> Result<Answer, AskerError>;
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the driver handles every answer")]
pub enum Answer {
    /// Run it.
    Allow,
    /// Run it, and remember what [`AskRequest::remembers`] says: for [`Layer::Session`] in the session itself, for another
    /// layer with the agent's [`RuleSink`]. Where nothing can be remembered it runs this once, and a diagnostic says so.
    Always(Layer),
    /// Run it with another input, which is checked as the model's own would be. One that does not fit the tool puts the
    /// question again; one that a rule refuses is refused.
    Edit(RawJson),
    /// Do not; with the person's words, if they gave any.
    Deny(Option<String>),
    /// The answer comes later: the turn parks, and goes on when somebody replies to the request (requirement L7).
    Later,
    /// Nobody can be asked.
    Nobody,
}

/// The question could not be put.
#[derive(Debug, thiserror::Error)]
#[error("the question could not be asked: {0}")]
#[non_exhaustive]
pub struct AskerError(#[from] pub std::io::Error);

/// Where rules go that a person wants to be remembered beyond the session.
#[async_trait]
pub trait RuleSink: Debug + Send + Sync {
    /// Keeps the rules with those of their layer.
    ///
    /// # Errors
    /// In words for the person; the call runs all the same, and the rules hold for the session.
    async fn remember(&self, rules: &[PermissionRule]) -> Result<(), RuleSinkError>;
}

/// Rules that could not be kept.
#[derive(Debug, thiserror::Error)]
#[error("the rules could not be kept: {0}")]
#[non_exhaustive]
pub struct RuleSinkError(#[from] pub std::io::Error);

/// Nobody can be asked: calls that need permission are refused, with words that teach.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "a value to write down, with nothing in it")]
pub struct NobodyToAsk;

/// Every question is put to whoever replies to the parked turn: for servers, and for people who are away.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "a value to write down, with nothing in it")]
pub struct AskLater;

/// Every question is answered with yes. For sandboxes whose contents may be lost.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "a value to write down, with nothing in it")]
pub struct AllowAll;

#[async_trait]
impl Asker for NobodyToAsk {
    async fn ask(&self, _request: &AskRequest) -> Result<Answer, AskerError> {
        Ok(Answer::Nobody)
    }
}

#[async_trait]
impl Asker for AskLater {
    async fn ask(&self, _request: &AskRequest) -> Result<Answer, AskerError> {
        Ok(Answer::Later)
    }
}

#[async_trait]
impl Asker for AllowAll {
    async fn ask(&self, _request: &AskRequest) -> Result<Answer, AskerError> {
        Ok(Answer::Allow)
    }
}

#[async_trait]
impl<A: Asker + ?Sized> Asker for Arc<A> {
    async fn ask(&self, request: &AskRequest) -> Result<Answer, AskerError> {
        (**self).ask(request).await
    }
}
