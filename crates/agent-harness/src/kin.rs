//! What the sessions of sub-agents hold for their parent: how they ended, what they wait for, whether they can go on.

use std::sync::Arc;
use std::time::Duration;

use agent_core::{
    AgentTask, Entry, EventBody, Heard, HeldRequest, Input, InputRequest, Reply, RequestId, SessionId,
    SessionState, Spent, TerminalReason,
};
use agent_store::{Store, StoreError};
use agent_turn::{Turn, Want};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::children::{Share, config_of};
use crate::config::HarnessConfig;
use crate::drive::is_ready;
use crate::{HarnessError, Session};

/// What a child's session tells of its turn.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// Its last words, or the summary it completed with.
    pub(crate) text: String,
    /// Why its turn ended, once it has.
    pub(crate) reason: Option<TerminalReason>,
    pub(crate) steps: u32,
    /// What it used, and its own children.
    pub(crate) spent: Spent,
    /// What made its turn fail.
    pub(crate) failure: Option<String>,
}

/// Reads it; nothing is told of a session that is not there.
pub(crate) async fn told(store: &dyn Store, child: &SessionId) -> Result<Told, HarnessError> {
    let (Some(record), Some(state)) = (store.load(child).await?, store.state(child).await?) else {
        return Ok(Told::default());
    };
    let unreadable = |cause| HarnessError::Unreadable { session: child.clone(), cause };
    let (history, _) = agent_core::History::load(&record.entries).map_err(unreadable)?;
    let steps: Vec<_> = history.entries().iter().filter_map(Entry::as_step).collect();
    let last = steps.last();
    let mut text = last.map(|step| step.text()).unwrap_or_default();
    if text.trim().is_empty()
        && state.terminal == Some(TerminalReason::Completed)
        && let Some(result) = last.and_then(|step| step.results().last())
    {
        text = result.output.plain();
    }
    // The last reason is looked for, and the last turn is all that a child has.
    let is_failure = matches!(state.terminal, Some(TerminalReason::Error(_)));
    let failure = if is_failure { failure_of(store, child).await? } else { None };
    let steps = u32::try_from(steps.len()).unwrap_or(u32::MAX);
    Ok(Told { text, reason: state.terminal, steps, spent: state.checkpoint.spent_by_all(), failure })
}

/// The words of the failure that a turn ended with.
async fn failure_of(store: &dyn Store, child: &SessionId) -> Result<Option<String>, StoreError> {
    let events = store.events(child, 0).await?;
    Ok(events.into_iter().rev().find_map(|event| {
        if let EventBody::TurnFailed { message, .. } = event.body { Some(message) } else { None }
    }))
}

/// Ends the open turn of the child that this request is for, with those of its own children, as a stop of the run does:
/// its calls get results, its requests close, and its last event says so. A child that cannot be ended holds nobody up; who
/// takes it up later finds it open.
pub(crate) fn close<'a>(
    config: &'a HarnessConfig,
    parent: &'a SessionId,
    request: &'a InputRequest,
) -> BoxFuture<'a, ()> {
    async move {
        let Some(id) = request.child_session(parent) else { return };
        if let Err(error) = closed(config, parent, (&id, request)).await {
            tracing::warn!(%error, child = %id, "a sub-agent that nobody waits for is left open");
        }
    }
    .boxed()
}

async fn closed(
    config: &HarnessConfig,
    parent: &SessionId,
    (id, request): (&SessionId, &InputRequest),
) -> Result<(), HarnessError> {
    for _ in 0..TRIES {
        let state = config.store.state(id).await?;
        if state.is_none_or(|state| state.checkpoint.turn.is_none()) {
            return Ok(());
        }
        // One of a kind that is gone is ended all the same.
        let child = child(config, parent, request)
            .unwrap_or_else(|| Session::new(Arc::new(config.clone()), id.clone()));
        match child.resume().await {
            Ok(run) => {
                run.cancel().cancel();
                return run.finish().await.map(drop);
            }
            Err(HarnessError::AtWork(_) | HarnessError::Store(StoreError::Busy { .. })) => {
                tokio::time::sleep(PAUSE).await;
            }
            Err(HarnessError::NothingToResume(_)) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Err(HarnessError::AtWork(id.clone()))
}

/// The children that a session waits for, as sessions.
pub(crate) fn children<'a>(
    config: &'a HarnessConfig,
    id: &'a SessionId,
    held: &'a [HeldRequest],
) -> impl Iterator<Item = Session> + 'a {
    held.iter().filter(|held| held.reply.is_none()).filter_map(|held| child(config, id, &held.request))
}

