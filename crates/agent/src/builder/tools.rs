//! What an agent may do, and who is asked.

use std::sync::Arc;

use agent_harness::{Asker, RuleSink};
use agent_tools::{Classifier, Permissions, ToolHook, ToolSet};

use super::AgentBuilder;

impl<M> AgentBuilder<M> {
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
}
