//! The tool runs of a step: plan, permission, journal, execution, caps.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use agent_core::{
    ActionCall, ActionOutcome, CallId, Cancel, ContentPart, Context, EventBody, Excerpt, JournalRecord,
    PendingStep, RawJson, Text, ToolCall, ToolOutput, ToolResult,
};
use agent_tools::{
    AskRequest, Permit, Preflight, Proposal, Tool, ToolCx, ToolError, Verdict, batches, preflight,
};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tracing::Instrument;

use super::call::inactive;
use crate::config::HarnessConfig;
use crate::live::Live;
use crate::outbox::Outbox;
use crate::{Answer, HarnessError};

/// How long a tool may take to wind up after it was told to stop.
const GRACE: Duration = Duration::from_secs(5);
/// How much of an output an event shows.
const PREVIEW_BYTES: usize = 2_000;

const OUTCOME_UNKNOWN: &str = "Outcome unknown: the program stopped while this call ran. It may have had all, part or none of its effect. Look at the present state before you decide whether to call it again.";
const WITHDRAWN: &str =
    "Not run: the user stopped the turn before anyone answered whether this call may run.";
const INTERRUPTED: &str = "Interrupted: the user stopped the turn while this call ran, and it did not wind up in time. It may have had part of its effect; look at the present state before you go on.";

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
}

/// A call that is cleared to run.
struct Cleared {
    call: ToolCall,
    tool: Arc<dyn Tool>,
    input: RawJson,
    permit: Permit,
}

/// What the check said of a call.
enum Checked {
    Cleared(Cleared),
    /// A person decides; the call as it would run, without its permit.
    Ask(AskRequest, ToolCall, Arc<dyn Tool>, RawJson),
    Answered(Done),
}

/// What came of asking.
enum Asked {
    Cleared(Cleared),
    Answered(Done),
    /// The run was stopped while a person was asked.
    Stopped(Done),
}

/// A call that has its answer.
struct Done {
    call: ToolCall,
    outcome: ActionOutcome,
    output: ToolOutput,
}

/// Runs every call without a result; when the run is stopped, calls that did not begin are left without one.
pub(super) async fn run(
    config: &HarnessConfig,
    live: &mut Live,
    out: &mut Outbox,
    cancel: &Cancel,
    work: Work<'_>,
) -> Result<Vec<ToolResult>, HarnessError> {
    let calls: Vec<ToolCall> = work.pending.unanswered().cloned().collect();
    let context = work.context;
    let results = Vec::with_capacity(calls.len());
    let mut desk = Desk { config, context, live, out, records: Vec::new(), results };
    if !work.is_stored {
        desk.out.stage(EventBody::ActionsRequested { calls: calls.iter().map(action).collect() });
        desk.records.push(JournalRecord::Response(work.pending));
        desk.records.extend(work.active.cloned().map(JournalRecord::Active));
    }
    for batch in batches(&config.tools, &calls) {
        if cancel.is_cancelled() {
            break;
        }
        let mut checked = Vec::with_capacity(batch.len());
        for call in batch {
            checked.push(check(config, work.lost, work.active, call).await);
        }
        desk.run_batch(cancel, checked).await?;
    }
    // What is not stored yet is written by the commit of the step, which follows at once.
    Ok(desk.results)
}

/// Where the answers of a step are collected, journaled and told.
struct Desk<'a> {
    config: &'a HarnessConfig,
    context: &'a Context,
    live: &'a mut Live,
    out: &'a mut Outbox,
    /// What the next write stores.
    records: Vec<JournalRecord>,
    results: Vec<ToolResult>,
}

