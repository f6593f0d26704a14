//! What the model is to read is missing.
use agent_tools::{ToolError, tool};

#[tool(access = read)]
async fn greet(name: String) -> Result<String, ToolError> {
    Ok(name)
}

fn main() {}
