//! A method has a receiver, a tool has none.
use agent_tools::{ToolError, tool};

struct Greeter;

impl Greeter {
    /// Greets.
    #[tool(access = read)]
    async fn greet(&self, name: String) -> Result<String, ToolError> {
        Ok(name)
    }
}

fn main() {}
