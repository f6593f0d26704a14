//! What is no tool is named as such, with what to do instead.
use agent_tools::ToolSet;

fn main() {
    let _ = ToolSet::builder().with("grep");
}
