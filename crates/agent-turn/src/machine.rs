//! The machine: states, transitions and the one place where the terminal reason is derived.

use agent_core::{
    FinishKind, ModelErrorKind, ParkKind, PendingStep, RawJson, StepNo, StepRecord, TerminalReason, ToolCall,
    ToolOutput, TurnId, Usage,
};
use serde::{Deserialize, Serialize};

use crate::{Report, Stop, StopCondition, StopCx, Want};

/// The form in which turns are saved. A newer one is refused (requirement D5).
pub const FORMAT: u32 = 1;

/// The tool whose call completes the work (requirement L5).
const COMPLETE_TOOL: &str = "complete";

/// One turn: plain data that can be saved between any two reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    format: u32,
    id: TurnId,
    /// Completed steps; also the number of the step at work.
    steps: u32,
    step: StepNo,
    usage: Usage,
    state: State,
}

/// A report that does not fit what the turn wanted: a fault of the driver.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the turn wants {wants}, but was told {told}{because}; report what came of the want that `poll` returns"
)]
pub struct Misuse {
    wants: &'static str,
    told: &'static str,
    because: String,
}

/// A saved turn that cannot be taken up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// Written by a later release.
    #[error("the turn was saved in format {found}, this program reads up to {FORMAT}; use the newer program")]
    Newer {
        /// The format found.
        found: u32,
    },
    /// Not a saved turn.
    #[error("the saved turn cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Prepare,
    Model,
    Tools(PendingStep),
    Parked(ParkKind, PendingStep),
    Ended(TerminalReason),
}

impl Turn {
    /// A turn before its first step.
    pub fn new(id: TurnId) -> Self {
        Self {
            format: FORMAT,
            id,
            steps: 0,
            step: StepNo::FIRST,
            usage: Usage::default(),
            state: State::Prepare,
        }
    }

    /// The turn's name; it stays the same when a parked turn is resumed.
    pub fn id(&self) -> TurnId {
        self.id
    }

    /// The step at work.
    pub fn step(&self) -> StepNo {
        self.step
    }

