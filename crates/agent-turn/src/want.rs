//! What a turn wants done next.

use agent_core::{ParkKind, PendingStep, StepNo, TerminalReason};

/// What a turn wants done next. Exhaustive on purpose: a driver has one file for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must do every want")]
pub enum Want<'t> {
    /// Put the request of this step together.
    Prepare(StepNo),
    /// Call the model with it.
    Model,
    /// Run the calls that have no result yet.
    Tools(&'t PendingStep),
    /// Wait; the turn stays open.
    Park(ParkKind),
    /// Nothing more; the turn is over.
    End(&'t TerminalReason),
}
