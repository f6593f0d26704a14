//! Without its kind of effect there is no tool.
use agent_tools::{ToolError, tool};

/// Greets.
#[tool(idempotent)]
async fn greet(name: String) -> Result<String, ToolError> {
    Ok(name)
}

fn main() {}
