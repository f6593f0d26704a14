//! The tool runs of a step: plan, hooks, permission, journal, execution, and what of an output enters the history.

mod admit;
mod approve;
mod beside;
mod execute;
mod finish;
mod hooks;
mod refused;
mod shorten;
mod summarise;

use std::collections::BTreeSet;
use std::sync::Arc;

use agent_core::{
    ActionCall, ActionOutcome, CallId, Cancel, Context, Diagnostic, EntryId, EventBody, Excerpt,
    JournalRecord, PendingStep, RawJson, SessionId, Text, ToolCall, ToolOutput, ToolResult, Usage,
};
use agent_tools::{Blobs, Permit, SlotsHandle, Tool, ToolCx, batches};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use crate::HarnessError;
use crate::breaker::Breaker;
use crate::config::HarnessConfig;
use crate::live::Live;
use crate::outbox::Outbox;
use admit::Checked;
use approve::Asked;
use finish::{Finished, finish};

/// The calls of a step and what is known about them.
pub(super) struct Work<'a> {
    pub(super) pending: PendingStep,
    /// Whether the response is stored already.
    pub(super) is_stored: bool,
    /// Calls that began in a process that died.
    pub(super) lost: &'a BTreeSet<CallId>,
    /// The only tools that may be called, when not all may.
    pub(super) active: Option<&'a BTreeSet<String>>,
    /// What the program shares with the calls.
    pub(super) context: &'a Context,
    /// Where the turn begins.
    pub(super) turn_from: EntryId,
}

/// What came of the calls.
pub(super) struct Worked {
    pub(super) results: Vec<ToolResult>,
    /// Tokens of the models that shortened outputs.
    pub(super) spent: Usage,
}

/// What every call of a step is run with.
struct Site<'a> {
    config: &'a HarnessConfig,
    cancel: &'a Cancel,
    lost: &'a BTreeSet<CallId>,
    active: Option<&'a BTreeSet<String>>,
    context: &'a Context,
    session: SessionId,
    slots: SlotsHandle,
    blobs: Arc<dyn Blobs>,
    shortening: Arc<Breaker>,
}

/// A call that can run: its tool, and the input as it would run.
struct Admitted {
    call: ToolCall,
    tool: Arc<dyn Tool>,
    input: RawJson,
    said: Said,
}

/// What hooks and people said of a call.
#[derive(Default)]
struct Said {
    /// Who put another input in place of the model's own, in order; empty when what runs is what it wrote.
    changed_by: Vec<String>,
    /// The hook that allows the call.
    allowed_by: Option<String>,
    /// The hook that wants a person to decide.
    asked_by: Option<String>,
    /// Words of hooks for the model.
    context: Vec<Text>,
    /// What the program and its user are told.
    told: Vec<Diagnostic>,
}

/// A call that is cleared to run.
struct Cleared {
    admitted: Admitted,
    permit: Permit,
}

/// A call that has its answer, before that is shortened and the hooks behind it have looked.
struct Done {
    call: ToolCall,
    /// The input that ran, or would have; `None` for what is no input.
    input: Option<RawJson>,
    said: Said,
    outcome: ActionOutcome,
    output: ToolOutput,
    /// Whether the tool began.
    ran: bool,
    /// The tool, when the output is what it gave.
    made_by: Option<Arc<dyn Tool>>,
}

/// Runs every call without a result; when the run is stopped, calls that did not begin are left without one.
pub(super) async fn run(
    config: &HarnessConfig,
    live: &mut Live,
    out: &mut Outbox,
    cancel: &Cancel,
    work: Work<'_>,
) -> Result<Worked, HarnessError> {
    let calls: Vec<ToolCall> = work.pending.unanswered().cloned().collect();
    let site = Site {
        config,
        cancel,
        lost: work.lost,
        active: work.active,
        context: work.context,
        session: live.meta.id.clone(),
        slots: live.slots.clone(),
        blobs: live.blobs.clone(),
        shortening: live.shortening.clone(),
    };
    let worked = Worked { results: Vec::with_capacity(calls.len()), spent: Usage::default() };
    let (pending, turn_from) = (&work.pending, work.turn_from);
    let mut desk =
        Desk { site: &site, pending, turn_from, calls: &calls, live, out, records: Vec::new(), worked };
    if !work.is_stored {
        desk.out.stage(EventBody::ActionsRequested { calls: calls.iter().map(action).collect() });
        desk.records.push(JournalRecord::Response(pending.clone()));
        desk.records.extend(work.active.cloned().map(JournalRecord::Active));
    }
    for batch in batches(&config.tools, &calls) {
        if cancel.is_cancelled() || desk.run_batch(batch).await?.is_stopped() {
            break;
        }
    }
    // What is not stored yet is written by the commit of the step, which follows at once.
    Ok(desk.worked)
}

