//! A permit is consumed by the run it allows.
use agent_core::RawJson;
use agent_tools::{Permit, Tool, ToolCx};

async fn twice(tool: &dyn Tool, cx: &ToolCx, permit: Permit, input: &RawJson) {
    let _ = tool.run(cx, permit, input).await;
    let _ = tool.run(cx, permit, input).await;
}

fn main() {}
