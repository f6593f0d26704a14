//! The loop: ask the turn what it wants, do it, report it, commit what is complete.

mod ask;
mod call;
mod compact;
mod date;
mod end;
mod guide;
mod model;
mod offload;
mod open;
mod park;
mod prepare;
mod retry;
mod server;
mod tools;

use std::collections::BTreeSet;
use std::sync::Arc;

use agent_core::{
    CallId, Cancel, Entry, EntryId, EventBody, ModelError, ModelProfile, RawJson, Reply, RequestId,
    SessionId, StepNo, StepRecord, TerminalReason, TurnId, Usage, UserMessage,
};
use agent_prepare::Prepared;
use agent_turn::{Report, Rules, Seen, Turn, Want};
use tracing::Instrument;

use crate::HarnessError;
use crate::compaction::Done;
use crate::config::HarnessConfig;
use crate::live::{Live, Loaded, Write};
use crate::outbox::Outbox;
use crate::retry::RetryBudget;
use crate::run::TurnEnd;

pub(crate) use server::has_compacted;

/// One message at work on one session: the only writer of its history.
pub(crate) struct Drive {
    /// The agent as it was built.
    agent: Arc<HarnessConfig>,
    /// The same with what `prepare_call` put in place of its parts.
    config: Arc<HarnessConfig>,
    call: call::Call,
    /// What the stages made of the step at work.
    prepared: Prepared,
    /// Position of the turn's first entry.
    turn_from: EntryId,
    /// What compaction did.
    compacted: Done,
    /// Whether there is no turn: the session is only compacted.
    is_idle: bool,
    live: Box<Live>,
    turn: Turn,
    out: Outbox,
    cancel: Cancel,
    /// What the user said and the history does not hold yet.
    waiting: Option<UserMessage>,
    recovered: Recovered,
    /// Calls that were told as requested and that the turn answers, because the run was stopped.
    unrun: Vec<CallId>,
    /// The failure that ended the turn.
    error: Option<ModelError>,
    /// Tokens of this run's model calls, failed ones included.
    spent: Usage,
    /// Tokens of the last model call, until a commit records them: also of one that failed or was stopped.
    unrecorded: Option<Usage>,
    /// Tokens of the step's attempts that failed.
    voided: Usage,
    /// What the turn has not been told yet of what was spent.
    seen: Seen,
    /// When it was last told, by the clock.
    seen_ms: i64,
    /// The retries this run has left.
    retries: RetryBudget,
    /// The turn as last written.
    saved: Option<RawJson>,
    /// The span of the step at work.
    step_span: tracing::Span,
}

/// What a run begins with.
pub(crate) enum Incoming {
    /// What the user says.
    Message(UserMessage),
    /// A reply to a request of the parked turn.
    Reply(RequestId, Reply),
    /// The open turn alone.
    Nothing,
}

/// What another process left of the step at work.
#[derive(Default)]
struct Recovered {
    /// What it knew already, to be told to the turn first.
    reports: Vec<Report>,
    /// Whether the response at work is stored.
    has_response: bool,
    /// Calls that began and did not end.
    lost: BTreeSet<CallId>,
}

impl Drive {
    /// Takes up an open turn, or begins a new one for the message.
    pub(crate) fn begin(
        config: Arc<HarnessConfig>,
        loaded: Loaded,
        incoming: Incoming,
        out: Outbox,
        cancel: Cancel,
    ) -> Result<Self, HarnessError> {
        let Loaded { live, repairs, changes, open, created } = loaded;
        let mut drive = Self::of(config, live, out, cancel);
        drive.tell_opening(repairs, changes, created);
        let reply = match incoming {
            Incoming::Message(message) => {
                drive.waiting = Some(message);
                None
            }
            Incoming::Reply(id, reply) => Some((id, reply)),
            Incoming::Nothing => None,
        };
        match open {
            Some(open) => drive.take_up(open, reply)?,
            None => drive.open_turn()?,
        }
        Ok(drive)
    }