/// Where the answers of a step are collected, journaled and told.
struct Desk<'a> {
    site: &'a Site<'a>,
    pending: &'a PendingStep,
    turn_from: EntryId,
    /// The calls that had no result when the step was taken up.
    calls: &'a [ToolCall],
    live: &'a mut Live,
    out: &'a mut Outbox,
    /// What the next write stores.
    records: Vec<JournalRecord>,
    worked: Worked,
}

/// How a batch ended.
#[derive(PartialEq, Eq)]
enum Batch {
    Done,
    /// The run was stopped before anything of it began.
    Stopped,
}

impl Batch {
    fn is_stopped(&self) -> bool {
        *self == Self::Stopped
    }
}

impl Desk<'_> {
    /// Runs the calls of a batch together. Each answer is stored before anything else is waited for: at once while
    /// others run, and the last one with what begins next, or with the commit of the step.
    async fn run_batch(&mut self, batch: &[ToolCall]) -> Result<Batch, HarnessError> {
        let site = self.site;
        if !site.config.tool_hooks.is_empty() {
            // A hook may take long: the answer that was paid for is safe before.
            self.flush().await?;
        }
        let mut checked = Vec::with_capacity(batch.len());
        for call in batch {
            match admit::check(site, call).await {
                Some(call) => checked.push(call),
                None => return Ok(Batch::Stopped),
            }
        }
        let Some(cleared) = self.clear(checked).await? else { return Ok(Batch::Stopped) };
        let mut running = FuturesUnordered::new();
        for Cleared { admitted, permit } in cleared {
            if !admitted.tool.traits().idempotent {
                self.records.push(JournalRecord::Started(admitted.call.id.clone()));
            }
            running.push(async move {
                let done = execute::execute(site.cx(&admitted.call), site.cancel, admitted, permit).await;
                finish(site, done).await
            });
        }
        if running.is_empty() {
            return Ok(Batch::Done);
        }
        self.flush().await?;
        while let Some(finished) = running.next().await {
            self.record(finished?);
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
                // On the heap: few calls ask.
                Checked::Ask(admitted) => Box::pin(approve::ask(site, admitted)).await,
            };
            match asked {
                Asked::Cleared(call) => cleared.push(call),
                Asked::Answered(done) => self.answer(done).await?,
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

impl Site<'_> {
    /// The surroundings of a call.
    fn cx(&self, call: &ToolCall) -> ToolCx {
        ToolCx {
            session: self.session.clone(),
            call: call.id.clone(),
            cancel: self.cancel.child(),
            slots: self.slots.clone(),
            blobs: self.blobs.clone(),
            context: self.context.clone(),
        }
    }
}

impl Admitted {
    /// What the model wrote, when something else would run.
    fn written(&self) -> Option<&RawJson> {
        self.call.input.json().filter(|written| **written != self.input)
    }

    /// The answer to a call that does not run.
    fn answered(self, outcome: ActionOutcome, output: ToolOutput) -> Done {
        let Self { call, input, said, .. } = self;
        Done { call, input: Some(input), said, outcome, output, ran: false, made_by: None }
    }
}

impl Done {
    /// The answer to a call of which nothing more is known.
    fn at_once(call: &ToolCall, output: ToolOutput) -> Self {
        let (input, outcome) = (call.input.json().cloned(), ActionOutcome::Failed);
        Self { call: call.clone(), input, said: Said::default(), outcome, output, ran: false, made_by: None }
    }
}

fn action(call: &ToolCall) -> ActionCall {
    ActionCall { call: call.id.clone(), tool: call.name.clone(), input: call.input.as_str().to_owned() }
}

/// How much of an output an event shows.
const PREVIEW_BYTES: usize = 2_000;
