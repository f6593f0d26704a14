//! The tool that reads what a background job printed.

use std::sync::Arc;

use agent_tools::{Access, Call, Render, Subject, Tool, ToolConfig, ToolError};

use crate::bash::{left_behind, text_of, with_foot};
use crate::built;
use crate::sandbox::{ExitReason, JobOutput, JobState, Sandbox};

/// Shows what a background job of [`crate::bash`] printed since it was last read, and how it is (requirement T8).
pub fn bash_output(sandbox: Arc<dyn Sandbox>) -> Arc<dyn Tool> {
    let read = move |call: Call, input: Input| {
        let sandbox = Arc::clone(&sandbox);
        async move { read(&*sandbox, &call, &input).await }
    };
    let config = ToolConfig::new("bash_output", DESCRIPTION.trim_end(), Access::Read, read);
    built(config.render(Render::Terminal).subject(|input| Subject::Text(input.job)))
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Input {
    /// The id that bash gave the job.
    job: String,
    /// The byte of all its output to read from, 0 for the beginning. Default: where the last reading ended.
    offset: Option<u64>,
}

async fn read(sandbox: &dyn Sandbox, call: &Call, input: &Input) -> Result<String, ToolError> {
    let seen = sandbox.read_job(&call.permit, &call.cx.session, &input.job, input.offset).await?;
    Ok(report(&input.job, &seen))
}

/// Output first, then how the job is.
pub(crate) fn report(job: &str, seen: &JobOutput) -> String {
    let (text, notes) = text_of(&seen.printed, seen.dropped, &seen.rest);
    let mut foot = vec![state(job, seen)];
    let about = if seen.from == seen.next { "nothing new".to_owned() } else { bytes(seen) };
    foot.push(about);
    foot.extend(notes);
    match &seen.state {
        JobState::Running if seen.from == seen.next => foot.push(WAIT.to_owned()),
        JobState::Ended { stopped, unstopped, .. } => foot.extend(left_behind(stopped, unstopped)),
        JobState::Running | JobState::Lost(_) => {}
    }
    with_foot(text, &foot)
}

fn bytes(seen: &JobOutput) -> String {
    let shown = format!("bytes {} to {} of its output", seen.from, seen.next);
    if seen.dropped == 0 {
        return shown;
    }
    format!(
        "{shown}, of which {} are not kept any more; let a job that prints much write into a file",
        seen.dropped
    )
}

fn state(job: &str, seen: &JobOutput) -> String {
    let took = format!("{:.1} s", seen.took.as_secs_f64());
    let exit = match &seen.state {
        JobState::Running => return format!("`{job}` has been running for {took}"),
        JobState::Lost(why) => return format!("`{job}` was killed, because its runner failed: {why}"),
        JobState::Ended { exit, .. } => exit,
    };
    match exit {
        ExitReason::Code(code) => format!("`{job}` ended with exit code {code} after {took}"),
        ExitReason::Signal(signal) => format!("`{job}` was ended by signal {signal} after {took}"),
        ExitReason::TimedOut => {
            format!("`{job}` timed out after {took} and was stopped, with every process known to be its own")
        }
        ExitReason::Cancelled => {
            format!("`{job}` was stopped after {took}, with every process known to be its own")
        }
    }
}

const DESCRIPTION: &str = include_str!("../prompt/bash_output.md");
const WAIT: &str = "to wait for more, run `sleep 5` with bash before you ask again";
