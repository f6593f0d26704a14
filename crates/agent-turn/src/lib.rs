//! One turn of an agent as a machine without I/O.
//!
//! Depend on this crate when you write a driver of your own: ask the [`Turn`] what it wants, do it, report what
//! came of it. The machine has no clock, no model and no store, so a test can play a whole turn by hand.
//!
//! **This crate knows** when a turn continues, waits or ends, the stop conditions, and the one place where a
//! [`agent_core::TerminalReason`] is derived.
//!
//! **It never knows** how anything is executed.
//!
//! ```
//! use agent_core::{AssistantPart, History, Response, TerminalReason, TurnId};
//! use agent_turn::{Report, Turn, Want, step_count};
//!
//! let stop = step_count(40);
//! let mut turn = Turn::new(TurnId::FIRST);
//! assert!(matches!(turn.poll(), Want::Prepare(_)));
//! turn.handle(&stop, Report::Prepared)?;
//! assert!(matches!(turn.poll(), Want::Model));
//!
//! let said = Response::of(vec![AssistantPart::text("Hello!").ok_or("blank")?]);
//! let step = turn.handle(&stop, Report::Response(History::new().admit(said)))?;
//! assert!(step.is_some(), "a step without calls is complete at once");
//! assert!(matches!(turn.poll(), Want::End(TerminalReason::Done)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod guidance;
mod ledger;
mod machine;
mod mode;
mod report;
mod stop;
mod want;

pub use guidance::Guidance;
pub use ledger::Seen;
pub use machine::{FORMAT, MOST_ASKED_FOR_OUTPUT, MOST_DENIED, Misuse, NO_FINAL_OUTPUT, RestoreError, Turn};
pub use mode::{ContinueHook, ContinueWhen, Mode, Rules, Task, continue_when};
pub use report::Report;
pub use stop::{
    And, ConsecutiveFailures, CostBudget, DEFAULT_FAILURES, DEFAULT_STEPS, NoProgress, Not, Or, StepCount,
    Stop, StopCondition, StopConditionExt, StopCx, StopWhen, Streak, Todos, TodosDone, TokenBudget,
    ToolCalled, WallClock, consecutive_failures, cost_budget, no_progress, step_count, stop_when, todos_done,
    token_budget, tool_called, wall_clock,
};
pub use want::Want;