impl Desk<'_> {
    /// Runs the calls of a batch together. Each answer is stored before anything else is waited for: at once while
    /// others run, and the last one with what begins next, or with the commit of the step.
    async fn run_batch(&mut self, cancel: &Cancel, checked: Vec<Checked>) -> Result<(), HarnessError> {
        if checked.iter().any(|checked| matches!(checked, Checked::Ask(..))) {
            // A person may take long: the answer that was paid for is safe before they are asked.
            self.flush().await?;
        }
        let mut cleared = Vec::with_capacity(checked.len());
        for checked in checked {
            match ask(self.config, cancel, checked).await {
                Asked::Cleared(call) => cleared.push(call),
                Asked::Answered(done) => self.finish(done).await?,
                // Nothing of this batch has begun, so nothing of it begins.
                Asked::Stopped(done) => return self.finish(done).await,
            }
        }
        let mut running = FuturesUnordered::new();
        for cleared in cleared {
            if !cleared.tool.traits().idempotent {
                self.records.push(JournalRecord::Started(cleared.call.id.clone()));
            }
            running.push(execute(self.cx(&cleared.call, cancel), cancel, cleared));
        }
        if running.is_empty() {
            return Ok(());
        }
        self.flush().await?;
        while let Some(done) = running.next().await {
            self.finish(done).await?;
            if !running.is_empty() {
                self.flush().await?;
            }
        }
        Ok(())
    }

    /// The surroundings of a call.
    fn cx(&self, call: &ToolCall, cancel: &Cancel) -> ToolCx {
        ToolCx {
            session: self.live.meta.id.clone(),
            call: call.id.clone(),
            cancel: cancel.child(),
            slots: self.live.slots.clone(),
            blobs: self.live.blobs.clone(),
            context: self.context.clone(),
        }
    }

    async fn flush(&mut self) -> Result<(), HarnessError> {
        self.live.journal(self.config, self.out, &std::mem::take(&mut self.records)).await
    }

    /// Caps, tells and records one answer; the next flush stores it.
    async fn finish(&mut self, done: Done) -> Result<(), HarnessError> {
        let Done { call, outcome, output } = done;
        let whole = output.shared();
        let output = self.cap(&call, output, &whole).await?;
        self.out.stage(EventBody::ActionResult {
            call: call.id.clone(),
            tool: call.name,
            outcome,
            preview: Excerpt::of(&whole, PREVIEW_BYTES),
            bytes: whole.len() as u64,
        });
        let result = ToolResult { call: call.id, output };
        self.records
            .push(JournalRecord::Finished { result: result.clone(), slots: self.live.changed_slots() });
        self.results.push(result);
        Ok(())
    }

    /// Keeps an output under its tool's cap; the original goes to the blob store first, so nothing is lost.
    async fn cap(
        &mut self,
        call: &ToolCall,
        output: ToolOutput,
        whole: &str,
    ) -> Result<ToolOutput, HarnessError> {
        let cap = self.config.tools.get(&call.name).map(|tool| tool.traits().cap).unwrap_or_default();
        if cap.fits(whole) {
            return Ok(output);
        }
        // What finished before is safe before this is waited for.
        self.flush().await?;
        let hash = self.config.store.put_blob(&self.live.meta.id, whole.as_bytes()).await?;
        let capped = cap.apply(whole, &format!("read on with read_file, path \"{hash}\"")).text;
        if let ToolOutput::Content(parts) = output {
            // Words are capped together; files are not words, and stay.
            let files = parts.into_iter().filter(|part| matches!(part, ContentPart::File(_)));
            let words = ContentPart::Text(Text::or(capped, "(no output)"));
            return Ok(ToolOutput::Content(std::iter::once(words).chain(files).collect()));
        }
        if matches!(output, ToolOutput::Denied(_)) {
            return Ok(ToolOutput::denied(capped));
        }
        Ok(if output.is_error() { ToolOutput::error(capped) } else { ToolOutput::text(capped) })
    }
}

/// Whether a call can and may run, as far as no person is needed.
async fn check(
    config: &HarnessConfig,
    lost: &BTreeSet<CallId>,
    active: Option<&BTreeSet<String>>,
    call: &ToolCall,
) -> Checked {
    let answered = |outcome, output| Checked::Answered(Done { call: call.clone(), outcome, output });
    if let Some(words) = inactive(active, &config.tools, &call.name) {
        return answered(ActionOutcome::Failed, ToolOutput::error(words));
    }
    let (tool, input) = match preflight(&config.tools, call) {
        Preflight::Run(tool, input) => (tool, input),
        Preflight::Answer(output) => return answered(ActionOutcome::Failed, output),
    };
    if lost.contains(&call.id) && !tool.traits().idempotent {
        return answered(ActionOutcome::Failed, ToolOutput::error(OUTCOME_UNKNOWN));
    }
    match config.permissions.check(Proposal::new(&*tool, &call.id, &input)).await {
        Verdict::Allow(permit) => Checked::Cleared(Cleared { call: call.clone(), tool, input, permit }),
        Verdict::Deny(words) => answered(ActionOutcome::Denied, ToolOutput::denied(words)),
        Verdict::Ask(request) => Checked::Ask(request, call.clone(), tool, input),
    }
}

