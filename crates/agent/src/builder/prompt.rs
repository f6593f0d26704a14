//! What an agent is told before anything is said.

use std::sync::Arc;

use agent_cache::Lifetimes;
use agent_harness::PromptSource;
use agent_prompt::{Enters, Fragment, InSystem, Layer, Static};

use super::AgentBuilder;

impl<M> AgentBuilder<M> {
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
}
