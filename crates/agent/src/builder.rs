//! Puts the parts of an agent together.

mod subagents;

use std::sync::Arc;

use agent_cache::Lifetimes;
use agent_core::{LanguageModel, RequestSettings, SessionId, TokenCounter};
use agent_harness::{
    AskPolicy, Asker, Checkup, Children, Clock, ContextSource, Harness, HarnessConfig, PostCompact,
    PrepareCall, PromptSource, RetryPolicy, RuleSink, Session,
};
use agent_prepare::Pipeline;
use agent_prompt::{Enters, Fragment, FragmentError, InSystem, Layer, Prompt, Static};
use agent_store::{MemoryStore, Store};
use agent_tools::{Classifier, Permissions, ToolHook, ToolSet};
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
    classifier: Option<Arc<dyn Classifier>>,
    asker: Option<Arc<dyn Asker>>,
    tool_hooks: Vec<Arc<dyn ToolHook>>,
    rule_sink: Option<Arc<dyn RuleSink>>,
    retry: Option<RetryPolicy>,
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
    #[cfg(feature = "builtins")]
    searches_web: bool,
}

impl Parts {
    /// The tools, with the search of the model's provider behind them where it is wanted and there is one.
    #[cfg(feature = "builtins")]
    fn tools(&mut self, model: &dyn LanguageModel) -> ToolSet {
        let tools = subagents::with_tool(self.tools.take().unwrap_or_default(), self.children.as_ref());
        let search = agent_builtins::web_search(&model.profile().provider).filter(|_| self.searches_web);
        let Some(search) = search.filter(|search| tools.get(search.card().name()).is_none()) else {
            return tools;
        };
        // No name is there twice, so this fails for no set.
        ToolSet::builder().extend(tools.iter().cloned()).with(search).freeze().unwrap_or(tools)
    }

