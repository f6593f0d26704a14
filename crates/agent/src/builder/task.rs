//! A task rather than a conversation: what a turn gives in the end, and when words are not the end.

use std::sync::Arc;

use agent_core::CardError;
use agent_tools::{FINAL_OUTPUT_TOOL, FinalOutput, IntoTool, Tool, ToolSet, final_output};
use agent_turn::{ContinueHook, Mode, Task};

use super::AgentBuilder;

/// What the turns of an agent are asked for.
#[derive(Debug, Default)]
pub(super) struct TaskParts {
    task: Option<Task>,
    output: Option<Result<Arc<dyn Tool>, CardError>>,
}

impl<M> AgentBuilder<M> {
    /// Makes each turn a task: one that ends with words while todos are open ends as
    /// [`agent_core::TerminalReason::TodosIncomplete`]. [`Self::continue_hook`] and [`Self::final_output`] imply it.
    ///
    /// ```
    /// # use agent_testkit::{Reply, ScriptedModel};
    /// # let model = ScriptedModel::new(vec![Reply::text("Hello!")]);
    /// let agent = agent::Agent::builder().model(model).task().build()?;
    /// # Ok::<(), agent::BuildError>(())
    /// ```
    pub fn task(mut self) -> Self {
        self.parts.task.task();
        self
    }

    /// Looks at each answer of words alone, and may have the model go on with a note; three times a turn at most, or as
    /// [`Self::most_nudges`] says.
    ///
    /// ```
    /// use agent::{Agent, SessionId, continue_when};
    /// # use agent_testkit::{Reply, ScriptedModel};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new(vec![Reply::text("I would run the tests."), Reply::text("They pass.")]);
    /// let hook = continue_when(|step| {
    ///     (!step.text().contains("pass")).then(|| "Do not say what you would do: do it.".to_owned())
    /// });
    /// let agent = Agent::builder().model(model).continue_hook(hook).build()?;
    /// let end = agent.session(SessionId::new("s")?).send("Are the tests green?").await?.finish().await?;
    /// assert_eq!((end.text.as_str(), end.steps), ("They pass.", 2));
    /// # Ok(())
    /// # }
    /// ```
    pub fn continue_hook(mut self, hook: impl ContinueHook + 'static) -> Self {
        self.parts.task.task().continue_hook = Some(Arc::new(hook));
        self
    }

    /// How often the continue hook may have the model go on in one turn; 3 when not given.
    pub fn most_nudges(mut self, nudges: u32) -> Self {
        self.parts.task.task().most_nudges = nudges;
        self
    }

    /// The turn ends when the model called the tool `final_output` with a `T`, and [`agent_harness::TurnEnd::output`] has its
    /// JSON. A model that ends with words is asked for it, and forced where that is possible; when it never comes the turn
    /// ends as `stopped(no_final_output)`. A tool of this name among the agent's own takes its place.
    ///
    /// ```
    /// use agent::{Agent, SessionId};
    /// # use agent_testkit::{Reply, ScriptedModel};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Verdict {
    ///     /// Whether the change can be merged.
    ///     ready: bool,
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new(vec![Reply::tool("final_output", r#"{"ready":true}"#)]);
    /// let agent = Agent::builder().model(model).final_output::<Verdict>().build()?;
    /// let end = agent.session(SessionId::new("s")?).send("Review it.").await?.finish().await?;
    /// let verdict: Verdict = end.output.ok_or("no output")?.to()?;
    /// assert!(verdict.ready);
    /// # Ok(())
    /// # }
    /// ```
    pub fn final_output<T: FinalOutput>(mut self) -> Self {
        self.parts.task.task().output_tool = Some(FINAL_OUTPUT_TOOL.to_owned());
        self.parts.task.output = Some(final_output::<T>().into_tool());
        self
    }
}

impl TaskParts {
    fn task(&mut self) -> &mut Task {
        self.task.get_or_insert_default()
    }

    pub(super) fn mode(&self) -> Mode {
        self.task.clone().map_or(Mode::Conversation, Mode::Task)
    }

    /// The tools with the one for the final output behind them.
    pub(super) fn with_output(&mut self, tools: ToolSet) -> Result<ToolSet, CardError> {
        let Some(output) = self.output.take().filter(|_| tools.get(FINAL_OUTPUT_TOOL).is_none()) else {
            return Ok(tools);
        };
        // No name is there twice, so this fails for no set.
        Ok(ToolSet::builder().extend(tools.iter().cloned()).with(output?).freeze().unwrap_or(tools))
    }
}
