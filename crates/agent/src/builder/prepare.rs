//! How each step of an agent is prepared, and its context kept small.

use std::sync::Arc;

use agent_core::{LanguageModel, TokenCounter};
use agent_harness::{AskPolicy, ContextSource, PostCompact, PrepareCall};
use agent_prepare::Pipeline;

use super::AgentBuilder;

impl<M> AgentBuilder<M> {
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
}
