//! What is no model, store, stop condition or tool is named as such.
use agent::{Agent, ToolSet};

fn main() {
    let _ = Agent::builder().model("claude");
    let _ = Agent::builder().store("sessions.db");
    let _ = Agent::builder().stop(40);
    let _ = ToolSet::builder().with("grep");
}
