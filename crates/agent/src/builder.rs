//! Puts the parts of an agent together.

use std::sync::Arc;

use agent_core::{LanguageModel, RequestSettings, SessionId, SystemBlock};
use agent_harness::{Asker, Clock, Harness, HarnessConfig, RetryPolicy, Session};
use agent_store::{MemoryStore, Store};
use agent_tools::{Permissions, ToolSet};
use agent_turn::StopCondition;

/// An agent ready to hold sessions. Cloning shares it.
#[derive(Debug, Clone)]
pub struct Agent(Harness);

/// Collects the parts. `build` exists once a model was given:
///
/// ```
/// # use agent_testkit::{Reply, ScriptedModel};
/// let model = ScriptedModel::new(vec![Reply::text("Hello!")]);
/// let agent = agent::Agent::builder().system("Be brief.").model(model).build()?;
/// # Ok::<(), agent::BuildError>(())
/// ```
///
/// and the same without its model does not compile:
///
/// ```compile_fail
/// let agent = agent::Agent::builder().system("Be brief.").build()?;
/// # Ok::<(), agent::BuildError>(())
/// ```
#[derive(Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct AgentBuilder<M> {
    model: M,
    store: Option<Arc<dyn Store>>,
    system: Vec<String>,
    parts: Parts,
}

/// A builder that has no model yet.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct NeedsModel;

/// A builder that has its model.
#[derive(Debug)]
pub struct WithModel(Arc<dyn LanguageModel>);

/// An agent that cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A block of the system prompt is blank.
    #[error("system block {0} is blank; providers refuse blank text: give it words or leave it out")]
    BlankSystem(usize),
}

#[derive(Debug, Default)]
struct Parts {
    tools: Option<ToolSet>,
    settings: Option<RequestSettings>,
    stop: Option<Arc<dyn StopCondition>>,
    permissions: Option<Permissions>,
    asker: Option<Arc<dyn Asker>>,
    retry: Option<RetryPolicy>,
    clock: Option<Arc<dyn Clock>>,
}

impl Agent {
    /// A builder.
    pub fn builder() -> AgentBuilder<NeedsModel> {
        AgentBuilder { model: NeedsModel, store: None, system: Vec::new(), parts: Parts::default() }
    }

    /// A session by name; the first message opens or creates it.
    pub fn session(&self, id: SessionId) -> Session {
        self.0.session(id)
    }

    /// The driver underneath.
    pub fn harness(&self) -> &Harness {
        &self.0
    }
}

impl AgentBuilder<NeedsModel> {
    /// The model; an `Arc` of one is shared with other agents.
    pub fn model(self, model: impl LanguageModel + 'static) -> AgentBuilder<WithModel> {
        let Self { model: NeedsModel, store, system, parts } = self;
        AgentBuilder { model: WithModel(Arc::new(model)), store, system, parts }
    }
}

impl<M> AgentBuilder<M> {
    /// Where sessions live; in memory when none is given.
    pub fn store(mut self, store: impl Store + 'static) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// Appends a block to the system prompt. It must not hold what changes: no date, no git state, no user's name.
    pub fn system(mut self, text: impl Into<String>) -> Self {
        self.system.push(text.into());
        self
    }

    /// The tools; none when not given.
    pub fn tools(mut self, tools: ToolSet) -> Self {
        self.parts.tools = Some(tools);
        self
    }

    /// Output limit, sampling, thinking.
    pub fn settings(mut self, settings: RequestSettings) -> Self {
        self.parts.settings = Some(settings);
        self
    }

    /// When a turn ends although the model would go on; 40 steps or the tool `complete` when not given.
    ///
    /// It replaces both. To keep them beside your own: `step_count(DEFAULT_STEPS).or(tool_called(COMPLETE_TOOL)).or(mine)`.
    pub fn stop(mut self, stop: impl StopCondition + 'static) -> Self {
        self.parts.stop = Some(Arc::new(stop));
        self
    }

    /// Which calls may run.
    pub fn permissions(mut self, permissions: Permissions) -> Self {
        self.parts.permissions = Some(permissions);
        self
    }

    /// Who is asked when a call needs permission; nobody when not given.
    pub fn asker(mut self, asker: impl Asker + 'static) -> Self {
        self.parts.asker = Some(Arc::new(asker));
        self
    }

    /// When a failed model call is tried again; [`RetryPolicy::default`] when not given.
    ///
    /// ```
    /// use std::time::Duration;
    /// use agent::{Agent, RetryPolicy};
    /// # use agent_testkit::{Reply, ScriptedModel};
    /// # let model = ScriptedModel::new(vec![Reply::text("Hello!")]);
    ///
    /// let agent = Agent::builder()
    ///     .model(model)
    ///     .retry(RetryPolicy {
    ///         max_attempts: 8,
    ///         max_retry_after: Duration::from_secs(600),
    ///         ..RetryPolicy::default()
    ///     })
    ///     .build()?;
    /// # Ok::<(), agent::BuildError>(())
    /// ```
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.parts.retry = Some(retry);
        self
    }

    /// The clock; the machine's when not given.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.parts.clock = Some(Arc::new(clock));
        self
    }
}

impl AgentBuilder<WithModel> {
    /// The agent.
    pub fn build(self) -> Result<Agent, BuildError> {
        let Self { model: WithModel(model), store, system, parts } = self;
        let store = store.unwrap_or_else(|| Arc::new(MemoryStore::new()));
        let blocks = system
            .into_iter()
            .enumerate()
            .map(|(n, text)| SystemBlock::new(text).ok_or(BuildError::BlankSystem(n)));
        let system = blocks.collect::<Result<Vec<_>, _>>()?;
        let defaults = HarnessConfig::new(model, store);
        Ok(Agent(Harness::new(HarnessConfig {
            system,
            tools: parts.tools.unwrap_or_default(),
            settings: parts.settings.unwrap_or_default(),
            stop: parts.stop.unwrap_or_else(|| defaults.stop.clone()),
            permissions: parts.permissions.unwrap_or_default(),
            asker: parts.asker.unwrap_or_else(|| defaults.asker.clone()),
            retry: parts.retry.unwrap_or_default(),
            clock: parts.clock.unwrap_or_else(|| defaults.clock.clone()),
            ..defaults
        })))
    }
}
