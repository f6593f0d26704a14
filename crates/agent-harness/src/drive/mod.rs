//! The loop: ask the turn what it wants, do it, report it, commit what is complete.

mod end;
mod model;
mod open;
mod prepare;
mod tools;

use std::collections::BTreeSet;
use std::sync::Arc;

use agent_core::{
    CallId, Cancel, Entry, EventBody, ModelError, SessionId, StepNo, StepRecord, ToolResult, TurnId,
    UserMessage,
};
use agent_turn::{Report, Turn, Want};
use tracing::Instrument;

use crate::HarnessError;
use crate::config::HarnessConfig;
use crate::live::{Live, Loaded, Write};
use crate::outbox::Outbox;
use crate::run::TurnEnd;

/// One message at work on one session: the only writer of its history.
pub(crate) struct Drive {
    config: Arc<HarnessConfig>,
    live: Live,
    turn: Turn,
    out: Outbox,
    cancel: Cancel,
    /// What the user said and the history does not hold yet.
    waiting: Option<UserMessage>,
    /// The first entry that is not stored yet.
    unstored: usize,
    /// Whether the response at work is in the journal.
    journaled: bool,
    /// Calls that began in a process that died.
    lost: BTreeSet<CallId>,
    /// Results of the step at work that were found in the journal.
    found: Vec<ToolResult>,
    /// The failure that ended the turn.
    error: Option<ModelError>,
    /// Tokens of this run's model calls, failed ones included.
    spent: agent_core::Usage,
    /// The span of the step at work.
    step_span: tracing::Span,
    /// Whether the run began with an open turn.
    taken_up: bool,
    parked: bool,
}

impl Drive {
    /// Takes up an open turn, or begins a new one for the message.
    pub(crate) fn begin(
        config: Arc<HarnessConfig>,
        loaded: Loaded,
        message: Option<UserMessage>,
        out: Outbox,
        cancel: Cancel,
    ) -> Result<Self, HarnessError> {
        let Loaded { live, repairs, changes, open, created } = loaded;
        let unstored = live.history.len();
        let turn = Turn::new(TurnId::after(live.last_turn));
        let mut drive = Self {
            config,
            live,
            turn,
            out,
            cancel,
            waiting: message,
            unstored,
            journaled: false,
            lost: BTreeSet::new(),
            found: Vec::new(),
            error: None,
            spent: agent_core::Usage::default(),
            step_span: tracing::Span::none(),
            taken_up: open.is_some(),
            parked: false,
        };
        drive.tell_opening(repairs, changes, created);
        match open {
            Some(open) => drive.take_up(open)?,
            None => drive.open_turn()?,
        }
        Ok(drive)
    }

    pub(crate) fn session(&self) -> SessionId {
        self.live.meta.id.clone()
    }

    /// The session for the next message; a parked one is loaded anew, because its turn is still open.
    pub(crate) fn into_live(self) -> Option<Live> {
        (!self.parked).then_some(self.live)
    }

    /// Drives until the turn ends or parks. A message that could not join the open turn begins a turn of its own.
    pub(crate) async fn run(&mut self) -> Result<TurnEnd, HarnessError> {
        if self.taken_up {
            // A commit would empty the journal before its results are in the history.
            self.live.journal(&self.config, &mut self.out, &[]).await?;
        } else {
            self.write(None).await?;
        }
        loop {
            let end = self.run_turn().await?;
            if self.waiting.is_none() || self.parked || self.cancel.is_cancelled() {
                return Ok(end);
            }
            self.turn = Turn::new(TurnId::after(self.live.last_turn));
            self.error = None;
            self.open_turn()?;
            self.write(None).await?;
        }
    }

    async fn run_turn(&mut self) -> Result<TurnEnd, HarnessError> {
        tracing::Span::current().record("turn", tracing::field::display(self.turn.id()));
        loop {
            if self.cancel.is_cancelled() && matches!(self.turn.poll(), Want::Prepare(_)) {
                self.report(Report::Aborted(None)).await?;
            }
            match self.turn.poll() {
                Want::Prepare(_) => self.prepare().await?,
                Want::Model => {
                    let span = self.step_span.clone();
                    self.call_model().instrument(span).await?;
                }
                Want::Tools(_) => {
                    let span = self.step_span.clone();
                    self.run_tools().instrument(span).await?;
                }
                Want::Park(kind) => {
                    self.parked = true;
                    return Ok(self.ended(agent_core::TerminalReason::Parked(kind)));
                }
                Want::End(reason) => return Ok(self.ended(reason.clone())),
            }
        }
    }

