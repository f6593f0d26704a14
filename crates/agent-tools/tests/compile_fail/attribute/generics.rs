//! A tool has one schema.
use agent_tools::{ToolError, tool};

/// Greets.
#[tool(access = read)]
async fn greet<T: ToString>(name: T) -> Result<String, ToolError> {
    Ok(name.to_string())
}

fn main() {}
