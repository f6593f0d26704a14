//! One message at work: its events as they happen, and how it ended.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

use agent_core::{
    Cancel, Event, InputRequest, ModelError, ParkKind, RawJson, Revision, TerminalReason, TurnId, Usage,
};
use agent_prepare::ContextState;

use crate::outbox::Told;
use crate::{HarnessError, Observed, SessionView};

type Outcome = Result<TurnEnd, HarnessError>;

/// A run. The caller owns it: it goes on only while [`Run::next`] or [`Run::finish`] is awaited, and dropping it stops
/// everything at the last commit, as a crash would.
pub struct Run {
    work: Work,
    told: Told,
    cancel: Cancel,
    view: Observed<SessionView>,
}

enum Work {
    Running(Pin<Box<dyn Future<Output = Outcome> + Send>>),
    Over(Box<Outcome>),
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TurnEnd {
    /// The turn.
    pub turn: TurnId,
    /// Why it ended.
    pub reason: TerminalReason,
    /// The model's last words; empty when it had none.
    pub text: String,
    /// How many steps it took.
    pub steps: u32,
    /// Its tokens, those of failed and aborted calls included.
    pub usage: Usage,
    /// Tokens of the sub-agents that gave this turn a result, and of theirs; not a part of `usage`.
    pub children: Usage,
    /// What a parked turn waits for; behind its own requests those of its sub-agents.
    pub requests: Vec<InputRequest>,
    /// The failure of the model call that ended it.
    pub error: Option<ModelError>,
    /// The final output of a task, as exactly the JSON that the model wrote.
    pub output: Option<RawJson>,
    /// The name of the stop condition that ended it, for example `cost_budget(0.5)`.
    pub stopped_by: Option<String>,
}

/// What one step came to, for an engine that wakes sessions: the store is the truth, and this is all it need remember.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StepReport {
    /// The revision of the session now.
    pub revision: Revision,
    /// What comes next.
    pub next: Next,
}

/// What comes after a step.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "an engine handles each of them")]
pub enum Next {
    /// Another step.
    Step,
    /// Nothing until somebody replies.
    Parked(ParkKind),
    /// The turn is over.
    Ended(TerminalReason),
}

impl Run {
    pub(crate) fn new(
        work: impl Future<Output = Outcome> + Send + 'static,
        told: Told,
        cancel: Cancel,
        view: Observed<SessionView>,
    ) -> Self {
        Self { work: Work::Running(Box::pin(work)), told, cancel, view }
    }

    /// The next event, or `None` when the run is over. Cancel-safe.
    pub async fn next(&mut self) -> Option<Event> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Runs to the end, whether or not its events were read.
    pub async fn finish(self) -> Outcome {
        // With nobody watching no delta is built any more.
        self.told.close();
        match self.work {
            Work::Running(work) => work.await,
            Work::Over(outcome) => *outcome,
        }
    }

    /// Stops the turn when cancelled: what was said is kept, every call gets a result, and the run ends as aborted.
    /// Keep awaiting the run to see it end.
    pub fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

    /// How full the context is (requirement P6): as of the last request that was prepared or answered; `None` before
    /// the first.
    pub fn context(&self) -> Option<ContextState> {
        self.view.get().context
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        // What is told is read before more work is done, so the queue holds no more than one poll of work tells.
        if let Some(event) = self.told.next() {
            return Poll::Ready(Some(event));
        }
        if let Work::Running(work) = &mut self.work
            && let Poll::Ready(outcome) = work.as_mut().poll(cx)
        {
            self.work = Work::Over(Box::new(outcome));
        }
        match (self.told.next(), &self.work) {
            (Some(event), _) => Poll::Ready(Some(event)),
            (None, Work::Over(_)) => Poll::Ready(None),
            (None, Work::Running(_)) => Poll::Pending,
        }
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("running", &matches!(self.work, Work::Running(_))).finish_non_exhaustive()
    }
}
