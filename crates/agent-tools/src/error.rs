//! How a tool fails: in words that teach the model the next step.

use std::time::Duration;

use crate::Access;

/// A failed call. Its text becomes the error result, so it is a prompt: say what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The input does not fit the schema.
    #[error("The input of `{tool}` does not fit: at `{path}`: {cause}. Call it again with: {takes}")]
    Input {
        /// The tool.
        tool: String,
        /// Where in the input.
        path: String,
        /// What is wrong there.
        cause: serde_json::Error,
        /// The fields the tool takes.
        takes: String,
    },
    /// The tool did its best and could not.
    #[error("{0}")]
    Failed(String),
    /// The tool was stopped by its deadline.
    #[error("The tool was stopped after {} s. Do less in one call, or ask for more time if the tool has a timeout field.", .0.as_secs())]
    Timeout(Duration),
    /// The turn was stopped.
    #[error("The call was cancelled before it finished; it may have had part of its effect.")]
    Cancelled,
    /// The permit is for something else.
    #[error(
        "The permit given is not for this call; nothing was done. This is a fault of the program that runs the tools."
    )]
    WrongPermit,
    /// The tool tried an effect that it did not declare.
    #[error(
        "The tool was allowed as one of kind {declared:?} and may not do what is of kind {effect:?}; nothing was done. This is a fault of the tool: its access must be declared as {effect:?}."
    )]
    BeyondAccess {
        /// What the tool declared.
        declared: Access,
        /// What it tried.
        effect: Access,
    },
    /// Another file lies at the path than the one that was checked.
    #[error(
        "The path led to {checked} when permission was given and leads to {found} now; nothing was done. Look at what is there, and call again."
    )]
    MovedPath {
        /// Where it led.
        checked: String,
        /// Where it leads.
        found: String,
    },
    /// What the tool keeps in the session is not what it expects, or cannot be written.
    #[error(
        "What this tool keeps in the session under `{key}` cannot be used: {cause}. Do not repeat the call; tell the user that the tool must be mended."
    )]
    State {
        /// The key.
        key: String,
        /// What is wrong with it.
        #[source]
        cause: serde_json::Error,
    },
    /// The output cannot be written as JSON.
    #[error("The output of the tool cannot be shown: {0}")]
    Output(#[source] serde_json::Error),
}

impl ToolError {
    /// A failure with these words.
    pub fn failed(text: impl Into<String>) -> Self {
        Self::Failed(text.into())
    }
}
