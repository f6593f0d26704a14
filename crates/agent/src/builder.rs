//! Puts the parts of an agent together.

use std::sync::Arc;

use agent_cache::Lifetimes;
use agent_core::{LanguageModel, RequestSettings, SessionId};
use agent_harness::{Asker, Checkup, Clock, Harness, HarnessConfig, PromptSource, RetryPolicy, Session};
use agent_prompt::{Enters, Fragment, FragmentError, InSystem, Layer, Prompt, Static};
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
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A block of the system prompt cannot be sent.
    #[error(transparent)]
    Prompt(#[from] FragmentError),
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
    asker: Option<Arc<dyn Asker>>,
    retry: Option<RetryPolicy>,
    clock: Option<Arc<dyn Clock>>,
    sources: Vec<Arc<dyn PromptSource>>,
    tells_date: bool,
    lifetimes: Option<Lifetimes>,
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

    /// Appends a block to the system prompt that is the same in every session: a literal, or a text that is declared to
    /// be with [`agent_prompt::Value::declared`]. What is fixed when a session begins is a [`Self::fragment`].
    ///
    /// A date, a git state or a user's name does not compile here, because each change of it would make the provider
    /// read the whole prompt anew:
    ///
    /// ```compile_fail
    /// let agent = agent::Agent::builder().system(format!("The user is {}.", "Ada"));
    /// ```
    pub fn system(mut self, text: impl Enters<Static>) -> Self {
        self.system.blocks += 1;
        let number = self.system.blocks;
        let key = if number == 1 { "system".to_owned() } else { format!("system {number}") };
        match Fragment::<Static>::new(Layer::Session, &key, text) {
            Ok(fragment) => {
                self.system.prompt.add(fragment.with_rank(number));
            }
            Err(error) => {
                self.system.refused.get_or_insert(error);
            }
        }
        self
    }

    /// Adds a fragment to the system prompt, with its key, layer, source and stability.
    ///
    /// ```
    /// use agent::prompt::{Fragment, Layer, Session, Source, Value};
    /// # use agent_testkit::{Reply, ScriptedModel};
    /// # let model = ScriptedModel::new(vec![Reply::text("Hello!")]);
    ///
    /// let policy = Fragment::<Session>::new(Layer::Managed, "policy", Value::session("Never push to main."))?;
    /// let agent = agent::Agent::builder()
    ///     .system("You fix bugs.")
    ///     .fragment(policy.with_source(Source::Config("policy.toml".into())))
    ///     .model(model)
    ///     .build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fragment<S: InSystem>(mut self, fragment: Fragment<S>) -> Self {
        self.system.prompt.add(fragment);
        self
    }

    /// What else enters the prompt of a session that begins, for example rule files.
    pub fn source(mut self, source: impl PromptSource + 'static) -> Self {
        self.parts.sources.push(Arc::new(source));
        self
    }

    /// Tells the model the day: in the user's first message, and with a note when it changed. Not told when not asked.
    pub fn tell_date(mut self) -> Self {
        self.parts.tells_date = true;
        self
    }

    /// How long what is marked lives in the provider's cache; five minutes when not given.
    pub fn lifetimes(mut self, lifetimes: Lifetimes) -> Self {
        self.parts.lifetimes = Some(lifetimes);
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
        let System { prompt, refused, .. } = system;
        if let Some(refused) = refused {
            return Err(refused.into());
        }
        let defaults = HarnessConfig::new(model, store);
        Ok(Agent(Harness::new(HarnessConfig {
            prompt,
            sources: parts.sources,
            tells_date: parts.tells_date,
            lifetimes: parts.lifetimes.unwrap_or(defaults.lifetimes),
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
