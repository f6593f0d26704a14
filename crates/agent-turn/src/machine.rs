//! The machine: states, transitions and the one place where the terminal reason is derived.

use agent_core::{
    COMPLETE_TOOL, FinishKind, ModelErrorKind, ParkKind, PendingStep, RawJson, StepNo, StepRecord,
    TerminalReason, ToolCall, ToolOutput, ToolResult, TurnId, Usage,
};
use serde::{Deserialize, Serialize};

use crate::{Report, Stop, StopCondition, StopCx, Want};

/// The form in which turns are saved. A newer one is refused (requirement D5).
pub const FORMAT: u32 = 1;
/// Refused calls that a turn may have; with so many it ends, because the model does not find another way (requirement
/// T2).
pub const MOST_DENIED: u32 = 10;

/// One turn: plain data that can be saved between any two reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turn {
    format: u32,
    id: TurnId,
    /// Completed steps, an aborted one included.
    steps: u32,
    /// The step at work; it stays at the last one when the turn has ended.
    step: StepNo,
    usage: Usage,
    /// Calls that were refused.
    #[serde(default)]
    denied: u32,
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
            denied: 0,
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

    /// The step whose calls run or wait.
    pub fn pending(&self) -> Option<&PendingStep> {
        match &self.state {
            State::Tools(pending) | State::Parked(_, pending) => Some(pending),
            State::Prepare | State::Model | State::Ended(_) => None,
        }
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
        let state = std::mem::replace(&mut self.state, State::Ended(TerminalReason::Aborted));
        match self.next(stop, state, report) {
            Ok((state, step)) => {
                self.state = state;
                Ok(step)
            }
            Err((state, misuse)) => {
                self.state = *state;
                Err(misuse)
            }
        }
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

    /// The table of the machine: every state with every report.
    fn next(&mut self, stop: &dyn StopCondition, state: State, report: Report) -> Next {
        match state {
            State::Prepare => match report {
                Report::Prepared => Ok((State::Model, None)),
                Report::Synthesised(said, reason) => self.synthesised(said, reason),
                Report::Failed(error) => Ok((State::Ended(failed(error.kind)), None)),
                Report::Aborted(half) => Ok(self.aborted(half)),
                other @ (Report::Response(_) | Report::Result(_) | Report::Park(_) | Report::Resume) => {
                    misuse(State::Prepare, &other)
                }
            },
            State::Model => match report {
                Report::Response(pending) => Ok(self.answered(stop, pending)),
                Report::Failed(error) => Ok((State::Ended(failed(error.kind)), None)),
                Report::Aborted(half) => Ok(self.aborted(half)),
                other @ (Report::Prepared
                | Report::Synthesised(..)
                | Report::Result(_)
                | Report::Park(_)
                | Report::Resume) => misuse(State::Model, &other),
            },
            State::Tools(pending) => match report {
                Report::Result(result) => self.resolve(stop, pending, result, State::Tools),
                Report::Park(kind) => Ok((State::Parked(kind, pending), None)),
                Report::Aborted(_) => Ok(self.aborted(Some(pending))),
                other @ (Report::Prepared
                | Report::Synthesised(..)
                | Report::Response(_)
                | Report::Resume
                | Report::Failed(_)) => misuse(State::Tools(pending), &other),
            },
            State::Parked(kind, pending) => match report {
                Report::Result(result) => {
                    self.resolve(stop, pending, result, |pending| State::Parked(kind, pending))
                }
                Report::Resume => Ok((State::Tools(pending), None)),
                Report::Aborted(_) => Ok(self.aborted(Some(pending))),
                other @ (Report::Prepared
                | Report::Synthesised(..)
                | Report::Response(_)
                | Report::Park(_)
                | Report::Failed(_)) => misuse(State::Parked(kind, pending), &other),
            },
            State::Ended(reason) => misuse(State::Ended(reason), &report),
        }
    }

    /// Keeps words in the model's place, and ends.
    fn synthesised(&mut self, said: PendingStep, reason: TerminalReason) -> Next {
        if let TerminalReason::Parked(_) = reason {
            let because = " (a parked turn has not ended)".to_owned();
            let misuse = Misuse { wants: State::Prepare.wants(), told: "Synthesised", because };
            return Err((Box::new(State::Prepare), misuse));
        }
        let step = self.record(said.finish_with(not_run_because_synthesised));
        Ok((State::Ended(reason), Some(step)))
    }

    fn answered(&mut self, stop: &dyn StopCondition, pending: PendingStep) -> (State, Option<StepRecord>) {
        let finish = pending.response().finish.kind;
        if matches!(finish, FinishKind::Refusal | FinishKind::ContentFilter) {
            let step = self.record(pending.finish_with(not_run_because_refused));
            return (State::Ended(TerminalReason::Refused), Some(step));
        }
        self.settle(stop, pending, State::Tools)
    }

    /// Takes the result of one call; `waiting` is the state while others are left.
    fn resolve(
        &mut self,
        stop: &dyn StopCondition,
        mut pending: PendingStep,
        result: ToolResult,
        waiting: impl Fn(PendingStep) -> State,
    ) -> Next {
        match pending.answer(result) {
            Ok(()) => Ok(self.settle(stop, pending, waiting)),
            Err(error) => {
                let state = waiting(pending);
                let misuse = Misuse { wants: state.wants(), told: "Result", because: format!(" ({error})") };
                Err((Box::new(state), misuse))
            }
        }
    }

    /// Completes the step when every call is answered, and decides what follows.
    fn settle(
        &mut self,
        stop: &dyn StopCondition,
        pending: PendingStep,
        waiting: impl Fn(PendingStep) -> State,
    ) -> (State, Option<StepRecord>) {
        match pending.finish() {
            Err(pending) => (waiting(*pending), None),
            Ok(step) => {
                let step = self.record(step);
                (self.after(stop, &step), Some(step))
            }
        }
    }

    /// Keeps what was said, every call with a result; of an answer that said nothing there is nothing to keep.
    fn aborted(&mut self, half: Option<PendingStep>) -> (State, Option<StepRecord>) {
        let said = half.filter(|half| !half.response().parts.is_empty());
        let step = said.map(|said| self.record(said.finish_with(not_run_because_aborted)));
        (State::Ended(TerminalReason::Aborted), step)
    }

    fn record(&mut self, step: StepRecord) -> StepRecord {
        self.steps += 1;
        self.usage += step.usage();
        let denied = step.results().iter().filter(|result| matches!(result.output, ToolOutput::Denied(_)));
        self.denied = self.denied.saturating_add(u32::try_from(denied.count()).unwrap_or(u32::MAX));
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
            None if goes_on && self.denied >= MOST_DENIED => State::Ended(TerminalReason::PermissionDenied),
            _ if goes_on => {
                self.step = self.step.next();
                State::Prepare
            }
            _ => State::Ended(finished(kind)),
        }
    }
}

impl State {
    /// What the state wants, for messages.
    fn wants(&self) -> &'static str {
        match self {
            Self::Prepare => "Prepare",
            Self::Model => "Model",
            Self::Tools(_) => "Tools",
            Self::Parked(..) => "Park",
            Self::Ended(_) => "nothing more",
        }
    }
}

/// The state after a report, with the step it completed; or the state as it was.
type Next = Result<(State, Option<StepRecord>), (Box<State>, Misuse)>;

fn misuse(state: State, report: &Report) -> Next {
    let misuse = Misuse { wants: state.wants(), told: report.name(), because: String::new() };
    Err((Box::new(state), misuse))
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

fn not_run_because_synthesised(_: &ToolCall) -> ToolOutput {
    ToolOutput::error("Not run: the turn ended here without asking the model.")
}

fn not_run_because_refused(_: &ToolCall) -> ToolOutput {
    ToolOutput::error("Not run: the answer that asked for this call was refused by the provider.")
}

#[cfg(test)]
mod tests;
