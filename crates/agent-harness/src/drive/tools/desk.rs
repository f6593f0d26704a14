//! Where the calls of a step are run batch by batch, and their answers collected, journaled and told.

use agent_core::{
    ActionCall, Closed, EntryId, EventBody, Excerpt, InputRequest, JournalRecord, PendingStep, ToolCall,
    ToolResult, Usage,
};
use futures_util::StreamExt;
use futures_util::future::Either;
use futures_util::stream::FuturesUnordered;

use super::admit::{self, Checked};
use super::approve::{self, Asked};
use super::child::{self, Errand, Returned};
use super::execute::{Ran, execute};
use super::finish::{Finished, finish};
use super::{Cleared, Done, Site, Waiting, Work, Worked, hold};
use crate::HarnessError;
use crate::live::Live;
use crate::outbox::Outbox;

/// Where the answers of a step are collected, journaled and told.
pub(super) struct Desk<'a> {
    pub(super) site: &'a Site<'a>,
    pub(super) pending: &'a PendingStep,
    pub(super) turn_from: EntryId,
    /// The calls that had no result when the step was taken up.
    pub(super) calls: &'a [ToolCall],
    pub(super) live: &'a mut Live,
    pub(super) out: &'a mut Outbox,
    /// What the next write stores.
    pub(super) records: Vec<JournalRecord>,
    /// Whether a call waits for leave to run: none behind it runs before it.
    pub(super) is_blocked: bool,
    pub(super) worked: Worked,
}

/// What came of a call that began.
pub(super) enum Ended {
    Finished(Finished),
    Waits(Waiting),
    /// A sub-agent is to do it.
    Errand(Box<Errand>),
    /// A sub-agent did it.
    Returned(Finished, Returned),
    /// A sub-agent waits itself.
    Parked(InputRequest),
}

/// How a batch ended.
#[derive(PartialEq, Eq)]
pub(super) enum Batch {
    Done,
    /// The run was stopped before anything of it began.
    Stopped,
}

impl Batch {
    pub(super) fn is_stopped(&self) -> bool {
        *self == Self::Stopped
    }
}

impl<'a> Desk<'a> {
    /// A desk for these calls of a step; the next write stores its response, where that is not stored.
    pub(super) fn new(
        site: &'a Site<'a>,
        work: &'a Work<'_>,
        calls: &'a [ToolCall],
        live: &'a mut Live,
        out: &'a mut Outbox,
    ) -> Self {
        let mut records = Vec::new();
        if !work.is_stored {
            out.stage(EventBody::ActionsRequested { calls: calls.iter().map(action).collect() });
            records.push(JournalRecord::Response(work.pending.clone()));
            records.extend(work.active.cloned().map(JournalRecord::Active));
        }
        let worked = Worked { results: Vec::with_capacity(calls.len()), spent: Usage::default() };
        let (pending, turn_from) = (&work.pending, work.turn_from);
        Self { site, pending, turn_from, calls, live, out, records, is_blocked: false, worked }
    }
}

