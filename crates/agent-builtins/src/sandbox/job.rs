//! Background jobs as plain data: what is started, and what is seen of it.

use std::time::Duration;

use agent_core::SessionId;

use super::ExitReason;

/// A shell command to run in the background.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "built by tools")]
pub struct JobCommand {
    /// Whose job it is; no other session can see or end it.
    pub session: SessionId,
    /// What the shell runs.
    pub command: String,
    /// The directory it runs in; empty for the workspace.
    pub cwd: String,
    /// How long it may take; without it as long as the session.
    pub timeout: Option<Duration>,
}

/// What is seen of a background job.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "built by sandboxes")]
pub struct JobOutput {
    /// How it is.
    pub state: JobState,
    /// The byte of all its output that this begins at.
    pub from: u64,
    /// What it printed from there on, both streams as they came; as far as dropped bytes if there are any.
    pub printed: Vec<u8>,
    /// Bytes that are not kept any more: memory is bounded, so of much output the middle goes.
    pub dropped: u64,
    /// What it printed behind the dropped bytes.
    pub rest: Vec<u8>,
    /// The byte at which reading goes on.
    pub next: u64,
    /// How long it has run, or ran.
    pub took: Duration,
}

/// How a background job is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a tool must say each of these in words")]
pub enum JobState {
    /// It runs.
    Running,
    /// It has ended, and nothing that is known of it runs on but what is named here.
    Ended {
        /// How; [`ExitReason::Cancelled`] when somebody ended it.
        exit: ExitReason,
        /// How long it took.
        took: Duration,
        /// Processes it left behind, which were stopped; by their command lines.
        stopped: Vec<String>,
        /// Processes of it that are known to run on; by their command lines.
        unstopped: Vec<String>,
    },
    /// It was killed, and how it ended is not known.
    Lost(String),
}