fn child(config: &HarnessConfig, parent: &SessionId, request: &InputRequest) -> Option<Session> {
    let task = request.agent_task()?.to::<AgentTask>().ok()?;
    let id = request.child_session(parent)?;
    let allowance = Share::default().allow(&id, Spent::default(), 0);
    let config = config_of(config, task.kind.as_deref(), None, allowance)?;
    Some(Session::new(Arc::new(config), id))
}

/// What children wait for, and theirs.
pub(crate) fn requests<'a>(
    config: &'a HarnessConfig,
    id: &'a SessionId,
    waits: &'a [HeldRequest],
) -> BoxFuture<'a, Result<Vec<InputRequest>, StoreError>> {
    async move {
        let mut all = Vec::new();
        for child in children(config, id, waits) {
            let Some(state) = config.store.state(&child.id).await? else { continue };
            let waits = state.held();
            all.extend(waits.iter().filter(|held| held.reply.is_none()).map(|held| held.request.clone()));
            all.extend(requests(&child.config, &child.id, &waits).await?);
        }
        Ok(all)
    }
    .boxed()
}

/// Whether one of the children has something to do, or is done.
pub(crate) fn can_go_on<'a>(
    config: &'a HarnessConfig,
    id: &'a SessionId,
    waits: &'a [HeldRequest],
) -> BoxFuture<'a, Result<bool, StoreError>> {
    async move {
        for child in children(config, id, waits) {
            let Some(state) = config.store.state(&child.id).await? else { return Ok(true) };
            let waits = state.held();
            let goes_on =
                has_work(config, &state, &waits) || can_go_on(&child.config, &child.id, &waits).await?;
            if goes_on {
                return Ok(true);
            }
        }
        Ok(false)
    }
    .boxed()
}

/// Whether a turn is over, runs, or has what it waits for.
fn has_work(config: &HarnessConfig, state: &SessionState, waits: &[HeldRequest]) -> bool {
    let turn = state.checkpoint.turn.as_ref().and_then(|turn| Turn::restore(turn).ok());
    let Some(turn) = turn.filter(|turn| matches!(turn.poll(), Want::Park(_))) else { return true };
    let is_told = state.inputs.iter().any(|stored| match &stored.input {
        Input::Reply { .. } | Input::Message { heard: Heard::Instead, .. } => true,
        // It is heard once something else lets the turn go on.
        Input::Message { heard: Heard::NextStep | Heard::After, .. } => false,
    });
    is_told || is_ready(&turn, waits, config.clock.now_ms())
}

/// Leaves a reply with the child, or the child's child, that asked; whether there is one that did.
///
/// # Errors
/// As [`Session::respond`].
pub(crate) fn reply<'a>(
    config: &'a HarnessConfig,
    id: &'a SessionId,
    waits: &'a [HeldRequest],
    given: (&'a RequestId, &'a Reply),
) -> BoxFuture<'a, Result<bool, HarnessError>> {
    async move {
        let (request, reply) = given;
        for child in children(config, id, waits) {
            let Some(state) = config.store.state(&child.id).await? else { continue };
            let waits = state.held();
            if waits.iter().all(|held| held.request.id != *request) {
                if self::reply(&child.config, &child.id, &waits, given).await? {
                    return Ok(true);
                }
                continue;
            }
            return child.leave(&waits, request, reply.clone()).await.map(|_| true);
        }
        Ok(false)
    }
    .boxed()
}

/// How long a worker that has a child which is to end may take to give it back.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(200);
