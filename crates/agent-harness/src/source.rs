//! What is read from outside: what enters the prompt of a session when it begins, and the notes that a compaction begins from.

use std::error::Error;
use std::fmt::Debug;
use std::path::PathBuf;
use std::time::Duration;

use agent_core::{SessionId, SessionNotes};
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

/// Where the rolling notes on a session are (requirement C2), which stand for what they cover when its context is compacted.
///
/// It is asked when a compaction is about to begin, and at no other time, so that notes are as new as they can be and cost
/// nothing before. What it gives takes the place of [`agent_core::Slots::notes`].
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a source of notes",
    note = "implement `NotesSource`"
)]
pub trait NotesSource: Debug + Send + Sync {
    /// The notes as they are now; `None` when there are none beyond those that the session has.
    ///
    /// # Errors
    /// Told with a `request.diagnostic`; the compaction goes on without.
    async fn notes(&self, session: &SessionId) -> Result<Option<SessionNotes>, SourceError>;

    /// The file that they are in, to be shown; `None` when they are in none.
    fn path(&self, _session: &SessionId) -> Option<PathBuf> {
        None
    }

    /// How long it may take, for the turn waits for it; then it is dropped, which is told like an error. By default 5 s.
    fn deadline(&self) -> Duration {
        Duration::from_secs(5)
    }
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
