//! Puts the parts of an agent together.

#[cfg(feature = "builtins")]
mod memory;
mod notes;
mod prepare;
mod prompt;
mod subagents;
mod task;
mod tools;
mod turn;

#[cfg(feature = "builtins")]
pub use memory::MemoryConfig;

use std::sync::Arc;
use std::time::Duration;

use agent_cache::Lifetimes;
use agent_core::{CardError, Heard, LanguageModel, RequestSettings, SessionId, TokenCounter};
use agent_harness::{
    AfterStep, AfterTurn, AskPolicy, Asker, Checkup, Children, ChildrenError, Clock, ContextSource, Drained,
    Harness, HarnessConfig, NotesSource, PostCompact, PrepareCall, Process, PromptSource, RetryPolicy,
    RuleSink, Session,
};
use agent_prepare::Pipeline;
use agent_prompt::{FragmentError, Prompt};
use agent_store::{MemoryStore, Store};
use agent_tools::{Classifier, Permissions, ToolHook, ToolSet, ToolSetError};
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
    system: System,
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
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A block of the system prompt cannot be sent.
    #[error(transparent)]
    Prompt(#[from] FragmentError),
    /// The type of the final output is no input of a tool.
    #[error("the final output cannot be called for: {0}")]
    Output(#[from] CardError),
    /// The kinds of sub-agents cannot be told apart.
    #[error(transparent)]
    Children(#[from] ChildrenError),
    /// The tools and the tool `agent` are no set.
    #[error(transparent)]
    Tools(#[from] ToolSetError),
    /// Session notes are to be kept, and there is no tool to write them with.
    #[error(
        "session notes are written with a tool that the agent does not have; give it the tool `memory`, with notes in the same data directory"
    )]
    NoMemoryTool,
}

/// The system prompt so far.
#[derive(Debug, Default)]
struct System {
    prompt: Prompt,
    /// How many blocks were given without a name.
    blocks: i32,
    /// The first block that cannot be sent.
    refused: Option<FragmentError>,
}

#[derive(Debug, Default)]
struct Parts {
    tools: Option<ToolSet>,
    settings: Option<RequestSettings>,
    stop: Option<Arc<dyn StopCondition>>,
    permissions: Option<Permissions>,
    classifier: Option<Arc<dyn Classifier>>,
    asker: Option<Arc<dyn Asker>>,
    tool_hooks: Vec<Arc<dyn ToolHook>>,
    rule_sink: Option<Arc<dyn RuleSink>>,
    after_turn: Vec<Arc<dyn AfterTurn>>,
    after_step: Vec<Arc<dyn AfterStep>>,
    notes: Option<Arc<dyn NotesSource>>,
    writes_notes: bool,
    process: Process,
    while_waiting: Option<Heard>,
    request_lifetime: Option<Duration>,
    retry: Option<RetryPolicy>,
    max_recoveries: Option<u32>,
    clock: Option<Arc<dyn Clock>>,
    sources: Vec<Arc<dyn PromptSource>>,
    tells_date: bool,
    lifetimes: Option<Lifetimes>,
    pipeline: Option<Pipeline>,
    contexts: Vec<Arc<dyn ContextSource>>,
    prepare_call: Option<Arc<dyn PrepareCall>>,
    summary_model: Option<Arc<dyn LanguageModel>>,
    ask: Option<AskPolicy>,
    counter: Option<Arc<dyn TokenCounter>>,
    after_compaction: Vec<Arc<dyn PostCompact>>,
    children: Option<Children>,
    task: task::TaskParts,
    #[cfg(feature = "builtins")]
    searches_web: bool,
    #[cfg(feature = "builtins")]
    memory: Option<agent_memory::MemoryFiles>,
}

impl Parts {
    /// The tools, with the search of the model's provider behind them where it is wanted and there is one.
    #[cfg(feature = "builtins")]
    fn tools(&mut self, model: &dyn LanguageModel) -> Result<ToolSet, ToolSetError> {
        let tools = subagents::with_tool(self.tools.take().unwrap_or_default(), self.children.as_ref())?;
        let tools = memory::with_tool(tools, self.memory.take())?;
        let search = agent_builtins::web_search(&model.profile().provider).filter(|_| self.searches_web);
        let Some(search) = search.filter(|search| tools.get(search.card().name()).is_none()) else {
            return Ok(tools);
        };
        ToolSet::builder().extend(tools.iter().cloned()).with(search).freeze()
    }

    #[cfg(not(feature = "builtins"))]
    fn tools(&mut self, _: &dyn LanguageModel) -> Result<ToolSet, ToolSetError> {
        Ok(self.tools.take().unwrap_or_default())
    }
}

impl Agent {
    /// A builder.
    pub fn builder() -> AgentBuilder<NeedsModel> {
        AgentBuilder { model: NeedsModel, store: None, system: System::default(), parts: Parts::default() }
    }

    /// A session by name; the first message opens or creates it.
    pub fn session(&self, id: SessionId) -> Session {
        self.0.session(id)
    }

    /// Examines the agent as it would run: the ten points of a sound agent, each with what was looked at.
    ///
    /// ```
    /// # use agent_testkit::{Reply, ScriptedModel};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), agent::BuildError> {
    /// # let model = ScriptedModel::new(vec![Reply::text("Hello!")]);
    /// let agent = agent::Agent::builder().system("Be brief.").model(model).build()?;
    /// let checkup = agent.examine().await;
    /// assert!(!checkup.has_failed(), "{checkup}");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// No model is asked. Tools that only read are called once, with `{}` and a cancelled token; the store gets a session
    /// `agent-doctor-…`, which is deleted again.
    pub async fn examine(&self) -> Checkup {
        agent_harness::examine(self.0.config()).await
    }

    /// Waits for the work behind turns, for so long at most; call it before the program ends.
    pub async fn drain(&self, patience: Duration) -> Drained {
        self.0.drain(patience).await
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
}

impl AgentBuilder<WithModel> {
    /// The agent.
    pub fn build(self) -> Result<Agent, BuildError> {
        let Self { model: WithModel(model), store, system, mut parts } = self;
        let store = store.unwrap_or_else(|| Arc::new(MemoryStore::new()));
        let System { prompt, refused, .. } = system;
        if let Some(refused) = refused {
            return Err(refused.into());
        }
        parts.children.as_ref().map_or(Ok(()), Children::check)?;
        let tools = parts.tools(&*model)?;
        let tools = parts.task.with_output(tools)?;
        parts.check_notes(&tools)?;
        let defaults = HarnessConfig::new(model, store);
        Ok(Agent(Harness::new(HarnessConfig {
            prompt,
            sources: parts.sources,
            tells_date: parts.tells_date,
            mode: parts.task.mode(),
            lifetimes: parts.lifetimes.unwrap_or(defaults.lifetimes),
            pipeline: parts.pipeline.unwrap_or_default(),
            contexts: parts.contexts,
            prepare_call: parts.prepare_call,
            summary_model: parts.summary_model,
            ask: parts.ask.unwrap_or_default(),
            counter: parts.counter.unwrap_or_else(|| defaults.counter.clone()),
            after_compaction: parts.after_compaction,
            tools,
            settings: parts.settings.unwrap_or_default(),
            stop: parts.stop.unwrap_or_else(|| defaults.stop.clone()),
            permissions: with_classifier(parts.permissions.unwrap_or_default(), parts.classifier),
            asker: parts.asker.unwrap_or_else(|| defaults.asker.clone()),
            tool_hooks: parts.tool_hooks,
            children: parts.children,
            rule_sink: parts.rule_sink,
            after_turn: parts.after_turn,
            after_step: parts.after_step,
            notes: parts.notes,
            process: parts.process,
            while_waiting: parts.while_waiting.unwrap_or_default(),
            request_lifetime: parts.request_lifetime,
            retry: parts.retry.unwrap_or_default(),
            max_recoveries: parts.max_recoveries.unwrap_or(defaults.max_recoveries),
            clock: parts.clock.unwrap_or_else(|| defaults.clock.clone()),
            ..defaults
        })))
    }
}

/// One that is given by itself stands before one among the permissions.
fn with_classifier(permissions: Permissions, classifier: Option<Arc<dyn Classifier>>) -> Permissions {
    Permissions { classifier: classifier.or(permissions.classifier), ..permissions }
}
