//! A word that is no kind of effect.
use agent_tools::{ToolError, tool};

/// Greets.
#[tool(access = write)]
async fn greet(name: String) -> Result<String, ToolError> {
    Ok(name)
}

fn main() {}
