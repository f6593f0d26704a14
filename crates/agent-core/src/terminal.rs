//! Why a turn ended.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ModelErrorKind;

/// Why a turn ended (requirement L6). Derived in one place, the turn machine; stored and streamed as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "the compiler must find every place when a reason is added")]
pub enum TerminalReason {
    /// The model had nothing more to do.
    Done,
    /// The model called the `complete` tool.
    Completed,
    /// A stop condition fired; its name.
    Stopped(String),
    /// The user stopped it.
    Aborted,
    /// The step limit was reached.
    MaxSteps,
    /// The output limit or the context window cut the last answer.
    Length,
    /// The context is full and cannot be made smaller.
    BlockingLimit,
    /// Work on the todo list is left.
    TodosIncomplete,
    /// Tokens, money or time ran out.
    BudgetExhausted,
    /// The same calls gave the same results.
    NoProgress,
    /// Repeated failures stopped further attempts.
    CircuitOpen,
    /// Too many calls were refused.
    PermissionDenied,
    /// The model or its provider declined.
    Refused,
    /// The answer was cut off and could not be had again.
    Interrupted,
    /// The turn waits for something; it stays open.
    Parked(ParkKind),
    /// The model call failed.
    Error(ModelErrorKind),
}

/// What a parked turn waits for (requirement L7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "every kind of wait has its own way to be answered")]
pub enum ParkKind {
    /// A person's permission for a call.
    Approval,
    /// A person's answer.
    Question,
    /// A sign-in.
    Authorization,
    /// Work of the runtime: a sub-agent, an external job.
    Action,
    /// A tool that the client runs.
    ClientTool,
}

impl TerminalReason {
    /// Whether the work was brought to its end.
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Done | Self::Completed)
    }
}

impl fmt::Display for TerminalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self {
            Self::Done => "done",
            Self::Completed => "completed",
            Self::Stopped(condition) => return write!(f, "stopped({condition})"),
            Self::Aborted => "aborted",
            Self::MaxSteps => "max_steps",
            Self::Length => "length",
            Self::BlockingLimit => "blocking_limit",
            Self::TodosIncomplete => "todos_incomplete",
            Self::BudgetExhausted => "budget_exhausted",
            Self::NoProgress => "no_progress",
            Self::CircuitOpen => "circuit_open",
            Self::PermissionDenied => "permission_denied",
            Self::Refused => "refused",
            Self::Interrupted => "interrupted",
            Self::Parked(kind) => return write!(f, "parked({})", kind.as_str()),
            Self::Error(kind) => return write!(f, "error({})", kind.as_str()),
        };
        f.write_str(word)
    }
}

impl ParkKind {
    /// The word used in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Question => "question",
            Self::Authorization => "authorization",
            Self::Action => "action",
            Self::ClientTool => "client_tool",
        }
    }
}
