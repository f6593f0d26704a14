//! An argument whose type has no schema.
use agent_tools::{ToolError, tool};

#[derive(serde::Deserialize)]
struct Person {
    name: String,
}

/// Greets.
#[tool(access = read)]
async fn greet(person: Person) -> Result<String, ToolError> {
    Ok(person.name)
}

fn main() {}