/// Asks where a person decides; one question at a time.
async fn ask(config: &HarnessConfig, cancel: &Cancel, checked: Checked) -> Asked {
    let (request, call, tool, input) = match checked {
        Checked::Cleared(cleared) => return Asked::Cleared(cleared),
        Checked::Answered(done) => return Asked::Answered(done),
        Checked::Ask(request, call, tool, input) => (request, call, tool, input),
    };
    let answer = tokio::select! {
        biased;
        () = cancel.cancelled() => {
            let output = ToolOutput::error(WITHDRAWN);
            return Asked::Stopped(Done { call, outcome: ActionOutcome::Cancelled, output });
        }
        answer = config.asker.ask(&request) => answer,
    };
    let words = match answer {
        Ok(Answer::Allow | Answer::Always(_)) => {
            return Asked::Cleared(Cleared { call, tool, input, permit: request.allow() });
        }
        Ok(Answer::Deny(words)) => request.deny(words.as_deref()),
        Ok(Answer::Nobody | Answer::Edit(_)) => request.nobody_to_ask(),
        Err(error) => {
            tracing::warn!(%error, tool = request.tool(), "nobody could be asked for permission");
            request.nobody_to_ask()
        }
    };
    Asked::Answered(Done { call, outcome: ActionOutcome::Denied, output: ToolOutput::denied(words) })
}

/// Runs one cleared call to an answer, whatever happens: failure, panic, deadline or stop.
async fn execute(cx: ToolCx, stop: &Cancel, cleared: Cleared) -> Done {
    let Cleared { call, tool, input, permit } = cleared;
    let span =
        tracing::info_span!("tool", name = %call.name, call = %call.id, outcome = tracing::field::Empty);
    let ran = run_guarded(&cx, &*tool, permit, &input).instrument(span.clone()).await;
    let output = ran.unwrap_or_else(|error| ToolOutput::error(error.to_string()));
    let outcome = match output.is_error() {
        false => ActionOutcome::Completed,
        true if stop.is_cancelled() => ActionOutcome::Cancelled,
        true => ActionOutcome::Failed,
    };
    span.record("outcome", tracing::field::debug(outcome));
    Done { call, outcome, output }
}

async fn run_guarded(
    cx: &ToolCx,
    tool: &dyn Tool,
    permit: Permit,
    input: &RawJson,
) -> Result<ToolOutput, ToolError> {
    let guarded = AssertUnwindSafe(tool.run(cx, permit, input)).catch_unwind();
    let work = guarded.map(|ran| ran.unwrap_or_else(|panic| Err(panicked(tool.card().name(), &*panic))));
    tokio::pin!(work);
    let deadline = tool.traits().deadline;
    let expired = async {
        match deadline {
            Some(deadline) => {
                tokio::time::sleep(deadline).await;
                ToolError::Timeout(deadline)
            }
            None => std::future::pending().await,
        }
    };
    let stopped = tokio::select! {
        biased;
        ran = &mut work => return ran,
        () = cx.cancel.cancelled() => ToolError::failed(INTERRUPTED),
        timeout = expired => {
            cx.cancel.cancel();
            timeout
        }
    };
    // What it did in the end is what the model must know; only a tool that says no more is given up.
    match tokio::time::timeout(GRACE, work).await {
        Ok(Ok(output)) => Ok(output),
        Ok(Err(ToolError::Cancelled)) if matches!(stopped, ToolError::Timeout(_)) => Err(stopped),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(stopped),
    }
}

fn panicked(tool: &str, panic: &(dyn std::any::Any + Send)) -> ToolError {
    let words =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let words = words.unwrap_or("no message");
    ToolError::failed(format!("`{tool}` broke down ({words}). Do not repeat the call; find another way."))
}

fn action(call: &ToolCall) -> ActionCall {
    ActionCall { call: call.id.clone(), tool: call.name.clone(), input: call.input.as_str().to_owned() }
}
