//! Agents that give tasks to sub-agents.

use agent_harness::Children;
#[cfg(feature = "builtins")]
use agent_tools::{ToolSet, ToolSetError};

use super::AgentBuilder;

impl<M> AgentBuilder<M> {
    /// Lets the agent give tasks to sub-agents (requirement L10): each works in a session of its own in the same store, below
    /// this agent's permissions and budget, and only its last words come back. With the feature `builtins` the tool `agent`
    /// is added where no tool has that name; without it give one yourself that waits for an action of kind `agent`.
    ///
    /// ```
    /// use agent::{Agent, ChildKind, Children};
    /// # use agent_testkit::{Reply, ScriptedModel};
    /// # let model = ScriptedModel::new(vec![Reply::text("Hello!")]);
    /// let reader = ChildKind {
    ///     name: "reader".into(),
    ///     description: "Only looks.".into(),
    ///     ..ChildKind::default()
    /// };
    /// let agent = Agent::builder()
    ///     .model(model)
    ///     .subagents(Children { kinds: vec![reader], ..Children::default() })
    ///     .build()?;
    /// # Ok::<(), agent::BuildError>(())
    /// ```
    pub fn subagents(mut self, children: Children) -> Self {
        self.parts.children = Some(children);
        self
    }
}

/// The tools with the tool `agent` behind them, where there are sub-agents.
#[cfg(feature = "builtins")]
pub(super) fn with_tool(tools: ToolSet, children: Option<&Children>) -> Result<ToolSet, ToolSetError> {
    let Some(children) = children.filter(|_| tools.get(agent_core::AGENT_ACTION).is_none()) else {
        return Ok(tools);
    };
    let kinds: Vec<_> = children
        .kinds
        .iter()
        .map(|kind| agent_builtins::AgentKind {
            name: kind.name.clone(),
            description: kind.description.clone(),
        })
        .collect();
    ToolSet::builder().extend(tools.iter().cloned()).with(agent_builtins::agent(&kinds)).freeze()
}
