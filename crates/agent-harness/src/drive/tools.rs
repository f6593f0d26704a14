//! The tool runs of a step: plan, permission, journal, execution, caps.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use agent_core::{
    ActionCall, ActionOutcome, BlobHash, CallId, Cancel, EventBody, JournalRecord, PendingStep, RawJson,
    ToolCall, ToolOutput, ToolResult, floor_boundary,
};
use agent_store::Store;
use agent_tools::{
    AskRequest, Blobs, ExecutionPlan, Permit, Preflight, Tool, ToolCx, ToolError, Verdict, preflight,
};
use async_trait::async_trait;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tracing::Instrument;

use crate::config::HarnessConfig;
use crate::live::Live;
use crate::outbox::Outbox;
use crate::{Answer, HarnessError};

/// How long a tool may take to wind up after it was told to stop.
const GRACE: Duration = Duration::from_secs(5);
/// How much of an output an event shows.
const PREVIEW_BYTES: usize = 2_000;

const OUTCOME_UNKNOWN: &str = "Outcome unknown: the program stopped while this call ran. It may have had all, part or none of its effect. Look at the present state before you decide whether to call it again.";
const INTERRUPTED: &str = "Interrupted: the user stopped the turn while this call ran, and it did not wind up in time. It may have had part of its effect; look at the present state before you go on.";

/// The calls of a step and what is known about them.
pub(super) struct Work<'a> {
    pub(super) pending: PendingStep,
    /// Whether the response is in the journal already.
    pub(super) journaled: bool,
    /// Calls that began in a process that died.
    pub(super) lost: &'a BTreeSet<CallId>,
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
    let mut records = Vec::new();
    if !work.journaled {
        out.stage(EventBody::ActionsRequested { calls: calls.iter().map(action).collect() });
        records.push(JournalRecord::Response(work.pending));
    }
    let plan = ExecutionPlan::new(&config.tools, &calls.iter().collect::<Vec<_>>());
    let mut results = Vec::with_capacity(calls.len());
    for batch in plan.batches() {
        if cancel.is_cancelled() {
            break;
        }
        let batch = batch.0.iter().filter_map(|position| calls.get(*position));
        let checked: Vec<Checked> = batch.map(|call| check(config, work.lost, call)).collect();
        if checked.iter().any(|checked| matches!(checked, Checked::Ask(..))) {
            // A person may take long: the answer that was paid for is safe before they are asked.
            live.journal(config, out, &std::mem::take(&mut records)).await?;
        }
        let mut running = FuturesUnordered::new();
        for checked in checked {
            match ask(config, cancel, checked).await {
                Ok(cleared) => {
                    if !cleared.tool.traits().idempotent {
                        records.push(JournalRecord::Started(cleared.call.id.clone()));
                    }
                    let cx = context(config, live, &cleared.call, cancel);
                    running.push(execute(cx, cleared));
                }
                Err(done) => results.push(finish(config, live, out, &mut records, done).await?),
            }
        }
        live.journal(config, out, &std::mem::take(&mut records)).await?;
        while let Some(done) = running.next().await {
            results.push(finish(config, live, out, &mut records, done).await?);
            live.journal(config, out, &std::mem::take(&mut records)).await?;
        }
    }
    live.journal(config, out, &records).await?;
    Ok(results)
}

/// Whether a call can and may run, as far as no person is needed.
fn check(config: &HarnessConfig, lost: &BTreeSet<CallId>, call: &ToolCall) -> Checked {
    let answered = |outcome, output| Checked::Answered(Done { call: call.clone(), outcome, output });
    let (tool, input) = match preflight(&config.tools, call) {
        Preflight::Run(tool, input) => (tool, input),
        Preflight::Answer(output) => return answered(ActionOutcome::Failed, output),
    };
    if lost.contains(&call.id) && !tool.traits().idempotent {
        return answered(ActionOutcome::Failed, ToolOutput::error(OUTCOME_UNKNOWN));
    }
    match config.permissions.check(&*tool, call, &input) {
        Verdict::Allow(permit) => Checked::Cleared(Cleared { call: call.clone(), tool, input, permit }),
        Verdict::Deny(words) => answered(ActionOutcome::Denied, ToolOutput::denied(words)),
        Verdict::Ask(request) => Checked::Ask(request, call.clone(), tool, input),
    }
}

/// Asks where a person decides; one question at a time.
async fn ask(config: &HarnessConfig, cancel: &Cancel, checked: Checked) -> Result<Cleared, Done> {
    let (request, call, tool, input) = match checked {
        Checked::Cleared(cleared) => return Ok(cleared),
        Checked::Answered(done) => return Err(done),
        Checked::Ask(request, call, tool, input) => (request, call, tool, input),
    };
    let answer = tokio::select! {
        biased;
        () = cancel.cancelled() => Ok(Answer::Deny(Some("the turn was stopped before anyone answered".to_owned()))),
        answer = config.asker.ask(&request) => answer,
    };
    let words = match answer {
        Ok(Answer::Allow) => return Ok(Cleared { call, tool, input, permit: request.allow() }),
        Ok(Answer::Deny(words)) => request.deny(words.as_deref()),
        Ok(Answer::Nobody) => request.nobody_to_ask(),
        Err(error) => {
            tracing::warn!(%error, tool = request.tool(), "leave could not be asked for");
            request.nobody_to_ask()
        }
    };
    Err(Done { call, outcome: ActionOutcome::Denied, output: ToolOutput::denied(words) })
}

