//! A function that is not async.
use agent_tools::{ToolError, tool};

/// Greets.
#[tool(access = read)]
fn greet(name: String) -> Result<String, ToolError> {
    Ok(name)
}

fn main() {}
