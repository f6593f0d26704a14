//! What a driver tells a turn.

use agent_core::{ModelError, ParkKind, PendingStep, TerminalReason, ToolResult};

/// What came of a want. Exhaustive on purpose.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "the machine must handle every report in every state")]
pub enum Report {
    /// The request is ready.
    Prepared,
    /// The turn ends for this reason with words in the model's place, admitted by the history like an answer. Never a
    /// parked one: who waits has more to do.
    Synthesised(PendingStep, TerminalReason),
    /// The model answered; the response was admitted by the history, so its calls have ids of their own.
    Response(PendingStep),
    /// One call has its result.
    Result(ToolResult),
    /// The calls left wait for someone.
    Park(ParkKind),
    /// What the turn waited for is there; the calls left can run.
    Resume,
    /// The model call failed for good, or there is no request to be made.
    Failed(ModelError),
    /// The user stopped the turn; what can be kept of a half answer, admitted by the history like a whole one.
    Aborted(Option<PendingStep>),
}

impl Report {
    /// The report's name, for messages.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Prepared => "Prepared",
            Self::Synthesised(..) => "Synthesised",
            Self::Response(_) => "Response",
            Self::Result(_) => "Result",
            Self::Park(_) => "Park",
            Self::Resume => "Resume",
            Self::Failed(_) => "Failed",
            Self::Aborted(_) => "Aborted",
        }
    }
}
