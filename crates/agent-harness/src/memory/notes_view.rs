//! What is seen of the notes on a session: what is lacking for the next run, the run at work, and what came of the last one.

use agent_core::Usage;
use agent_memory::{NotesRun, NotesWait};

/// How it stands with the notes on a session (requirement C2).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotesView {
    /// What is done about them.
    pub status: NotesStatus,
    /// The last run of this process.
    pub last: Option<NotesReport>,
}

/// What is done about the notes on a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "who shows it shows each")]
pub enum NotesStatus {
    /// No step of the session was seen yet.
    #[default]
    Unseen,
    /// The next run waits for this.
    Waiting(NotesWait),
    /// It is time, and another process is at the notes of this session; they are looked at again with the next step.
    Elsewhere,
    /// A run is at work.
    Writing {
        /// What it covers, and why it began.
        run: NotesRun,
        /// Since when, in milliseconds since 1970.
        since_ms: i64,
    },
}

/// A run that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotesReport {
    /// What it was to cover, and why it began.
    pub run: NotesRun,
    /// What came of it.
    pub outcome: NotesOutcome,
    /// Steps that it took.
    pub steps: u32,
    /// Its tokens, which are in no session's sum.
    pub usage: Usage,
    /// How long it took, in milliseconds.
    pub millis: u64,
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "notes are changed, found good, or neither")]
pub enum NotesOutcome {
    /// The notes say more than before.
    Written,
    /// It looked, and there was nothing to add.
    Unchanged,
    /// Nothing new is covered, for this reason.
    Failed(String),
}

impl NotesReport {
    /// The share of its input that was read from the cache, from 0 to 1; `None` where it had no input.
    pub fn cache_share(&self) -> Option<f64> {
        self.usage.hit_rate()
    }
}

impl NotesOutcome {
    /// Whether the notes cover what the run was to cover.
    pub fn is_covered(&self) -> bool {
        match self {
            Self::Written | Self::Unchanged => true,
            Self::Failed(_) => false,
        }
    }
}
