//! The tool that ends a background job.

use std::sync::Arc;

use agent_tools::{Access, Call, Render, Subject, Tool, ToolConfig, ToolError};

use crate::bash_output::report;
use crate::built;
use crate::sandbox::Sandbox;

/// Ends a background job of [`crate::bash`] with everything it started (requirement T8). It needs no permission of a
/// person: it only takes back what the session itself began.
pub fn bash_kill(sandbox: Arc<dyn Sandbox>) -> Arc<dyn Tool> {
    let kill = move |call: Call, input: Input| {
        let sandbox = Arc::clone(&sandbox);
        async move { kill(&*sandbox, &call, &input).await }
    };
    let config = ToolConfig::new("bash_kill", DESCRIPTION.trim_end(), Access::Session, kill);
    built(config.idempotent().render(Render::Terminal).subject(|input| Subject::Text(input.job)))
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Input {
    /// The id that bash gave the job.
    job: String,
}

async fn kill(sandbox: &dyn Sandbox, call: &Call, input: &Input) -> Result<String, ToolError> {
    let seen = sandbox.end_job(&call.permit, &call.cx.session, &input.job).await?;
    Ok(report(&input.job, &seen))
}

const DESCRIPTION: &str = include_str!("../prompt/bash_kill.md");
