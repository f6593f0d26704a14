//! A type that is nothing a model could be shown.
use agent_tools::{ToolError, tool};

/// Counts.
#[tool(access = read)]
async fn count(words: String) -> Result<usize, ToolError> {
    Ok(words.len())
}

fn main() {}