    /// How many steps are complete.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// Tokens of the completed steps.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// What to do next. Asking changes nothing.
    pub fn poll(&self) -> Want<'_> {
        match &self.state {
            State::Prepare => Want::Prepare(self.step),
            State::Model => Want::Model,
            State::Tools(pending) => Want::Tools(pending),
            State::Parked(kind, _) => Want::Park(*kind),
            State::Ended(reason) => Want::End(reason),
        }
    }

    /// Takes what came of the last want. A completed step comes back, to be committed before the next want is
    /// done. A report that does not fit changes nothing.
    pub fn handle(&mut self, stop: &dyn StopCondition, report: Report) -> Result<Option<StepRecord>, Misuse> {
        if let Some(misuse) = self.misuse(&report) {
            return Err(misuse);
        }
        // Until the next state is set the turn counts as aborted; nothing between can fail.
        let state = std::mem::replace(&mut self.state, State::Ended(TerminalReason::Aborted));
        match (state, report) {
            (State::Prepare, Report::Prepared) => self.state = State::Model,
            (State::Model, Report::Response(pending)) => return Ok(self.answered(stop, pending)),
            (State::Tools(mut pending) | State::Parked(_, mut pending), Report::Result(result)) => {
                // `misuse` has checked that the answer fits.
                drop(pending.answer(result));
                return Ok(self.settle(stop, pending));
            }
            (State::Tools(pending), Report::Park(kind)) => self.state = State::Parked(kind, pending),
            (State::Parked(_, pending), Report::Resume) => self.state = State::Tools(pending),
            (State::Model, Report::Failed(error)) => self.state = State::Ended(failed(error.kind)),
            (State::Tools(pending) | State::Parked(_, pending), Report::Aborted(_)) => {
                return Ok(Some(self.record(pending.finish_with(not_run_because_aborted))));
            }
            (State::Prepare | State::Model, Report::Aborted(Some(half))) if !half.parts.is_empty() => {
                let pending = PendingStep::new(half).ok();
                return Ok(pending.map(|pending| self.record(pending.finish_with(not_run_because_aborted))));
            }
            (_, Report::Aborted(_)) => {}
            (state, _) => self.state = state,
        }
        Ok(None)
    }

    /// The turn as data.
    pub fn save(&self) -> Result<RawJson, serde_json::Error> {
        RawJson::of(self)
    }

    /// A turn that was saved, by this release or an earlier one.
    pub fn restore(saved: &RawJson) -> Result<Self, RestoreError> {
        #[derive(Deserialize)]
        struct Head {
            format: u32,
        }
        let Head { format } = saved.to()?;
        if format > FORMAT {
            return Err(RestoreError::Newer { found: format });
        }
        Ok(saved.to()?)
    }

    fn answered(&mut self, stop: &dyn StopCondition, pending: PendingStep) -> Option<StepRecord> {
        let finish = pending.response().finish.kind;
        if matches!(finish, FinishKind::Refusal | FinishKind::ContentFilter) {
            let step = self.record(pending.finish_with(not_run_because_refused));
            self.state = State::Ended(TerminalReason::Refused);
            return Some(step);
        }
        self.settle(stop, pending)
    }

    /// Completes the step when every call is answered, and decides what follows.
    fn settle(&mut self, stop: &dyn StopCondition, pending: PendingStep) -> Option<StepRecord> {
        match pending.finish() {
            Err(pending) => {
                self.state = State::Tools(*pending);
                None
            }
            Ok(step) => {
                let step = self.record(step);
                self.state = self.after(stop, &step);
                Some(step)
            }
        }
    }

    fn record(&mut self, step: StepRecord) -> StepRecord {
        self.steps += 1;
        self.usage += step.usage();
        step
    }

    /// Continue or end (requirement L3): calls with results and paused answers go on, unless a condition fires.
    fn after(&mut self, stop: &dyn StopCondition, step: &StepRecord) -> State {
        let kind = step.finish().kind;
        let goes_on = !step.results().is_empty() || kind == FinishKind::Pause;
        let fired = stop.check(&StopCx { steps: self.steps, last: step, usage: &self.usage });
        match fired {
            // A turn that is over anyway is not "stopped by a limit".
            Some(stop) if goes_on => State::Ended(stopped(stop)),
            _ if goes_on => {
                self.step = self.step.next();
                State::Prepare
            }
            _ => State::Ended(finished(kind)),
        }
    }

    fn misuse(&self, report: &Report) -> Option<Misuse> {
        let (wants, fits) = match &self.state {
            State::Prepare => ("Prepare", matches!(report, Report::Prepared | Report::Aborted(_))),
            State::Model => {
                ("Model", matches!(report, Report::Response(_) | Report::Failed(_) | Report::Aborted(_)))
            }
            State::Tools(_) => {
                ("Tools", matches!(report, Report::Result(_) | Report::Park(_) | Report::Aborted(_)))
            }
            State::Parked(..) => {
                ("Park", matches!(report, Report::Result(_) | Report::Resume | Report::Aborted(_)))
            }
            State::Ended(_) => ("nothing more", false),
        };
        let because = match (&self.state, report) {
            (State::Tools(pending) | State::Parked(_, pending), Report::Result(result)) => {
                pending.clone().answer(result.clone()).err().map(|error| format!(" ({error})"))
            }
            _ => None,
        };
        if fits && because.is_none() {
            return None;
        }
        Some(Misuse { wants, told: report.name(), because: because.unwrap_or_default() })
    }
}

fn stopped(stop: Stop) -> TerminalReason {
    match stop {
        Stop::Steps(_) => TerminalReason::MaxSteps,
        Stop::Tool(tool) if tool == COMPLETE_TOOL => TerminalReason::Completed,
        Stop::Tool(tool) => TerminalReason::Stopped(format!("tool_called({tool})")),
        Stop::Custom(name) => TerminalReason::Stopped(name),
    }
}

fn finished(kind: FinishKind) -> TerminalReason {
    match kind {
        FinishKind::Stop | FinishKind::ToolCalls | FinishKind::Pause | FinishKind::Other => {
            TerminalReason::Done
        }
        FinishKind::Length | FinishKind::ContextWindow => TerminalReason::Length,
        FinishKind::ContentFilter | FinishKind::Refusal => TerminalReason::Refused,
    }
}

fn failed(kind: ModelErrorKind) -> TerminalReason {
    match kind {
        ModelErrorKind::Cancelled => TerminalReason::Aborted,
        ModelErrorKind::Interrupted => TerminalReason::Interrupted,
        ModelErrorKind::ContextOverflow
        | ModelErrorKind::RateLimited
        | ModelErrorKind::Overloaded
        | ModelErrorKind::Authentication
        | ModelErrorKind::Permission
        | ModelErrorKind::InvalidRequest
        | ModelErrorKind::QuotaExhausted
        | ModelErrorKind::Transport
        | ModelErrorKind::Protocol => TerminalReason::Error(kind),
    }
}

fn not_run_because_aborted(_: &ToolCall) -> ToolOutput {
    ToolOutput::error("Not run: the user stopped the turn before this call ran.")
}

fn not_run_because_refused(_: &ToolCall) -> ToolOutput {
    ToolOutput::error("Not run: the answer that asked for this call was refused by the provider.")
}

#[cfg(test)]
mod tests;