    async fn call_model(&mut self) -> Result<(), HarnessError> {
        let span = tracing::info_span!(
            "model_call",
            finish = tracing::field::Empty,
            error = tracing::field::Empty,
            input = tracing::field::Empty,
            output = tracing::field::Empty,
            cache_read = tracing::field::Empty,
            cache_write = tracing::field::Empty,
        );
        let call = model::call(&self.config, &mut self.live, &mut self.out, &self.cancel);
        let called = call.instrument(span).await;
        self.spent += &called.usage;
        self.live.usage += &called.usage;
        if let Report::Failed(error) = &called.report {
            self.error = Some(error.clone());
            let (kind, message) = (error.kind, error.message.clone());
            self.out.stage(EventBody::StepFailed { kind, message, usage: called.usage });
        }
        self.journaled = false;
        self.report(called.report).await
    }

    async fn run_tools(&mut self) -> Result<(), HarnessError> {
        // What finished before a crash keeps its result.
        for result in std::mem::take(&mut self.found) {
            self.report(Report::Result(result)).await?;
        }
        let Want::Tools(pending) = self.turn.poll() else { return Ok(()) };
        let work = tools::Work { pending: pending.clone(), journaled: self.journaled, lost: &self.lost };
        self.journaled = true;
        let results = tools::run(&self.config, &mut self.live, &mut self.out, &self.cancel, work).await?;
        for result in results {
            self.report(Report::Result(result)).await?;
        }
        if matches!(self.turn.poll(), Want::Tools(_)) {
            // Calls are left without a result only when the run was stopped.
            self.report(Report::Aborted(None)).await?;
        }
        Ok(())
    }

    /// Tells the turn, and commits when that completed a step or ended the turn.
    async fn report(&mut self, report: Report) -> Result<(), HarnessError> {
        let at = self.turn.step();
        let step = self.turn.handle(&*self.config.stop, report)?;
        let stopped =
            step.is_some() && self.cancel.is_cancelled() && matches!(self.turn.poll(), Want::Prepare(_));
        if stopped {
            self.turn.handle(&*self.config.stop, Report::Aborted(None))?;
        }
        match (step, self.turn.poll()) {
            (Some(step), _) => self.commit_step(at, step).await,
            (None, Want::End(_) | Want::Park(_)) => self.write(None).await,
            (None, Want::Prepare(_) | Want::Model | Want::Tools(_)) => Ok(()),
        }
    }

    async fn commit_step(&mut self, at: StepNo, step: StepRecord) -> Result<(), HarnessError> {
        let (finish, usage) = (step.finish().clone(), step.usage().clone());
        let entry = self.live.push(Entry::Step(step))?;
        self.out.step = Some(at);
        self.out.stage(EventBody::StepCompleted { entry, finish, usage: usage.clone() });
        if let Want::Prepare(next) = self.turn.poll() {
            self.out.step = Some(next);
            self.out.stage(EventBody::StepStarted {});
        }
        self.lost.clear();
        self.write(Some(&usage)).await
    }

    /// One atomic write of everything new, with the events that follow from what the turn wants now.
    async fn write(&mut self, usage: Option<&agent_core::Usage>) -> Result<(), HarnessError> {
        self.tell_end();
        let terminal = match self.turn.poll() {
            Want::End(reason) => Some(reason.clone()),
            Want::Prepare(_) | Want::Model | Want::Tools(_) | Want::Park(_) => None,
        };
        let turn = if terminal.is_some() { None } else { Some(self.turn.save()?) };
        let write = Write { from: self.unstored, turn, usage, terminal: terminal.as_ref() };
        self.live.commit(&self.config, &mut self.out, write).await?;
        self.unstored = self.live.history.len();
        Ok(())
    }
}