    fn of(config: Arc<HarnessConfig>, live: Box<Live>, out: Outbox, cancel: Cancel) -> Self {
        Self {
            retries: RetryBudget::new(&config.retry),
            seen: Seen::default(),
            seen_ms: config.clock.now_ms(),
            agent: config.clone(),
            config,
            call: call::Call::default(),
            prepared: Prepared::default(),
            turn_from: EntryId::at(live.history.len()),
            compacted: Done::default(),
            is_idle: false,
            turn: Turn::new(TurnId::after(live.last_turn)),
            live,
            out,
            cancel,
            waiting: None,
            recovered: Recovered::default(),
            unrun: Vec::new(),
            error: None,
            spent: Usage::default(),
            unrecorded: None,
            voided: Usage::default(),
            saved: None,
            step_span: tracing::Span::none(),
        }
    }

    pub(crate) fn session(&self) -> SessionId {
        self.live.meta.id.clone()
    }

    /// The session for the next message; a parked one is loaded anew, because its turn is still open.
    pub(crate) fn into_live(self) -> Option<Box<Live>> {
        (!self.is_parked()).then_some(self.live)
    }

    /// Drives until the turn ends or parks. A message that could not join the open turn begins a turn of its own.
    pub(crate) async fn run(&mut self) -> Result<TurnEnd, HarnessError> {
        if self.recovered.reports.is_empty() {
            self.write().await?;
        } else {
            // A commit would empty the journal before its results are in the history.
            self.live.journal(&self.config, &mut self.out, &[]).await?;
        }
        loop {
            let end = self.run_turn().await?;
            if self.waiting.is_none() || self.is_parked() || self.cancel.is_cancelled() {
                return Ok(end);
            }
            self.turn = Turn::new(TurnId::after(self.live.last_turn));
            self.error = None;
            self.open_turn()?;
            self.write().await?;
        }
    }

    fn is_parked(&self) -> bool {
        matches!(self.turn.poll(), Want::Park(_))
    }

    async fn run_turn(&mut self) -> Result<TurnEnd, HarnessError> {
        tracing::Span::current().record("turn", tracing::field::display(self.turn.id()));
        if let Err(cause) = self.begin_call().await {
            let is_fresh = matches!(self.turn.poll(), Want::Prepare(_)) && self.recovered.reports.is_empty();
            if !is_fresh {
                return Err(HarnessError::Call { session: self.session(), cause });
            }
            self.cannot_prepare(cause.to_string()).await?;
        }
        self.share_anew().await.map_err(|cause| HarnessError::Call { session: self.session(), cause })?;
        for report in std::mem::take(&mut self.recovered.reports) {
            self.report(report).await?;
        }
        loop {
            if self.cancel.is_cancelled() && matches!(self.turn.poll(), Want::Prepare(_) | Want::Park(_)) {
                self.report(Report::Aborted(None)).await?;
            }
            let span = self.step_span.clone();
            match self.turn.poll() {
                Want::Prepare(_) => self.prepare().await?,
                Want::Model => self.call_model().instrument(span).await?,
                Want::Tools(_) => self.run_tools().instrument(span).await?,
                Want::Park(kind) => return Ok(self.ended(TerminalReason::Parked(kind))),
                Want::End(reason) => return Ok(self.ended(reason.clone())),
            }
        }
    }

    async fn run_tools(&mut self) -> Result<(), HarnessError> {
        let Want::Tools(pending) = self.turn.poll() else { return Ok(()) };
        let work = tools::Work {
            pending: pending.clone(),
            is_stored: std::mem::replace(&mut self.recovered.has_response, true),
            lost: &self.recovered.lost,
            active: self.prepared.active.as_ref(),
            context: &self.prepared.context,
            turn_from: self.turn_from,
        };
        let worked = tools::run(&self.config, &mut self.live, &mut self.out, &self.cancel, work).await?;
        let tools::Worked { results, spent } = worked;
        let model = self.config.summary_model.as_ref().unwrap_or(&self.config.model).clone();
        self.pay_beside(model.profile(), &spent);
        for result in results {
            self.report(Report::Result(result)).await?;
        }
        if let Want::Tools(pending) = self.turn.poll() {
            if let Some(kind) = self.waits_for(pending).filter(|_| !self.cancel.is_cancelled()) {
                return self.report(Report::Park(kind)).await;
            }
            // Other calls are left without a result only when the run was stopped.
            self.unrun = pending.unanswered().map(|call| call.id.clone()).collect();
            self.report(Report::Aborted(None)).await?;
        }
        Ok(())
    }

