//! One cleared call runs to an answer, whatever happens: failure, panic, deadline or stop.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use agent_core::{ActionOutcome, Cancel, RawJson, ToolOutput};
use agent_tools::{Permit, Tool, ToolCx, ToolEnd, ToolError};
use futures_util::FutureExt;
use tracing::Instrument;

use super::child::Errand;
use super::{Admitted, Done, Waiting};

/// How long a tool or a hook may take to wind up after it was told to stop.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// How a run ended.
pub(super) enum Ran {
    Done(Done),
    /// It waits; the rest of the call stands beside it.
    Waits(Errand),
}

/// Runs it.
pub(super) async fn execute(cx: ToolCx, stop: &Cancel, admitted: Admitted, permit: Permit) -> Ran {
    let Admitted { call, tool, input, said } = admitted;
    let span =
        tracing::info_span!("tool", name = %call.name, call = %call.id, outcome = tracing::field::Empty);
    let ran = run_guarded(&cx, &*tool, permit, &input).instrument(span.clone()).await;
    let (output, made_by) = match ran {
        Ok(ToolEnd::Output(output)) => (output, Some(tool)),
        Ok(ToolEnd::Waits(wait)) => {
            let waiting = Waiting { call, input, wait };
            return Ran::Waits(Errand { waiting, said, tool, span });
        }
        Err(error) => (ToolOutput::error(error.to_string()), None),
    };
    let outcome = match output.is_error() {
        false => ActionOutcome::Completed,
        true if stop.is_cancelled() => ActionOutcome::Cancelled,
        true => ActionOutcome::Failed,
    };
    span.record("outcome", tracing::field::debug(outcome));
    Ran::Done(Done { call, input: Some(input), said, outcome, output, ran: true, made_by })
}

async fn run_guarded(
    cx: &ToolCx,
    tool: &dyn Tool,
    permit: Permit,
    input: &RawJson,
) -> Result<ToolEnd, ToolError> {
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

fn panicked(tool: &str, panic: &(dyn Any + Send)) -> ToolError {
    let words = words_of_panic(panic);
    ToolError::failed(format!("`{tool}` broke down ({words}). Do not repeat the call; find another way."))
}

/// What a panic said.
pub(super) fn words_of_panic(panic: &(dyn Any + Send)) -> &str {
    let words =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    words.unwrap_or("no message")
}

const INTERRUPTED: &str = "Interrupted: the user stopped the turn while this call ran, and it did not wind up in time. It may have had part of its effect; look at the present state before you go on.";