fn context(config: &HarnessConfig, live: &Live, call: &ToolCall, cancel: &Cancel) -> ToolCx {
    ToolCx {
        session: live.meta.id.clone(),
        call: call.id.clone(),
        cancel: cancel.child(),
        slots: live.slots.clone(),
        blobs: Arc::new(StoredBlobs(config.store.clone())),
    }
}

/// Runs one cleared call to an answer, whatever happens: failure, panic, deadline or stop.
async fn execute(cx: ToolCx, cleared: Cleared) -> Done {
    let Cleared { call, tool, input, permit } = cleared;
    let span =
        tracing::info_span!("tool", name = %call.name, call = %call.id, outcome = tracing::field::Empty);
    let ran = run_guarded(&cx, &*tool, permit, &input).instrument(span.clone()).await;
    let (outcome, output) = match ran {
        Ok(output) if output.is_error() => (ActionOutcome::Failed, output),
        Ok(output) => (ActionOutcome::Completed, output),
        Err(error @ ToolError::Cancelled) => (ActionOutcome::Cancelled, ToolOutput::error(error.to_string())),
        Err(error) => (ActionOutcome::Failed, ToolOutput::error(error.to_string())),
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
    let deadline = tool.traits().deadline;
    let guarded = AssertUnwindSafe(tool.run(cx, permit, input)).catch_unwind();
    let work = guarded.map(|ran| ran.unwrap_or_else(|panic| Err(panicked(tool.card().name(), &*panic))));
    tokio::pin!(work);
    let expired = async {
        match deadline {
            Some(deadline) => tokio::time::sleep(deadline).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        ran = &mut work => ran,
        () = cx.cancel.cancelled() => {
            let wound_up = tokio::time::timeout(GRACE, work).await;
            wound_up.unwrap_or_else(|_| Err(ToolError::failed(INTERRUPTED)))
        }
        () = expired => {
            cx.cancel.cancel();
            let _ = tokio::time::timeout(GRACE, work).await;
            Err(ToolError::Timeout(deadline.unwrap_or_default()))
        }
    }
}

fn panicked(tool: &str, panic: &(dyn std::any::Any + Send)) -> ToolError {
    let words =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let words = words.unwrap_or("no message");
    ToolError::failed(format!("`{tool}` broke down ({words}). Do not repeat the call; find another way."))
}

/// Caps and tells one answer; the caller journals the record.
async fn finish(
    config: &HarnessConfig,
    live: &mut Live,
    out: &mut Outbox,
    records: &mut Vec<JournalRecord>,
    done: Done,
) -> Result<ToolResult, HarnessError> {
    let Done { call, outcome, output } = done;
    let whole = output.plain();
    let output = cap(config, live, &call, output, &whole).await?;
    out.stage(EventBody::ActionResult {
        call: call.id.clone(),
        tool: call.name.clone(),
        outcome,
        preview: whole[..floor_boundary(&whole, PREVIEW_BYTES)].to_owned(),
        bytes: whole.len() as u64,
    });
    let result = ToolResult { call: call.id, output };
    records.push(JournalRecord::Finished { result: result.clone(), slots: live.changed_slots() });
    Ok(result)
}

/// Keeps an output under its tool's cap; the original goes to the blob store first, so nothing is lost.
async fn cap(
    config: &HarnessConfig,
    live: &Live,
    call: &ToolCall,
    output: ToolOutput,
    whole: &str,
) -> Result<ToolOutput, HarnessError> {
    let cap = config.tools.get(&call.name).map(|tool| tool.traits().cap).unwrap_or_default();
    if matches!(output, ToolOutput::Content(_)) || cap.apply(whole, "").cut_bytes == 0 {
        return Ok(output);
    }
    let hash = config.store.put_blob(&live.meta.id, whole.as_bytes()).await?;
    let capped = cap.apply(whole, &format!("read on with read_file, path \"{hash}\"")).text;
    if matches!(output, ToolOutput::Denied(_)) {
        return Ok(ToolOutput::denied(capped));
    }
    Ok(if output.is_error() { ToolOutput::error(capped) } else { ToolOutput::text(capped) })
}

fn action(call: &ToolCall) -> ActionCall {
    ActionCall { call: call.id.clone(), tool: call.name.clone(), input: call.input.as_str().to_owned() }
}

/// Offloaded outputs, read from the store.
#[derive(Debug)]
struct StoredBlobs(Arc<dyn Store>);

#[async_trait]
impl Blobs for StoredBlobs {
    async fn get(&self, hash: &BlobHash) -> Result<Option<Vec<u8>>, String> {
        self.0.get_blob(hash).await.map_err(|error| error.to_string())
    }
}
