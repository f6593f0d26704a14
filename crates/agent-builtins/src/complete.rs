//! The tool that says the task is finished.

use std::sync::Arc;

use agent_tools::Call;
use agent_tools::{Access, Tool, ToolConfig, ToolError};

use crate::built;

/// Ends the work with a summary; refuses while todos are open (requirement L5).
pub fn complete() -> Arc<dyn Tool> {
    let finish = |call: Call, input: Input| async move { finish(&call, &input) };
    built(ToolConfig::new("complete", DESCRIPTION.trim_end(), Access::Session, finish).idempotent())
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Input {
    /// What was done and how it was checked, for the user.
    summary: String,
    /// How it went: everything that was asked for (`done`), a part of it (`partial`), or not possible (`blocked`).
    outcome: Outcome,
}

#[derive(Clone, Copy, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Done,
    Partial,
    Blocked,
}

fn finish(call: &Call, input: &Input) -> Result<String, ToolError> {
    let open = call.cx.slots.read(|slots| {
        let names = slots.open_todos().map(|todo| format!("\n- {}: {}", todo.id, todo.text));
        names.collect::<String>()
    });
    if !open.is_empty() {
        return Err(ToolError::failed(format!(
            "The task is not complete: these todos are open:{open}\nFinish them and mark them done with todo; drop from the list what is no longer wanted and say so in the summary. Then call complete again."
        )));
    }
    if input.summary.trim().is_empty() {
        return Err(ToolError::failed(
            "The summary is blank. Say what was done and how it was checked, then call complete again.",
        ));
    }
    Ok(match input.outcome {
        Outcome::Done => input.summary.clone(),
        Outcome::Partial => format!("{}\n\n[outcome: partial]", input.summary),
        Outcome::Blocked => format!("{}\n\n[outcome: blocked]", input.summary),
    })
}

const DESCRIPTION: &str = include_str!("../prompt/complete.md");
