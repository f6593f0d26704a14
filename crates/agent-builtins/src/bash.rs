//! The tool that runs a shell command.

use std::sync::Arc;
use std::time::Duration;

use agent_core::ToolOutput;
use agent_tools::{Access, Call, Subject, Tool, ToolConfig, ToolError};

use crate::built;
use crate::sandbox::{Captured, CommandOutput, ExitReason, Sandbox, ShellCommand};
use crate::visible::visible;

/// Runs a command in the workspace; whatever ends it, nothing of it runs on (requirements T4, T8).
pub fn bash(sandbox: Arc<dyn Sandbox>) -> Arc<dyn Tool> {
    let run = move |call: Call, input: Input| {
        let sandbox = Arc::clone(&sandbox);
        async move { run(&*sandbox, &call, input).await }
    };
    let config = ToolConfig::new("bash", DESCRIPTION.trim_end(), Access::Execute, run);
    built(config.subject(|input| Subject::Command(input.command)))
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Input {
    /// The command, as bash reads it.
    command: String,
    /// How long it may take in milliseconds, at most 600000. Default 120000.
    timeout_ms: Option<u64>,
    /// The directory to run in. Default: the root of the workspace.
    cwd: Option<String>,
}

async fn run(sandbox: &dyn Sandbox, call: &Call, input: Input) -> Result<ToolOutput, ToolError> {
    if input.command.trim().is_empty() {
        return Err(ToolError::failed("The command is blank, so nothing ran. Give the command to run."));
    }
    if input.command.contains('\0') {
        return Err(ToolError::failed(
            "The command holds a NUL character, which no command can; nothing ran. Write it as an escape, for example `printf '\\0'`.",
        ));
    }
    let timeout = input.timeout_ms.map_or(TIMEOUT, Duration::from_millis);
    let command = ShellCommand { command: input.command, cwd: input.cwd.unwrap_or_default(), timeout };
    let ran = sandbox.run(&call.permit, command, &call.cx.cancel).await?;
    let words = report(&ran, timeout);
    Ok(match ran.exit {
        ExitReason::Code(_) | ExitReason::Signal(_) => ToolOutput::text(words),
        // It did not do what it was to do, whatever it had printed by then.
        ExitReason::TimedOut | ExitReason::Cancelled => ToolOutput::error(words),
    })
}

/// Output first, then how it ended, so that a cut in the middle keeps both ends.
fn report(ran: &CommandOutput, timeout: Duration) -> String {
    let (mut text, notes) = shown(&ran.printed);
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let took = format!("{:.1} s", ran.took.as_secs_f64());
    let end = match ran.exit {
        ExitReason::Code(code) => format!("exit code {code}, {took}"),
        ExitReason::Signal(signal) => format!("ended by signal {signal}, {took}"),
        ExitReason::TimedOut => format!(
            "timed_out: true; stopped after its timeout of {} ms, with every process known to be its own. What it printed until then is above, and it may have had part of its effect. Do less in one call, or raise timeout_ms",
            timeout.as_millis()
        ),
        ExitReason::Cancelled => format!(
            "cancelled after {took}; stopped with every process known to be its own. It may have had part of its effect"
        ),
    };
    let mut foot = vec![end];
    foot.extend(notes);
    if !ran.stopped.is_empty() {
        foot.push(format!(
            "{} processes it left running were stopped: {}; nothing runs on between calls",
            ran.stopped.len(),
            named(&ran.stopped)
        ));
    }
    if !ran.unstopped.is_empty() {
        foot.push(format!(
            "{} processes of it could not be stopped and still run: {}",
            ran.unstopped.len(),
            named(&ran.unstopped)
        ));
    }
    format!("{text}[{}]", foot.join("; "))
}

/// The first few command lines.
fn named(lines: &[String]) -> String {
    let names = lines.iter().take(5).map(|line| format!("`{}`", visible(line.as_bytes()).text));
    names.collect::<Vec<_>>().join(", ")
}

fn shown(output: &Captured) -> (String, Vec<String>) {
    let (head, tail) = output.pieces();
    let head = visible(&head);
    let (mut text, mut replaced) = (head.text, head.replaced);
    let mut notes = Vec::new();
    if let Some(tail) = tail {
        let tail = visible(&tail);
        replaced += tail.replaced;
        text.push_str(&format!("\n[… {} bytes left out …]\n{}", output.dropped(), tail.text));
        notes.push(format!("it printed {} bytes, of which the middle was dropped; redirect into a file and look at parts of it to see all", output.total()));
    }
    if replaced > 0 {
        notes.push(format!("{replaced} stretches of bytes were not UTF-8 and are shown as \u{fffd}"));
    }
    (text, notes)
}

const DESCRIPTION: &str = include_str!("../prompt/bash.md");
const TIMEOUT: Duration = Duration::from_secs(120);
