//! The loop: ask the turn what it wants, do it, report it, commit what is complete.

mod ask;
mod call;
mod commit;
mod compact;
mod date;
mod end;
mod guide;
mod hear;
mod model;
mod offload;
mod open;
mod park;
mod prepare;
mod resume;
mod retry;
mod server;
mod show;
mod tools;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use agent_core::{
    CallId, Cancel, EntryId, InputId, ModelError, RawJson, RoundSummary, SessionId, Spent, TerminalReason,
    TurnId, Usage, UserMessage,
};
use agent_prepare::Prepared;
use agent_turn::{Report, Rules, Seen, Turn, Want};
use tracing::Instrument;

use crate::HarnessError;
use crate::children::{Share, WithChildren};
use crate::compaction::Done;
use crate::config::HarnessConfig;
use crate::live::{Live, Loaded};
use crate::outbox::Outbox;
use crate::retry::RetryBudget;
use crate::run::{Next, StepReport, TurnEnd};

pub(crate) use ask::{apart, asked};
pub(crate) use park::{fits, is_ready};
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
    /// What the user said and the history does not hold yet, with its number where it came through the inbox.
    waiting: VecDeque<(Option<InputId>, UserMessage)>,
    recovered: Recovered,
    /// Calls that were told as requested and that the turn answers, because the run was stopped.
    unrun: Vec<CallId>,
    /// What was said of older turns, until the session that was taken up has looked whether to begin from it.
    rounds: Vec<RoundSummary>,
    /// Whether it was told that the turn waits.
    is_waiting_told: bool,
    /// The failure that ended the turn.
    error: Option<ModelError>,
    /// Tokens of this run's model calls, failed ones included.
    spent: Usage,
    /// Calls of the turn that were refused.
    denied: u32,
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
    /// The open turn, or what waits in the inbox.
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
        let Loaded { live, repairs, changes, open, created, inputs, rounds, closed: _ } = loaded;
        let mut drive = Self::of(config, live, out, cancel);
        drive.rounds = rounds;
        drive.tell_opening(repairs, changes, created);
        match incoming {
            Incoming::Message(message) => drive.waiting.push_back((None, message)),
            // Where no turn is open, what was said during the last one begins the next.
            Incoming::Nothing if open.is_none() => {
                drive.waiting.extend(inputs.into_iter().find_map(hear::message_of));
            }
            Incoming::Nothing => {}
        }
        match open {
            Some(open) => drive.take_up(open)?,
            None => drive.open_turn()?,
        }
        drive.show();
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
            waiting: VecDeque::new(),
            recovered: Recovered::default(),
            unrun: Vec::new(),
            rounds: Vec::new(),
            is_waiting_told: false,
            error: None,
            spent: Usage::default(),
            denied: 0,
            unrecorded: None,
            voided: Usage::default(),
            saved: None,
            step_span: tracing::Span::none(),
        }
    }

    pub(crate) fn history(&self) -> &agent_core::History {
        &self.live.history
    }

    pub(crate) fn session(&self) -> SessionId {
        self.live.meta.id.clone()
    }

    /// The session for the next message; or, with its turn still open, for whoever takes that up.
    pub(crate) fn into_live(self) -> Result<Box<Live>, Box<Live>> {
        if matches!(self.turn.poll(), Want::End(_)) { Ok(self.live) } else { Err(self.live) }
    }

    /// Drives until the turn ends or parks. A message that could not join the open turn begins a turn of its own.
    pub(crate) async fn run(&mut self) -> Result<TurnEnd, HarnessError> {
        self.open().await?;
        loop {
            let end = self.run_turn().await?;
            if self.is_parked() || self.cancel.is_cancelled() {
                return Ok(end);
            }
            self.next_message().await?;
            if self.waiting.is_empty() {
                return Ok(end);
            }
            self.turn = Turn::new(TurnId::after(self.live.last_turn));
            self.error = None;
            self.open_turn()?;
            self.write().await?;
        }
    }

    /// Drives through one step only; what comes next, and the revision it led to.
    pub(crate) async fn run_one(&mut self) -> Result<StepReport, HarnessError> {
        self.open().await?;
        self.begin_turn().await?;
        let next = self.step().await?;
        Ok(StepReport { revision: self.live.revision(), next })
    }

    /// Stores what taking up, or beginning, is to be told of.
    async fn open(&mut self) -> Result<(), HarnessError> {
        if self.is_parked() && self.out.staged().is_empty() {
            return Ok(());
        }
        if self.recovered.reports.is_empty() {
            return self.write().await;
        }
        // A commit would empty the journal before its results are in the history.
        self.live.journal(&self.config, &mut self.out, &[]).await
    }

    fn is_parked(&self) -> bool {
        matches!(self.turn.poll(), Want::Park(_))
    }

    async fn run_turn(&mut self) -> Result<TurnEnd, HarnessError> {
        self.begin_turn().await?;
        loop {
            match self.step().await? {
                Next::Step => {}
                Next::Parked(kind) => {
                    let mut end = self.ended(TerminalReason::Parked(kind));
                    end.requests.extend(self.requests_of_children().await?);
                    return Ok(end);
                }
                Next::Ended(reason) => return Ok(self.ended(reason)),
            }
        }
    }

    /// Puts a turn together, and tells it what another process knew of its step at work.
    async fn begin_turn(&mut self) -> Result<(), HarnessError> {
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
        Ok(())
    }

    /// Drives until one more step is committed, or the turn ends or parks.
    async fn step(&mut self) -> Result<Next, HarnessError> {
        let before = self.turn.steps();
        loop {
            if self.cancel.is_cancelled() && matches!(self.turn.poll(), Want::Prepare(_) | Want::Park(_)) {
                self.report(Report::Aborted(None)).await?;
            }
            let span = self.step_span.clone();
            match self.turn.poll() {
                Want::Prepare(_) if self.turn.steps() > before => return Ok(Next::Step),
                Want::Prepare(_) => self.prepare().await?,
                Want::Model => self.call_model().instrument(span).await?,
                Want::Tools(_) => self.run_tools().instrument(span).await?,
                Want::Park(kind) => {
                    if !self.hear_replies().await? {
                        return Ok(Next::Parked(kind));
                    }
                }
                Want::End(reason) => {
                    self.begin_background(reason);
                    return Ok(Next::Ended(reason.clone()));
                }
            }
        }
    }

    async fn run_tools(&mut self) -> Result<(), HarnessError> {
        self.tell_seen();
        let Want::Tools(pending) = self.turn.poll() else { return Ok(()) };
        let work = tools::Work {
            pending: pending.clone(),
            is_stored: std::mem::replace(&mut self.recovered.has_response, true),
            lost: &self.recovered.lost,
            active: self.prepared.active.as_ref(),
            context: &self.prepared.context,
            turn_from: self.turn_from,
            share: self.share(),
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

    /// What the step at work leaves to its sub-agents.
    fn share(&self) -> Share {
        let mut spent = self.turn.spent();
        // Their time is in the turn's own, which waited for them.
        let Spent { usage, nano_usd, .. } = &self.live.children.turn;
        spent += &Spent { usage: usage.clone(), nano_usd: *nano_usd, elapsed_ms: 0 };
        // The answer that gives the tasks is in no completed step yet.
        spent.usage +=
            &self.turn.pending().map(|pending| pending.response().usage.clone()).unwrap_or_default();
        Share::new(self.turn.steps(), spent, self.seen_ms)
    }

    /// Tells the turn, and commits when that completed a step or ended the turn.
    async fn report(&mut self, report: Report) -> Result<(), HarnessError> {
        let at = self.turn.step();
        self.tell_seen();
        let config = self.config.clone();
        let stop = WithChildren { own: &*config.stop, children: &self.live.children.turn };
        let rules = Rules { stop: &stop, mode: &config.mode };
        let step = self.turn.handle(rules, report)?;
        let stopped =
            step.is_some() && self.cancel.is_cancelled() && matches!(self.turn.poll(), Want::Prepare(_));
        if stopped {
            self.turn.handle(rules, Report::Aborted(None))?;
        }
        match (step, self.turn.poll()) {
            (Some(step), _) => {
                self.close_children(|_| true).await;
                self.commit_step(at, step).await
            }
            (None, Want::Park(_)) => {
                self.close_children(|held| held.reply.is_some()).await;
                self.write().await
            }
            (None, Want::End(_)) => self.write().await,
            (None, Want::Prepare(_) | Want::Model | Want::Tools(_)) => Ok(()),
        }
    }
}
