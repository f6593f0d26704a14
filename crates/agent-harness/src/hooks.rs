//! Where a program takes part in a turn: before the call, before each step, and after a compaction.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use agent_core::{
    Cancel, HistoryView, LanguageModel, ModelProfile, SessionId, StepNo, SystemBlock, ToolCard, TurnId,
};
use agent_prepare::{Context, Pipeline};
use agent_tools::ToolSet;
use agent_turn::StopCondition;
use async_trait::async_trait;

use crate::SourceError;

/// Looks something up before the stages of a step run (requirement P2). This is the place for slow things: stages are
/// synchronous, and read what was found as [`agent_prepare::StageCx::context`].
///
/// A [`Context`] is itself a source that always gives its own values.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a source of context",
    note = "implement `ContextSource`, or give a `Context` with values that stay the same"
)]
pub trait ContextSource: Debug + Send + Sync {
    /// What it found; it is laid over what sources before it found.
    ///
    /// # Errors
    /// When the step cannot be prepared without it: the turn fails with what the error says.
    async fn look_up(&self, cx: &ContextCx<'_>) -> Result<Context, SourceError>;
}

/// What a source of context sees. All of it is lent.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "written as a literal by tests of sources")]
pub struct ContextCx<'a> {
    /// The session.
    pub session: &'a SessionId,
    /// The step's number in its turn, from 0.
    pub step: StepNo,
    /// The conversation.
    pub history: HistoryView<'a>,
    /// Whether the run was stopped. A source that goes on is dropped.
    pub cancel: &'a Cancel,
}

/// Puts a turn together, once: before its first step, and again when another process takes the turn up
/// (requirement P18).
///
/// What it changes holds for the turn and is not stored, so it has to say the same when it is asked again. A compaction by
/// hand ([`crate::Session::compact`]) is no part of a turn and goes by the agent's own parts.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not prepare calls",
    note = "implement `PrepareCall`; what changes from step to step is a `Stage` of the pipeline"
)]
pub trait PrepareCall: Debug + Send + Sync {
    /// What is another one in this turn.
    ///
    /// # Errors
    /// When the turn cannot go on without it.
    async fn prepare_call(&self, cx: &CallCx<'_>) -> Result<CallChanges, SourceError>;
}

/// What the preparation of a turn sees. All of it is lent.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "written as a literal by tests of it")]
pub struct CallCx<'a> {
    /// The session.
    pub session: &'a SessionId,
    /// The turn.
    pub turn: TurnId,
    /// Its next step; more than 0 when the turn was taken up.
    pub step: StepNo,
    /// The agent's model.
    pub model: &'a ModelProfile,
    /// The session's tools.
    pub tools: &'a [ToolCard],
    /// The session's system prompt.
    pub system: &'a [SystemBlock],
    /// The conversation, with what the user just said.
    pub history: HistoryView<'a>,
    /// Whether the run was stopped.
    pub cancel: &'a Cancel,
}

/// What is another one in a turn; an absent field is unchanged. Another model, system prompt or tools make the provider
/// read everything anew, which is declared with a `request.diagnostic`.
#[derive(Debug, Clone, Default)]
#[expect(clippy::exhaustive_structs, reason = "a partial record, written as a literal with ..Default")]
pub struct CallChanges {
    /// Another model.
    pub model: Option<Arc<dyn LanguageModel>>,
    /// Other tools.
    pub tools: Option<ToolSet>,
    /// Another end.
    pub stop: Option<Arc<dyn StopCondition>>,
    /// Another system prompt.
    pub system: Option<Vec<SystemBlock>>,
    /// Another pipeline.
    pub pipeline: Option<Pipeline>,
}

/// Is told of each compaction once it is stored (requirement P15).
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a hook that runs after a compaction",
    note = "implement `PostCompact`"
)]
pub trait PostCompact: Debug + Send + Sync {
    /// The history has a new boundary.
    ///
    /// # Errors
    /// Told with a `request.diagnostic`, each time; the turn goes on.
    async fn compacted(&self, cx: &PostCompactCx<'_>) -> Result<(), SourceError>;

    /// How long it may take, for the turn waits for it; then it is dropped, which is told like an error. By default 10 s.
    fn deadline(&self) -> Duration {
        Duration::from_secs(10)
    }
}

/// What was compacted. All of it is lent.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "written as a literal by tests of hooks")]
pub struct PostCompactCx<'a> {
    /// The session.
    pub session: &'a SessionId,
    /// The tier.
    pub tier: &'a str,
    /// Tokens before.
    pub before: u64,
    /// Tokens after, estimated.
    pub after: u64,
    /// The conversation, with the boundary.
    pub history: HistoryView<'a>,
    /// Whether the run was stopped. A hook that goes on is dropped.
    pub cancel: &'a Cancel,
}

/// How long and how often a model is asked for words that a stage or a tier needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a config struct: a literal with ..Default")]
pub struct AskPolicy {
    /// For how long in all, retries and their waits included; by default 60 s.
    pub deadline: Duration,
    /// Most requests, the first one included; 0 counts as 1. By default 2. They are no retries of the run's budget.
    pub attempts: u32,
}

impl Default for AskPolicy {
    fn default() -> Self {
        Self { deadline: Duration::from_secs(60), attempts: 2 }
    }
}

#[async_trait]
impl ContextSource for Context {
    async fn look_up(&self, _cx: &ContextCx<'_>) -> Result<Context, SourceError> {
        Ok(self.clone())
    }
}
