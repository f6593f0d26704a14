//! A function that cannot fail in words.
use agent_tools::tool;

/// Greets.
#[tool(access = read)]
async fn greet(name: String) -> String {
    name
}

fn main() {}
