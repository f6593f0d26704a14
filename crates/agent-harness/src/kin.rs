//! What the sessions of sub-agents hold for their parent: how they ended, what they wait for, whether they can go on.

use std::sync::Arc;

use agent_core::{
    AgentTask, Entry, EventBody, Heard, HeldRequest, Input, InputRequest, Reply, RequestId, SessionId,
    SessionState, TerminalReason, TurnId, Usage,
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
    /// Its tokens, and those of its own children.
    pub(crate) usage: Usage,
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
    let steps: Vec<_> = history
        .entries()
        .iter()
        .filter_map(|entry| match entry {
            Entry::Step(step) => Some(step),
            Entry::User(_) | Entry::Note(_) | Entry::Boundary(_) => None,
        })
        .collect();
    let last = steps.last();
    let mut text = last.map(|step| step.text()).unwrap_or_default();
    if text.trim().is_empty()
        && state.terminal == Some(TerminalReason::Completed)
        && let Some(result) = last.and_then(|step| step.results().last())
    {
        text = result.output.plain();
    }
    let mut usage = state.checkpoint.usage;
    let mut failure = None;
    for event in store.events(child, 0).await? {
        if let EventBody::SubagentCompleted { usage: of_child, .. } = &event.body {
            usage += of_child;
        }
        if let EventBody::TurnFailed { message, .. } = event.body {
            failure = Some(message);
        }
    }
    let steps = u32::try_from(steps.len()).unwrap_or(u32::MAX);
    Ok(Told { text, reason: state.terminal, steps, usage, failure })
}

/// The tokens of the children that a turn has had results of.
pub(crate) async fn spent(store: &dyn Store, id: &SessionId, turn: TurnId) -> Result<Usage, StoreError> {
    let mut sum = Usage::default();
    for event in store.events(id, 0).await?.into_iter().filter(|event| event.turn == Some(turn)) {
        if let EventBody::SubagentCompleted { usage, .. } = event.body {
            sum += &usage;
        }
    }
    Ok(sum)
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
    let config = config_of(config, task.kind.as_deref(), None, (&id, &Share::default()))?;
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
