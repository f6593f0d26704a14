//! Hooks that are external commands: run by a shell, told of the call in JSON, and answered for in JSON.

use std::path::{Path, PathBuf};

use agent_core::{Cancel, RawJson, ToolOutput, floor_boundary};
use agent_tools::{
    After, Before, HookCx, HookError, HookEvent, HookMessage, HookSpec, ToolHook, read_answer,
};
use async_trait::async_trait;

use crate::sandbox::capture::Printed;
use crate::sandbox::shell::{Ended, Start, Streams};
use crate::sandbox::{Captured, ExitReason, SandboxError, allowed_env};
use crate::visible::visible;

/// A hook of the settings (requirement T3): a shell command that runs in the workspace with the user's rights, outside of
/// any sandbox, and reads one [`HookMessage`] in a line on its standard input.
///
/// What it started is ended with it: when it exits, at its timeout, when the call is dropped and when the agent dies. Needs
/// a tokio runtime with I/O and time.
///
/// ```
/// use agent_builtins::CommandHook;
/// use agent_core::{CallId, RawJson, SessionId};
/// use agent_tools::{HookCx, HookDecision, HookEvent, HookSpec, Pattern, ToolHook as _};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// let workspace = tempfile::tempdir()?;
/// let hook = CommandHook::new(
///     HookSpec {
///         on: HookEvent::PreTool,
///         tools: Pattern::tool("bash"),
///         command: "if grep -q deploy; then echo 'Not on Fridays.' >&2; exit 2; fi".into(),
///         timeout_ms: 5_000,
///     },
///     workspace.path(),
/// );
/// let (session, call) = (SessionId::new("s")?, CallId::new("c")?);
/// let cx = HookCx { session: &session, call: &call, tool: "bash", subject: None };
/// let said = hook.before(&cx, &RawJson::parse(r#"{"command": "make deploy"}"#)?).await?;
/// assert_eq!(said.decision, Some(HookDecision::Block("Not on Fridays.".into())));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct CommandHook {
    spec: HookSpec,
    name: String,
    workspace: PathBuf,
    env: Vec<(String, String)>,
}

impl CommandHook {
    /// A hook that runs in this folder. Its command sees no variables of the user's yet.
    pub fn new(spec: HookSpec, workspace: &Path) -> Self {
        let shown = visible(spec.command.as_bytes()).text;
        let name = clipped(shown.trim().lines().next().unwrap_or_default(), NAME);
        Self { spec, name, workspace: workspace.to_owned(), env: Vec::new() }
    }

    /// Gives the command the user's variables, as far as [`allowed_env`] lets them through.
    #[must_use]
    pub fn env(mut self, vars: impl IntoIterator<Item = (String, String)>) -> Self {
        self.env = allowed_env(vars);
        self
    }

    /// Runs the command where it is for this kind of event; else it wants nothing.
    async fn ask(
        &self,
        on: HookEvent,
        cx: &HookCx<'_>,
        input: &RawJson,
        output: Option<&ToolOutput>,
    ) -> Result<(Before, After), HookError> {
        if self.spec.on != on || !self.spec.tools.speaks_of(cx.tool, cx.subject) {
            return Ok((Before::default(), After::default()));
        }
        let message = HookMessage {
            event: on,
            session: cx.session.as_str(),
            call: cx.call.as_str(),
            tool: cx.tool,
            input,
            output: output.map(ToolOutput::plain),
        };
        self.answer(&message).await.map_err(|why| HookError::new(&self.name, why))
    }

    async fn answer(&self, message: &HookMessage<'_>) -> Result<(Before, After), String> {
        let text =
            RawJson::of(message).map_err(|error| format!("what it is told cannot be written: {error}"))?;
        let (out, errors) = (Printed::default(), Printed::default());
        let streams = Streams {
            input: format!("{}\n", text.get()).into_bytes(),
            out: out.clone(),
            errors: Some(errors.clone()),
        };
        let start = Start { command: &self.spec.command, cwd: &self.workspace, env: &self.env, wall: None };
        let running = start.launch(streams).map_err(unstarted)?;
        let ended = running.finish(Some(self.spec.timeout()), &Cancel::new()).await;
        let Ended { exit, .. } = ended.map_err(|error| error.to_string())?;
        let (out, errors) = (out.take(), words(&errors.take()));
        match exit {
            ExitReason::Code(code) => {
                let out = if code == 0 { whole(&out)? } else { String::new() };
                read_answer(code, &out, &errors).map_err(|fault| format!("{fault}{}", beside(code, &errors)))
            }
            ExitReason::Signal(signal) => Err(format!("it was ended by signal {signal}{}", said(&errors))),
            ExitReason::TimedOut | ExitReason::Cancelled => Err(format!(
                "it gave no answer within {} ms and was stopped with everything it started; make it faster, or raise its timeout_ms in the settings{}",
                self.spec.timeout_ms,
                said(&errors)
            )),
        }
    }
}

#[async_trait]
impl ToolHook for CommandHook {
    fn name(&self) -> &str {
        &self.name
    }

    fn looks_at(&self, tool: &str) -> bool {
        self.spec.tools.names(tool)
    }

    async fn before(&self, cx: &HookCx<'_>, input: &RawJson) -> Result<Before, HookError> {
        self.ask(HookEvent::PreTool, cx, input, None).await.map(|(before, _)| before)
    }

    async fn after(&self, cx: &HookCx<'_>, input: &RawJson, output: &ToolOutput) -> Result<After, HookError> {
        self.ask(HookEvent::PostTool, cx, input, Some(output)).await.map(|(_, after)| after)
    }

    async fn failed(
        &self,
        cx: &HookCx<'_>,
        input: &RawJson,
        output: &ToolOutput,
    ) -> Result<After, HookError> {
        self.ask(HookEvent::ToolError, cx, input, Some(output)).await.map(|(_, after)| after)
    }
}

/// The words of the sandbox are for a model whose own command it is.
fn unstarted(error: SandboxError) -> String {
    if let SandboxError::Start(cause) = &error {
        return format!("its command could not be started: {cause}");
    }
    error.to_string()
}

/// An answer byte for byte; one that is not all there, or not text, is none.
fn whole(out: &Captured) -> Result<String, String> {
    if out.dropped() > 0 {
        return Err(format!(
            "its answer has {} bytes, more than the 1 MiB that is kept; print the answer alone, and everything else to standard error",
            out.total()
        ));
    }
    let (bytes, _) = out.pieces();
    String::from_utf8(bytes).map_err(|error| format!("its answer is not UTF-8: {error}"))
}

/// What it wrote to standard error, short enough for a model.
fn words(errors: &Captured) -> String {
    let (bytes, _) = errors.pieces();
    clipped(visible(&bytes).text.trim(), SAID)
}

/// What an answer that cannot be read does not tell by itself.
fn beside(code: i32, errors: &str) -> String {
    if code == 0 { said(errors) } else { String::new() }
}

fn said(errors: &str) -> String {
    if errors.is_empty() { String::new() } else { format!(". It said: {errors}") }
}

fn clipped(text: &str, most: usize) -> String {
    let kept = &text[..floor_boundary(text, most)];
    if kept.len() == text.len() { kept.to_owned() } else { format!("{kept}…") }
}

/// Bytes of a command that stand for its name.
const NAME: usize = 80;
/// Bytes of its words that are passed on.
const SAID: usize = 4_000;
