//! The tool that gives a task to a sub-agent.

use std::fmt::Write as _;
use std::sync::Arc;

use agent_core::{AGENT_ACTION, Action, AgentTask, RawJson, Wait};
use agent_tools::{Access, Call, Concurrency, Subject, Tool, ToolConfig, ToolError};

use crate::built;

/// A kind of sub-agent that a task can be given to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a record of two texts")]
pub struct AgentKind {
    /// Its name, in the words of the program.
    pub name: String,
    /// What it is good for, for the model.
    pub description: String,
}

/// Gives tasks to sub-agents of these kinds (requirements T8, L10): the call waits for the runtime to do it, which alone
/// runs agents. Not among [`crate::all`], because it needs a runtime that does.
pub fn agent(kinds: &[AgentKind]) -> Arc<dyn Tool> {
    let names: Arc<[String]> = kinds.iter().map(|kind| kind.name.clone()).collect();
    let ask = move |_: Call, input: Input| {
        let names = names.clone();
        async move { input.checked(&names) }
    };
    // What the child does is checked call by call; to be asked for again after a crash does no harm.
    let config = ToolConfig::new(AGENT_ACTION, description(kinds), Access::Session, ask).idempotent();
    let config = config.concurrency(Concurrency::Parallel);
    built(config.subject(|input| Subject::Text(input.kind.unwrap_or_default())))
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Input {
    /// What is to be done, complete in itself: the sub-agent sees nothing of this conversation. Say what to return.
    task: String,
    /// The kind of agent, when one of the kinds fits. Default: one like yourself.
    #[serde(default)]
    kind: Option<String>,
}

impl Input {
    fn checked(self, kinds: &[String]) -> Result<Wait, ToolError> {
        if self.task.trim().is_empty() {
            return Err(ToolError::failed(
                "The task is blank, so nobody was asked. Say what is to be done and what to return.",
            ));
        }
        if let Some(kind) = self.kind.as_ref().filter(|kind| !kinds.contains(kind)) {
            let known = if kinds.is_empty() { "there are none".to_owned() } else { kinds.join(", ") };
            return Err(ToolError::failed(format!(
                "There is no kind of agent called `{kind}`; nobody was asked. Leave `kind` out, or use one of: {known}."
            )));
        }
        let task = AgentTask { task: self.task, kind: self.kind };
        let input = RawJson::of(&task).map_err(ToolError::Output)?;
        Ok(Wait::Action(Action { kind: AGENT_ACTION.to_owned(), input }))
    }
}

fn description(kinds: &[AgentKind]) -> String {
    let mut text = DESCRIPTION.trim_end().to_owned();
    if !kinds.is_empty() {
        text.push_str("\n\nKinds of agents:");
        for AgentKind { name, description } in kinds {
            // Writing to a string does not fail.
            let _ = write!(text, "\n- `{name}`: {description}");
        }
    }
    text
}

const DESCRIPTION: &str = include_str!("../prompt/agent.md");
