//! The machine: states, transitions and the one place where the terminal reason is derived.

use agent_core::{
    FinishKind, ModelErrorKind, ParkKind, PendingStep, RawJson, Spent, StepNo, StepRecord, TerminalReason,
    ToolCall, ToolOutput, ToolResult, TurnId, Usage,
};
use serde::{Deserialize, Serialize};

use crate::ledger::Ledger;
use crate::{Guidance, Mode, Report, Rules, Seen, Stop, StopCx, Task, Want};

/// The form in which turns are saved. A newer one is refused (requirement D5).
pub const FORMAT: u32 = 2;
/// Refused calls that a turn may have; with so many it ends, because the model does not find another way (requirement
/// T2).
pub const MOST_DENIED: u32 = 10;
/// How often a model that ends with words is asked for the final output of its task (requirement L3).
pub const MOST_ASKED_FOR_OUTPUT: u32 = 2;
/// The name under which a task ends whose final output never came: `stopped(no_final_output)`.
pub const NO_FINAL_OUTPUT: &str = "no_final_output";

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
    /// What conditions look at beside the last step.
    #[serde(default)]
    ledger: Ledger,
    /// What the model must be told before the step at work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    guidance: Option<Guidance>,
    /// The condition that ended the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stopped_by: Option<String>,
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
            ledger: Ledger::default(),
            guidance: None,
            stopped_by: None,
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

    /// What the turn took as far as it was told: what its stop conditions look at.
    pub fn spent(&self) -> Spent {
        self.ledger.spent(&self.usage)
    }

    /// The step whose calls run or wait.
    pub fn pending(&self) -> Option<&PendingStep> {
        match &self.state {
            State::Tools(pending) | State::Parked(_, pending) => Some(pending),
            State::Prepare | State::Model | State::Ended(_) => None,
        }
    }

    /// What the model must be told before the step at work, beside its request: as a note behind the conversation, so that
    /// what is cached stays.
    pub fn guidance(&self) -> Option<&Guidance> {
        self.guidance.as_ref()
    }

    /// The name of the stop condition that ended the turn; `None` when none did.
    pub fn stopped_by(&self) -> Option<&str> {
        self.stopped_by.as_deref()
    }

    /// Takes what the driver saw since it last said so. To be said before a report that may complete a step.
    pub fn see(&mut self, seen: &Seen) {
        self.ledger.see(seen);
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
    pub fn handle<'r>(
        &mut self,
        rules: impl Into<Rules<'r>>,
        report: Report,
    ) -> Result<Option<StepRecord>, Misuse> {
        self.take(rules.into(), report)
    }

    fn take(&mut self, rules: Rules<'_>, report: Report) -> Result<Option<StepRecord>, Misuse> {
        let state = std::mem::replace(&mut self.state, State::Ended(TerminalReason::Aborted));
        match self.next(rules, state, report) {
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
        // What an earlier format did not have is at its beginning.
        Ok(Self { format: FORMAT, ..saved.to()? })
    }

    /// The table of the machine: every state with every report.
    fn next(&mut self, rules: Rules<'_>, state: State, report: Report) -> Next {
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
                Report::Response(pending) => Ok(self.answered(rules, pending)),
                Report::Failed(error) => Ok((State::Ended(failed(error.kind)), None)),
                Report::Aborted(half) => Ok(self.aborted(half)),
                other @ (Report::Prepared
                | Report::Synthesised(..)
                | Report::Result(_)
                | Report::Park(_)
                | Report::Resume) => misuse(State::Model, &other),
            },
            State::Tools(pending) => match report {
                Report::Result(result) => self.resolve(rules, pending, result, State::Tools),
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
                    self.resolve(rules, pending, result, |pending| State::Parked(kind, pending))
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

    fn answered(&mut self, rules: Rules<'_>, pending: PendingStep) -> (State, Option<StepRecord>) {
        let finish = pending.response().finish.kind;
        if matches!(finish, FinishKind::Refusal | FinishKind::ContentFilter) {
            let step = self.record(pending.finish_with(not_run_because_refused));
            return (State::Ended(TerminalReason::Refused), Some(step));
        }
        self.settle(rules, pending, State::Tools)
    }

    /// Takes the result of one call; `waiting` is the state while others are left.
    fn resolve(
        &mut self,
        rules: Rules<'_>,
        mut pending: PendingStep,
        result: ToolResult,
        waiting: impl Fn(PendingStep) -> State,
    ) -> Next {
        match pending.answer(result) {
            Ok(()) => Ok(self.settle(rules, pending, waiting)),
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
        rules: Rules<'_>,
        pending: PendingStep,
        waiting: impl Fn(PendingStep) -> State,
    ) -> (State, Option<StepRecord>) {
        match pending.finish() {
            Err(pending) => (waiting(*pending), None),
            Ok(step) => {
                let step = self.record(step);
                (self.after(rules, &step), Some(step))
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
        self.ledger.record(&step);
        let denied = step.results().iter().filter(|result| matches!(result.output, ToolOutput::Denied(_)));
        self.denied = self.denied.saturating_add(u32::try_from(denied.count()).unwrap_or(u32::MAX));
        step
    }

    /// Continue or end (requirement L3): calls with results and paused answers go on, unless a condition fires.
    fn after(&mut self, rules: Rules<'_>, step: &StepRecord) -> State {
        let warned = self.guidance.take();
        if rules.mode.is_delivered(step) {
            return State::Ended(TerminalReason::Completed);
        }
        let usage = self.ledger.usage(&self.usage);
        let cx = StopCx {
            cost_usd: self.ledger.cost_usd(),
            elapsed: self.ledger.elapsed(),
            todos: self.ledger.todos,
            streak: self.ledger.streak,
            ..StopCx::new(self.steps, step, &usage)
        };
        let kind = step.finish().kind;
        let fired = rules.stop.check(&cx);
        let follows = match warned {
            Some(Guidance::LastCall { stop, reason }) => Err(match fired.filter(Stop::completes) {
                Some(stop) => End::by(stop),
                None => End { reason, by: Some(stop) },
            }),
            Some(Guidance::Advice(_) | Guidance::Nudge(_) | Guidance::Deliver(_)) | None => {
                let goes_on = !step.results().is_empty() || kind == FinishKind::Pause;
                let guidance = if goes_on {
                    self.worked(rules, &cx, fired)
                } else {
                    self.said(rules.mode, step)
                        .and_then(|nudge| fired.map_or(Ok(Some(nudge)), |stop| Err(End::by(stop))))
                };
                guidance.map(|guidance| rules.stop.ahead(&cx).map(last_call).or(guidance))
            }
        };
        match follows {
            Ok(guidance) => {
                self.guidance = guidance;
                self.step = self.step.next();
                State::Prepare
            }
            Err(End { reason, by }) => {
                self.stopped_by = by;
                State::Ended(reason)
            }
        }
    }

    /// What follows a step that called tools, or that the provider paused.
    fn worked(&self, rules: Rules<'_>, cx: &StopCx<'_>, fired: Option<Stop>) -> Follows {
        match fired {
            // It was known only when it was spent, so the warning comes behind it.
            Some(stop) if stop.is_spent() => Ok(Some(last_call(stop))),
            Some(stop) => Err(End::by(stop)),
            None if self.denied >= MOST_DENIED => Err(TerminalReason::PermissionDenied.into()),
            None => Ok(rules.stop.advise(cx).map(Guidance::Advice)),
        }
    }

    /// What follows a step of words alone: in a conversation it ends the turn, a task may go on (requirement L3).
    fn said(&mut self, mode: &Mode, step: &StepRecord) -> Result<Guidance, End> {
        let reason = finished(step.finish().kind);
        let Mode::Task(task) = mode else { return Err(reason.into()) };
        if reason != TerminalReason::Done {
            return Err(reason.into());
        }
        let Task { continue_hook, most_nudges, output_tool } = task;
        let ledger = &mut self.ledger;
        let hook = continue_hook.as_ref().filter(|_| ledger.nudges < *most_nudges);
        if let Some(words) = hook.and_then(|hook| hook.nudge(step)) {
            ledger.nudges += 1;
            return Ok(Guidance::Nudge(words));
        }
        match output_tool {
            Some(tool) if ledger.asked_for_output < MOST_ASKED_FOR_OUTPUT => {
                ledger.asked_for_output += 1;
                Ok(Guidance::Deliver(tool.clone()))
            }
            Some(_) => Err(TerminalReason::Stopped(NO_FINAL_OUTPUT.to_owned()).into()),
            None if ledger.todos.open > 0 => Err(TerminalReason::TodosIncomplete.into()),
            None => Err(reason.into()),
        }
    }
}

/// What the model is told before the step that follows, or why none does.
type Follows = Result<Option<Guidance>, End>;

/// Why a turn ends after a step, and the condition that said so.
struct End {
    reason: TerminalReason,
    by: Option<String>,
}

impl End {
    fn by(stop: Stop) -> Self {
        Self { by: Some(stop.to_string()), reason: stopped(stop) }
    }
}

impl From<TerminalReason> for End {
    fn from(reason: TerminalReason) -> Self {
        Self { reason, by: None }
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

fn last_call(stop: Stop) -> Guidance {
    Guidance::LastCall { stop: stop.to_string(), reason: stopped(stop) }
}

fn stopped(stop: Stop) -> TerminalReason {
    if stop.completes() {
        return TerminalReason::Completed;
    }
    match stop {
        Stop::Steps(_) => TerminalReason::MaxSteps,
        Stop::Budget(_) => TerminalReason::BudgetExhausted,
        Stop::Failures(_) => TerminalReason::CircuitOpen,
        Stop::NoProgress => TerminalReason::NoProgress,
        stop @ Stop::Both(..) if stop.is_spent() => TerminalReason::BudgetExhausted,
        stop @ (Stop::Tool(_) | Stop::Todos | Stop::Custom(_) | Stop::Both(..)) => {
            TerminalReason::Stopped(stop.to_string())
        }
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
mod stop_tests;
#[cfg(test)]
mod tests;
