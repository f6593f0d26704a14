//! The tool that runs a shell command.

use std::sync::Arc;
use std::time::Duration;

use agent_core::ToolOutput;
use agent_tools::{Access, Call, Render, Subject, Tool, ToolConfig, ToolError};

use crate::built;
use crate::sandbox::{Captured, CommandOutput, ExitReason, JobCommand, Sandbox, ShellCommand};
use crate::visible::visible;

/// Runs a command in the workspace; whatever ends it, nothing of it runs on (requirements T4, T8). One that is asked to run
/// in the background goes on until [`crate::bash_kill`], or until its session or the sandbox is closed.
pub fn bash(sandbox: Arc<dyn Sandbox>) -> Arc<dyn Tool> {
    let jobs = Arc::clone(&sandbox);
    let run = move |call: Call, input: Input| {
        let sandbox = Arc::clone(&sandbox);
        async move { run(&*sandbox, &call, input).await }
    };
    let config = ToolConfig::new("bash", DESCRIPTION.trim_end(), Access::Execute, run);
    let config = config.render(Render::Terminal).session_closed(move |session| jobs.drop_jobs(session));
    built(config.subject(|input| Subject::Command(input.command)))
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Input {
    /// The command, as bash reads it.
    command: String,
    /// How long it may take in milliseconds, at most 600000. Default 120000; in the background no limit.
    timeout_ms: Option<u64>,
    /// Whether it runs on behind this call, as a job. Default false.
    background: Option<bool>,
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
    let (timeout, cwd) = (input.timeout_ms.map(Duration::from_millis), input.cwd.unwrap_or_default());
    if input.background == Some(true) {
        let session = call.cx.session.clone();
        let command = JobCommand { session, command: input.command, cwd, timeout };
        let job = sandbox.start_job(&call.permit, command).await?;
        return Ok(ToolOutput::text(format!(
            "Started as background job `{job}`. Read what it prints with bash_output, and end it with bash_kill when it is no longer needed."
        )));
    }
    let timeout = timeout.unwrap_or(TIMEOUT);
    let command = ShellCommand { command: input.command, cwd, timeout };
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
    let (text, notes) = shown(&ran.printed);
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
    foot.extend(left_behind(&ran.stopped, &ran.unstopped));
    with_foot(text, &foot)
}

/// What a command left running, in words.
pub(crate) fn left_behind(stopped: &[String], unstopped: &[String]) -> Vec<String> {
    let mut notes = Vec::new();
    if !stopped.is_empty() {
        notes.push(format!(
            "{} processes it left running were stopped: {}; nothing runs on between calls",
            stopped.len(),
            named(stopped)
        ));
    }
    if !unstopped.is_empty() {
        notes.push(format!(
            "{} processes of it could not be stopped and still run: {}",
            unstopped.len(),
            named(unstopped)
        ));
    }
    notes
}

/// Output with what is to be said of it on a line of its own behind it.
pub(crate) fn with_foot(mut text: String, foot: &[String]) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    format!("{text}[{}]", foot.join("; "))
}

/// The first few command lines.
fn named(lines: &[String]) -> String {
    let names = lines.iter().take(5).map(|line| format!("`{}`", visible(line.as_bytes()).text));
    names.collect::<Vec<_>>().join(", ")
}

fn shown(output: &Captured) -> (String, Vec<String>) {
    let (head, dropped, tail) = output.since(0);
    let (text, mut notes) = text_of(&head, dropped, &tail);
    if dropped > 0 {
        let note = format!(
            "it printed {} bytes, of which the middle was dropped; redirect into a file and look at parts of it to see all",
            output.total()
        );
        notes.insert(0, note);
    }
    (text, notes)
}

/// Output around bytes that were dropped, and what is to be said of it.
pub(crate) fn text_of(head: &[u8], dropped: u64, tail: &[u8]) -> (String, Vec<String>) {
    let (head, tail) = (visible(head), visible(tail));
    let gap = if dropped > 0 { format!("\n[… {dropped} bytes left out …]\n") } else { String::new() };
    let replaced = head.replaced + tail.replaced;
    let odd = || format!("{replaced} stretches of bytes were not UTF-8 and are shown as \u{fffd}");
    (format!("{}{gap}{}", head.text, tail.text), (replaced > 0).then(odd).into_iter().collect())
}

const DESCRIPTION: &str = include_str!("../prompt/bash.md");
const TIMEOUT: Duration = Duration::from_secs(120);