    #[cfg(not(feature = "builtins"))]
    fn tools(&mut self, _: &dyn LanguageModel) -> ToolSet {
        self.tools.take().unwrap_or_default()
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

    /// Lets the model's provider search the web, where it offers that: its own search stands behind the other tools, unless
    /// one of them is called `web_search` already (feature `builtins`).
    ///
    /// Where the provider has no search there is none, and nothing else is another one: whether it is there can be seen in the
    /// agent's tools.
    ///
    /// ```
    /// # use agent_testkit::{Reply, ScriptedModel};
    /// # let model = ScriptedModel::new(vec![Reply::text("Hello!")]);
    /// let agent = agent::Agent::builder().model(model).web_search().build()?;
    /// let tools = &agent.harness().config().tools;
    /// assert!(tools.get("web_search").is_none(), "a scripted model has no provider that searches");
    /// # Ok::<(), agent::BuildError>(())
    /// ```
    #[cfg(feature = "builtins")]
    pub fn web_search(mut self) -> Self {
        self.parts.searches_web = true;
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

    /// What each step is made of, and compaction; the standard cascade and no stage when not given.
    ///
    /// ```
    /// use agent::Agent;
    /// use agent::prepare::{Cascade, Overrides, Pipeline, Stage, StageCx, Verdict};
    /// # use agent_testkit::{Reply, ScriptedModel};
    /// # let model = ScriptedModel::new(vec![Reply::text("Hello!")]);
    ///
    /// #[derive(Debug)]
    /// struct Brief;
    ///
    /// impl Stage for Brief {
    ///     fn name(&self) -> &'static str {
    ///         "brief"
    ///     }
    ///
    ///     fn run(&self, _cx: &StageCx<'_>) -> Verdict {
    ///         Verdict::Pass(Overrides::default().remind("Be brief."))
    ///     }
    /// }
    ///
    /// let pipeline = Pipeline::new(Cascade::standard().threshold_percent(80)).then(Brief);
    /// let agent = Agent::builder().model(model).prepare(pipeline).build()?;
    /// # Ok::<(), agent::BuildError>(())
    /// ```
    pub fn prepare(mut self, pipeline: Pipeline) -> Self {
        self.parts.pipeline = Some(pipeline);
        self
    }

    /// What puts each turn together, once: another model, other tools, another end, prompt or pipeline.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use agent::{Agent, CallChanges, CallCx, PrepareCall, SessionId, SourceError};
    /// # use agent_testkit::{Reply, ScriptedModel};
    ///
    /// /// Long conversations go to another model.
    /// #[derive(Debug)]
    /// struct Larger(ScriptedModel);
    ///
    /// #[async_trait::async_trait]
    /// impl PrepareCall for Larger {
    ///     async fn prepare_call(&self, cx: &CallCx<'_>) -> Result<CallChanges, SourceError> {
    ///         if cx.history.entries().len() < 2 {
    ///             return Ok(CallChanges::default());
    ///         }
    ///         Ok(CallChanges { model: Some(Arc::new(self.0.clone())), ..CallChanges::default() })
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let (small, large) = (ScriptedModel::new(vec![Reply::text("S")]), ScriptedModel::new(vec![Reply::text("L")]));
    /// let session = Agent::builder().model(small).prepare_call(Larger(large)).build()?.session(SessionId::new("s")?);
    /// assert_eq!(session.send("Hi").await?.finish().await?.text, "S");
    /// assert_eq!(session.send("And now?").await?.finish().await?.text, "L");
    /// # Ok(())
    /// # }
    /// ```
    pub fn prepare_call(mut self, hook: impl PrepareCall + 'static) -> Self {
        self.parts.prepare_call = Some(Arc::new(hook));
        self
    }

    /// What is looked up before the stages of each step, in order; a [`agent_prepare::Context`] gives its own values.
    ///
    /// ```
    /// use agent::Agent;
    /// use agent::prepare::{Context, Overrides, Pipeline, Stage, StageCx, Verdict};
    /// # use agent_testkit::{Reply, ScriptedModel};
    /// # let model = ScriptedModel::new(vec![Reply::text("Hello!")]);
    ///
    /// #[derive(Debug)]
    /// struct Tenant(&'static str);
    ///
    /// #[derive(Debug)]
    /// struct NameTenant;
    ///
    /// impl Stage for NameTenant {
    ///     fn name(&self) -> &'static str {
    ///         "tenant"
    ///     }
    ///
    ///     fn run(&self, cx: &StageCx<'_>) -> Verdict {
    ///         let tenant = cx.context.get::<Tenant>().map_or("unknown", |tenant| tenant.0);
    ///         Verdict::Pass(Overrides::default().remind(format!("The tenant is {tenant}.")))
    ///     }
    /// }
    ///
    /// let agent = Agent::builder()
    ///     .model(model)
    ///     .context_source(Context::default().with(Tenant("harbour")))
    ///     .prepare(Pipeline::standard().then(NameTenant))
    ///     .build()?;
    /// # Ok::<(), agent::BuildError>(())
    /// ```
    pub fn context_source(mut self, source: impl ContextSource + 'static) -> Self {
        self.parts.contexts.push(Arc::new(source));
        self
    }

    /// The model that stages and tiers ask for words apart from the conversation, for example a cheaper one for
    /// summaries; the agent's own when not given.
    ///
    /// ```
    /// # use agent_testkit::{Reply, ScriptedModel};
    /// # let model = ScriptedModel::new(vec![Reply::text("Hello!")]);
    /// # let cheap = ScriptedModel::new(vec![Reply::text("They greeted each other.")]);
    /// let agent = agent::Agent::builder().model(model).summary_model(cheap).build()?;
    /// # Ok::<(), agent::BuildError>(())
    /// ```
    pub fn summary_model(mut self, model: impl LanguageModel + 'static) -> Self {
        self.parts.summary_model = Some(Arc::new(model));
        self
    }

    /// For how long and how often that model is asked; [`AskPolicy::default`] when not given.
    ///
    /// ```
    /// use std::time::Duration;
    /// use agent::{Agent, AskPolicy};
    /// # use agent_testkit::{Reply, ScriptedModel};
    /// # let model = ScriptedModel::new(vec![Reply::text("Hello!")]);
    ///
    /// let patient = AskPolicy { deadline: Duration::from_secs(180), ..AskPolicy::default() };
    /// let agent = Agent::builder().model(model).ask_policy(patient).build()?;
    /// # Ok::<(), agent::BuildError>(())
    /// ```
    pub fn ask_policy(mut self, policy: AskPolicy) -> Self {
        self.parts.ask = Some(policy);
        self
    }

    /// What counts tokens where the provider has not counted them; four bytes are one when not given.
    ///
    /// ```
    /// use agent::Agent;
    /// use agent::prepare::BytesPerToken;
    /// # use agent_testkit::{Reply, ScriptedModel};
    /// # let model = ScriptedModel::new(vec![Reply::text("Hello!")]);
    ///
    /// let agent = Agent::builder().model(model).token_counter(BytesPerToken(3)).build()?;
    /// # Ok::<(), agent::BuildError>(())
    /// ```
    pub fn token_counter(mut self, counter: impl TokenCounter + 'static) -> Self {
        self.parts.counter = Some(Arc::new(counter));
        self
    }

    /// Who is told of each compaction, once it is stored.
    ///
    /// ```
    /// use agent::{Agent, PostCompact, PostCompactCx, SourceError};
    /// # use agent_testkit::{Reply, ScriptedModel};
    /// # let model = ScriptedModel::new(vec![Reply::text("Hello!")]);
    ///
    /// #[derive(Debug)]
    /// struct Log;
    ///
    /// #[async_trait::async_trait]
    /// impl PostCompact for Log {
    ///     async fn compacted(&self, cx: &PostCompactCx<'_>) -> Result<(), SourceError> {
    ///         println!("{}: {} -> {} tokens", cx.tier, cx.before, cx.after);
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let agent = Agent::builder().model(model).after_compaction(Log).build()?;
    /// # Ok::<(), agent::BuildError>(())
    /// ```
    pub fn after_compaction(mut self, hook: impl PostCompact + 'static) -> Self {
        self.parts.after_compaction.push(Arc::new(hook));
        self
    }

    /// Which calls may run.
    pub fn permissions(mut self, permissions: Permissions) -> Self {
        self.parts.permissions = Some(permissions);
        self
    }

    /// Who looks at calls before a person is asked: only where the mode or the tool itself would ask, never over a rule.
    ///
    /// ```
    /// use agent::{Agent, Classified, Classifier, ClassifierError, Matter};
    /// use agent::prepare::RawJson;
    /// # use agent_testkit::{Reply, ScriptedModel};
    /// # let model = ScriptedModel::new(vec![Reply::text("Hello!")]);
    ///
    /// #[derive(Debug)]
    /// struct Drafts;
    ///
    /// #[async_trait::async_trait]
    /// impl Classifier for Drafts {
    ///     fn name(&self) -> &str { "drafts" }
    ///
    ///     async fn classify(&self, matter: &Matter<'_>, input: &RawJson) -> Result<Classified, ClassifierError> {
    ///         let is_draft = matter.tool == "write_file" && input.get().contains("drafts/");
    ///         Ok(if is_draft { Classified::Allow } else { Classified::Ask })
    ///     }
    /// }
    ///
    /// let agent = Agent::builder().model(model).classifier(Drafts).build()?;
    /// # Ok::<(), agent::BuildError>(())
    /// ```
    pub fn classifier(mut self, classifier: impl Classifier + 'static) -> Self {
        self.parts.classifier = Some(Arc::new(classifier));
        self
    }

    /// Who is asked when a call needs permission; nobody when not given.
    pub fn asker(mut self, asker: impl Asker + 'static) -> Self {
        self.parts.asker = Some(Arc::new(asker));
        self
    }

    /// Appends a hook to those that stand before and behind every tool call, in the order in which they are given.
    ///
    /// ```
    /// use agent::{Agent, Before, Pattern, before_tool};
    /// # use agent_testkit::{Reply, ScriptedModel};
    /// # let model = ScriptedModel::new(vec![Reply::text("Hello!")]);
    ///
    /// let no_deploys = before_tool("no-deploys", Pattern::tool("bash"), |_, input| {
    ///     if input.get().contains("deploy") {
    ///         return Before::block("Nothing is deployed on Fridays. Tell the user.");
    ///     }
    ///     Before::default()
    /// });
    /// let agent = Agent::builder().model(model).tool_hook(no_deploys).build()?;
    /// # Ok::<(), agent::BuildError>(())
    /// ```
    pub fn tool_hook(mut self, hook: impl ToolHook + 'static) -> Self {
        self.parts.tool_hooks.push(Arc::new(hook));
        self
    }

    /// Where rules go that a person wants to be remembered beyond a session; without it they hold for the session.
    pub fn rule_sink(mut self, sink: impl RuleSink + 'static) -> Self {
        self.parts.rule_sink = Some(Arc::new(sink));
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
        let Self { model: WithModel(model), store, system, mut parts } = self;
        let store = store.unwrap_or_else(|| Arc::new(MemoryStore::new()));
        let System { prompt, refused, .. } = system;
        if let Some(refused) = refused {
            return Err(refused.into());
        }
        let tools = parts.tools(&*model);
        let defaults = HarnessConfig::new(model, store);
        Ok(Agent(Harness::new(HarnessConfig {
            prompt,
            sources: parts.sources,
            tells_date: parts.tells_date,
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
            retry: parts.retry.unwrap_or_default(),
            clock: parts.clock.unwrap_or_else(|| defaults.clock.clone()),
            ..defaults
        })))
    }
}

/// One that is given by itself stands before one among the permissions.
fn with_classifier(permissions: Permissions, classifier: Option<Arc<dyn Classifier>>) -> Permissions {
    Permissions { classifier: classifier.or(permissions.classifier), ..permissions }
}
