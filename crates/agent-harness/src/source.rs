//! What enters the prompt of a session when it begins: the only part of a prompt that may need I/O.

use std::error::Error;
use std::fmt::Debug;

use agent_prompt::Prompt;
use async_trait::async_trait;

/// Adds what it knows to the prompt of a session that begins: rule files, the environment, rows of a database.
///
/// It is asked once in the life of a session, which keeps what it was told (requirement A1). Its fragments compete with
/// all others by layer and key, whatever the order.
#[async_trait]
pub trait PromptSource: Debug + Send + Sync {
    /// Adds fragments. What is missing or unusable, but not vital, is told with [`Prompt::report`].
    ///
    /// An error keeps the session from beginning: for what must never be left out, such as a policy.
    async fn add_to(&self, prompt: &mut Prompt) -> Result<(), SourceError>;
}

/// Why a session cannot begin without what a source has.
#[derive(Debug, thiserror::Error)]
#[error("{what} cannot be read: {cause}")]
#[non_exhaustive]
pub struct SourceError {
    /// What is missing, for example a file.
    pub what: String,
    /// What happened.
    #[source]
    pub cause: Box<dyn Error + Send + Sync>,
}

impl SourceError {
    /// What is missing, and what happened.
    pub fn new(what: impl Into<String>, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { what: what.into(), cause: cause.into() }
    }
}
