//! An agent at work on nothing: its own parts, a model that answers from a list, tools that do nothing.

use std::sync::Arc;

use agent_core::{
    AssistantPart, CallId, Entry, History, IdError, RawJson, SessionId, ToolCall, ToolInput, ToolResult,
};
use agent_store::{MemoryStore, Store};
use agent_tools::{PermissionMode, Permissions};
use agent_turn::{Mode, step_count};

use crate::config::{Harness, HarnessConfig};
use crate::quiet::quiet;
use crate::spy::{Answer, Seen, Spy};
use crate::stand_ins::StandIns;
use crate::{AllowAll, Clock, HarnessError, RetryPolicy, TurnEnd};

/// More steps than any rehearsal takes.
const STEPS: u32 = 100;
/// What the user says in a rehearsal.
pub(super) const MESSAGE: &str = "This is a rehearsal.";

/// What came of a rehearsal.
pub(super) struct Rehearsal {
    pub(super) seen: Seen,
    pub(super) stand_ins: StandIns,
    pub(super) store: Arc<MemoryStore>,
}

/// A clock that stands still, so that two rehearsals differ in nothing.
#[derive(Debug)]
pub(super) struct Stopped(i64);

impl Rehearsal {
    /// The agent with everything allowed: the model says these answers, and stand-ins answer its calls.
    pub(super) async fn of(
        config: &HarnessConfig,
        answers: Vec<Answer>,
        stand_ins: StandIns,
    ) -> Result<Self, HarnessError> {
        let open = HarnessConfig {
            permissions: Permissions { mode: PermissionMode::Bypass, ..Permissions::default() },
            asker: Arc::new(AllowAll),
            ..config.clone()
        };
        Self::guarded(&open, answers, stand_ins).await
    }

    /// The same under the agent's own permissions and with its own asker.
    pub(super) async fn guarded(
        config: &HarnessConfig,
        answers: Vec<Answer>,
        stand_ins: StandIns,
    ) -> Result<Self, HarnessError> {
        let (config, seen) = rehearsing(config, answers, &stand_ins)?;
        let store = Arc::new(MemoryStore::new());
        let config = HarnessConfig { store: store.clone(), ..config };
        say(config).await?;
        Ok(Self { seen, stand_ins, store })
    }

    /// What was stored.
    pub(super) async fn history(&self) -> Result<History, HarnessError> {
        let id = id()?;
        let entries = self.store.load(&id).await?.map(|record| record.entries).unwrap_or_default();
        let loaded = History::load(&entries);
        Ok(loaded.map_err(|cause| HarnessError::Unreadable { session: id, cause })?.0)
    }

    /// The stored calls with their results, in order.
    pub(super) async fn results(&self) -> Result<Vec<(String, ToolResult)>, HarnessError> {
        let history = self.history().await?;
        let steps = history.entries().iter().filter_map(Entry::as_step);
        let pairs = steps.flat_map(|step| step.pairs());
        Ok(pairs.map(|(call, result)| (call.name.clone(), result.clone())).collect())
    }
}

/// The agent with a model that answers from a list, stand-ins for tools, a clock that stands still and no end but its own.
pub(super) fn rehearsing(
    config: &HarnessConfig,
    answers: Vec<Answer>,
    stand_ins: &StandIns,
) -> Result<(HarnessConfig, Seen), HarnessError> {
    let (spy, seen) = Spy::new(config.model.clone(), answers);
    let rehearsing = HarnessConfig {
        stop: Arc::new(step_count(STEPS)),
        // Its answers are few, and none of them is what a task asks for.
        mode: Mode::Conversation,
        retry: RetryPolicy::never(),
        clock: Arc::new(Stopped(config.clock.now_ms())),
        ..quiet(config.clone(), &spy, stand_ins)?
    };
    Ok((rehearsing, seen))
}

/// Gives the agent one message and waits for the end of the turn.
pub(super) async fn say(config: HarnessConfig) -> Result<TurnEnd, HarnessError> {
    Harness::new(config).session(id()?).send(MESSAGE).await?.finish().await
}

/// The session of a rehearsal.
pub(super) fn id() -> Result<SessionId, IdError> {
    SessionId::new("rehearsal")
}

/// An answer of words.
pub(super) fn words(text: &str) -> Answer {
    Answer::Say(AssistantPart::text(text).into_iter().collect())
}

/// An answer that calls tools with empty inputs.
pub(super) fn calls<'t>(tools: impl IntoIterator<Item = &'t str>) -> Answer {
    Answer::Say(
        tools.into_iter().enumerate().map(|(at, tool)| AssistantPart::ToolCall(call(at, tool))).collect(),
    )
}

/// A call with an empty input.
pub(super) fn call(at: usize, tool: &str) -> ToolCall {
    let input = ToolInput::Json(RawJson::empty_object());
    ToolCall { id: CallId::positional(at), name: tool.to_owned(), input, data: None }
}

impl Clock for Stopped {
    fn now_ms(&self) -> i64 {
        self.0
    }
}