    /// Tells the turn, and commits when that completed a step or ended the turn.
    async fn report(&mut self, report: Report) -> Result<(), HarnessError> {
        let at = self.turn.step();
        self.tell_seen();
        let config = self.config.clone();
        let rules = Rules { stop: &*config.stop, mode: &config.mode };
        let step = self.turn.handle(rules, report)?;
        let stopped =
            step.is_some() && self.cancel.is_cancelled() && matches!(self.turn.poll(), Want::Prepare(_));
        if stopped {
            self.turn.handle(rules, Report::Aborted(None))?;
        }
        match (step, self.turn.poll()) {
            (Some(step), _) => self.commit_step(at, step).await,
            (None, Want::End(_) | Want::Park(_)) => self.write().await,
            (None, Want::Prepare(_) | Want::Model | Want::Tools(_)) => Ok(()),
        }
    }

    async fn commit_step(&mut self, at: StepNo, step: StepRecord) -> Result<(), HarnessError> {
        let (finish, usage) = (step.finish().clone(), step.usage().clone());
        self.out.step = Some(at);
        self.tell_unrun(&step);
        self.close_requests();
        let entry = self.live.push(Entry::Step(step))?;
        // An answer that a journal or a parked turn held was not heard of in this process.
        self.live.accountant.report(crate::gauge::size(&usage), entry.position());
        // Who looks between two messages sees the answer counted; that a threshold was crossed is told with the next step.
        self.live.gauge.set(self.context());
        let voided = std::mem::take(&mut self.voided);
        self.out.stage(EventBody::StepCompleted { entry, finish, usage, voided });
        if let Want::Prepare(next) = self.turn.poll() {
            self.tell_step(next);
        }
        self.recovered.lost.clear();
        self.write().await
    }

    /// Counts a call of the step's model, whatever came of it (requirement M6).
    fn pay(&mut self, usage: &Usage) {
        let model = self.model().clone();
        self.pay_at(model.profile(), usage);
    }

    /// Counts a call of a model at its prices.
    fn pay_at(&mut self, model: &ModelProfile, usage: &Usage) {
        self.seen.cost_usd += model.prices.as_ref().map_or(0.0, |prices| prices.cost(usage));
        self.spent += usage;
        self.live.usage += usage;
        if *usage == Usage::default() {
            return;
        }
        match &mut self.unrecorded {
            Some(sum) => *sum += usage,
            None => self.unrecorded = Some(usage.clone()),
        }
    }

    /// The turn as another process would take it up: a model call under way is prepared anew.
    fn saved_turn(&self) -> Result<RawJson, HarnessError> {
        match (self.turn.poll(), &self.saved) {
            (Want::Model, Some(saved)) => Ok(saved.clone()),
            _ => Ok(self.turn.save()?),
        }
    }

    /// One atomic write of everything new, with the events that follow from what the turn wants now.
    async fn write(&mut self) -> Result<(), HarnessError> {
        self.tell_end();
        let terminal = match self.turn.poll() {
            Want::End(reason) => Some(reason.clone()),
            Want::Prepare(_) | Want::Model | Want::Tools(_) | Want::Park(_) => None,
        };
        let turn = if terminal.is_some() || self.is_idle { None } else { Some(self.saved_turn()?) };
        self.saved.clone_from(&turn);
        let usage = self.unrecorded.take();
        let is_parked = matches!(self.turn.poll(), Want::Park(_));
        let write = Write {
            turn_from: turn.is_some().then_some(self.turn_from),
            // Before a response there is nothing to be held to, and the journal has it while its calls run.
            active: self.prepared.active.as_ref().filter(|_| is_parked),
            turn,
            usage: usage.as_ref(),
            terminal: terminal.as_ref(),
        };
        self.live.commit(&self.config, &mut self.out, write).await
    }
}