impl Desk<'_> {
    /// Runs the calls of a batch together. Each answer is stored before anything else is waited for: at once while
    /// others run, and the last one with what begins next, or with the commit of the step.
    pub(super) async fn run_batch(&mut self, batch: &[ToolCall]) -> Result<Batch, HarnessError> {
        let site = self.site;
        if !site.config.tool_hooks.is_empty() || site.permissions.classifier.is_some() {
            // A hook or a classifier may take long: the answer that was paid for is safe before.
            self.flush().await?;
        }
        let was_blocked = self.is_blocked;
        let mut checked = Vec::with_capacity(batch.len());
        for call in batch {
            match admit::check(site, call).await {
                Some(call) => checked.push(call),
                None => return Ok(Batch::Stopped),
            }
        }
        let Some(cleared) = self.clear(checked).await? else { return Ok(Batch::Stopped) };
        if was_blocked {
            // They are looked at again when the turn is taken up; what they wait for is known by then.
            return Ok(Batch::Done);
        }
        let mut running = FuturesUnordered::new();
        for Cleared { admitted, permit } in cleared {
            if !admitted.tool.traits().idempotent {
                self.records.push(JournalRecord::Started(admitted.call.id.clone()));
            }
            running.push(Either::Left(async move {
                let cx = site.cx(&admitted.call, &*admitted.tool);
                match execute(cx, site.cancel, admitted, permit).await {
                    Ran::Done(done) => finish(site, done).await.map(Ended::Finished),
                    Ran::Waits(errand) if child::is_errand(site, &errand.waiting) => {
                        Ok(Ended::Errand(Box::new(errand)))
                    }
                    Ran::Waits(errand) => Ok(Ended::Waits(errand.waiting)),
                }
            }));
        }
        if running.is_empty() {
            return Ok(Batch::Done);
        }
        self.flush().await?;
        while let Some(ended) = running.next().await {
            match ended? {
                Ended::Finished(finished) => self.record(finished),
                Ended::Waits(waiting) => self.hold(waiting),
                Ended::Errand(errand) => {
                    let sent = self.send(*errand).await?;
                    // On the heap: few calls are errands.
                    running.push(Either::Right(Box::pin(child::run(site, sent))));
                }
                Ended::Returned(finished, returned) => {
                    self.welcome(&finished, returned);
                    self.record(finished);
                }
                Ended::Parked(request) => self.hold_on(request),
            }
            if !running.is_empty() {
                self.flush().await?;
            }
        }
        Ok(Batch::Done)
    }

    /// Asks where a person decides, one question at a time, and answers what does not run. `None` when the run was
    /// stopped: nothing of the batch has begun then, so nothing of it begins.
    async fn clear(&mut self, checked: Vec<Checked>) -> Result<Option<Vec<Cleared>>, HarnessError> {
        let site = self.site;
        if checked.iter().any(|checked| matches!(checked, Checked::Ask(_))) {
            // A person may take long, too.
            self.flush().await?;
        }
        let mut cleared = Vec::with_capacity(checked.len());
        for checked in checked {
            let asked = match checked {
                Checked::Cleared(call) => Asked::Cleared(call),
                Checked::Answered(done) => Asked::Answered(done),
                Checked::Held(kind) => {
                    self.is_blocked |= hold::blocks(kind);
                    continue;
                }
                // On the heap: few calls ask.
                Checked::Ask(admitted) => Box::pin(approve::ask(site, admitted)).await,
            };
            match asked {
                Asked::Cleared(call) => cleared.push(call),
                Asked::Answered(done) => self.answer(done).await?,
                Asked::Waits(waiting) => self.hold(waiting),
                Asked::Stopped(done) => {
                    self.answer(done).await?;
                    return Ok(None);
                }
            }
        }
        Ok(Some(cleared))
    }

    /// Finishes a call that does not run.
    async fn answer(&mut self, mut done: Done) -> Result<(), HarnessError> {
        self.count_refusal(&mut done);
        if !self.site.config.tool_hooks.is_empty() {
            self.flush().await?;
        }
        let finished = finish(self.site, done).await?;
        self.record(finished);
        Ok(())
    }

    /// Tells that a sub-agent is done, and counts what it used.
    fn welcome(&mut self, finished: &Finished, returned: Returned) {
        let Returned { child, reason, steps, spent } = returned;
        self.live.children.add(&spent);
        let usage = spent.usage.clone();
        self.records.push(JournalRecord::Returned(spent));
        let call = finished.call.id.clone();
        if let Some(request) = self.live.close_task(&call, &finished.output) {
            let how = Closed::Answered;
            self.out.stage(EventBody::InputClosed { request, call: call.clone(), how });
        }
        self.out.stage(EventBody::SubagentCompleted { call, child, reason, steps, usage });
    }

    async fn flush(&mut self) -> Result<(), HarnessError> {
        self.live.journal(self.site.config, self.out, &std::mem::take(&mut self.records)).await
    }

    /// Tells and records one answer; the next flush stores it.
    fn record(&mut self, finished: Finished) {
        let Finished { call, outcome, output, shown, told, spent } = finished;
        for diagnostic in told {
            self.out.stage(EventBody::RequestDiagnostic(diagnostic));
        }
        self.worked.spent += &spent;
        self.out.stage(EventBody::ActionResult {
            call: call.id.clone(),
            tool: call.name,
            outcome,
            preview: Excerpt::of(&shown, PREVIEW_BYTES),
            bytes: shown.len() as u64,
        });
        let result = ToolResult { call: call.id, output };
        self.records
            .push(JournalRecord::Finished { result: result.clone(), slots: self.live.changed_slots() });
        self.worked.results.push(result);
    }
}

fn action(call: &ToolCall) -> ActionCall {
    ActionCall { call: call.id.clone(), tool: call.name.clone(), input: call.input.as_str().to_owned() }
}

/// How much of an output an event shows.
const PREVIEW_BYTES: usize = 2_000;
