//! What the model must be told before its next step.

use agent_core::TerminalReason;
use serde::{Deserialize, Serialize};

/// What the model must be told before its next step, and with which choice of tools. It is saved with the turn, so that a
/// resumed one says it too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "a driver must pass on every kind")]
pub enum Guidance {
    /// This step is the last one: no more tools, end with words. The turn ends after it for this reason, whatever the model
    /// answers (requirement L4).
    LastCall {
        /// The limit by name.
        stop: String,
        /// The reason that the turn will have.
        reason: TerminalReason,
    },
    /// Advice of a condition that would end the turn.
    Advice(String),
    /// The words of the continue hook.
    Nudge(String),
    /// The tool that gives the final output is to be called now.
    Deliver(String),
}
