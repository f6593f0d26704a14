//! What the extraction of memories is at, and what came of it: to be watched.

use std::collections::BTreeMap;

use agent_core::{SessionId, TurnId, Usage};
use agent_memory::Extraction;

use super::ModelChoice;

/// What the extraction of memories is at (requirements C3 and K1).
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ExtractionStatus {
    /// The runs that are at work, by session.
    pub running: BTreeMap<SessionId, RunningExtraction>,
    /// The last turn behind which nothing was begun, and why.
    pub skipped: Option<SkippedTurn>,
    /// The last run that came to its end.
    pub last: Option<Extracted>,
    /// How many runs came to their end.
    pub runs: u64,
    /// How many of the last ones failed in a row. After the third nothing more is tried as long as the program runs.
    pub failures: u32,
}

/// A run at work.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RunningExtraction {
    /// What it looks at.
    pub extraction: Extraction,
    /// The model that is asked.
    pub choice: ModelChoice,
}

/// A turn behind which nothing was begun.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkippedTurn {
    /// Its session.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// Why.
    pub why: ExtractionSkip,
}

/// Why nothing was begun behind a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExtractionSkip {
    /// A run of the session is at work; the turn is looked at when that ends, unless a later one takes its place.
    Pending,
    /// It did not end with an answer without calls; it is looked at with the next one.
    NotAtRest,
    /// The main agent wrote memories itself.
    WroteItself,
    /// It was looked at already.
    NothingNew,
    /// Another process is at the session; the turn is looked at with its next one.
    Elsewhere,
    /// Three runs in a row failed.
    Paused,
}

/// A run that came to its end.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Extracted {
    /// The session.
    pub session: SessionId,
    /// What it looked at.
    pub extraction: Extraction,
    /// How it ended.
    pub outcome: ExtractionOutcome,
    /// The memories that it wrote, changed or removed, by their paths and in that order.
    pub written: Vec<String>,
    /// Its steps.
    pub steps: u32,
    /// Its tokens, which are in no session's sum.
    pub usage: Usage,
    /// The model that was asked.
    pub choice: ModelChoice,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExtractionOutcome {
    /// The model had nothing more to do.
    Done,
    /// It had its steps.
    StepLimit,
    /// It was stopped, because the program ends. What it looked at is looked at again.
    Stopped,
    /// It failed, and why. What it looked at is looked at again.
    Failed(String),
}

impl ExtractionStatus {
    /// Whether nothing more is tried.
    pub fn is_paused(&self) -> bool {
        self.failures >= crate::breaker::MOST_FAILURES
    }
}

impl Extracted {
    /// Share of what the model read that came from the cache, 0 to 1; `None` when it read nothing.
    pub fn cache_read_share(&self) -> Option<f64> {
        self.usage.hit_rate()
    }

    /// Whether what it looked at is not looked at again.
    pub fn is_success(&self) -> bool {
        match self.outcome {
            ExtractionOutcome::Done | ExtractionOutcome::StepLimit => true,
            ExtractionOutcome::Stopped | ExtractionOutcome::Failed(_) => false,
        }
    }
}
