//! Running a command: its own session, one pipe for both streams, and nothing left behind.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use agent_core::Cancel;
use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessSession};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::time::{Instant, sleep, timeout};

use super::env::{FORCED, PATH};
use super::family::{Family, Mark};
use super::guardian::Guardian;
use super::{Captured, CommandOutput, ExitReason, SandboxError};

/// What a command is started with.
#[derive(Debug)]
pub(super) struct Start<'s> {
    pub(super) command: &'s str,
    pub(super) cwd: &'s Path,
    pub(super) env: &'s [(String, String)],
}

/// A command that runs.
struct Running {
    /// Before the child, so that a drop ends the group while its number still means this group.
    family: Family,
    child: Box<dyn ChildWrapper>,
    pipe: Receiver,
    output: Captured,
}

/// Runs a command to its end. Dropping the future kills everything the command started.
pub(super) async fn run(
    start: &Start<'_>,
    most: Duration,
    cancel: &Cancel,
) -> Result<CommandOutput, SandboxError> {
    let began = Instant::now();
    let mut running = start.launch().map_err(|error| start.explain(error))?;
    let end = tokio::select! {
        status = running.outlast() => end_of(status.map_err(SandboxError::Start)?),
        () = sleep(most) => ExitReason::TimedOut,
        () = cancel.cancelled() => ExitReason::Cancelled,
    };
    let (stopped, unstopped) = running.stop(end).await?;
    Ok(CommandOutput { exit: end, printed: running.retire(), took: began.elapsed(), stopped, unstopped })
}

impl Start<'_> {
    fn explain(&self, error: io::Error) -> SandboxError {
        if error.kind() == io::ErrorKind::ArgumentListTooLong {
            return SandboxError::LongCommand { len: self.command.len() };
        }
        SandboxError::Start(error)
    }

    fn launch(&self) -> io::Result<Running> {
        let mark = Mark::new();
        let guardian = Guardian::start(mark.variable())?;
        let (reader, child) = match self.spawn("bash", &mark) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.spawn("sh", &mark)?,
            other => other?,
        };
        let family = Family::new(mark, guardian, child.id());
        let pipe = Receiver::from_owned_fd(OwnedFd::from(reader))?;
        Ok(Running { family, child, pipe, output: Captured::default() })
    }

    fn spawn(&self, shell: &str, mark: &Mark) -> io::Result<(io::PipeReader, Box<dyn ChildWrapper>)> {
        let (reader, writer) = io::pipe()?;
        let errors = writer.try_clone()?;
        let mut wrap = CommandWrap::with_new(shell, |command| {
            command
                .arg("-c")
                .arg(self.command)
                .current_dir(self.cwd)
                .env_clear()
                .env(PATH.0, PATH.1)
                .envs(self.env.iter().map(|(name, value)| (name, value)))
                .envs(FORCED)
                .env(mark.variable(), "1")
                .stdin(Stdio::null())
                .stdout(writer)
                .stderr(errors);
        });
        // A session of its own has no terminal to ask on, and its group can be signalled as one (cases T02, T04).
        wrap.wrap(ProcessSession).wrap(KillOnDrop);
        // Our ends of the pipe's writing side go with `wrap`, so that the pipe ends when the command's own do.
        Ok((reader, wrap.spawn()?))
    }
}

impl Running {
    /// Until the shell exits, whoever else holds the pipe.
    async fn outlast(&mut self) -> io::Result<ExitStatus> {
        let Self { family, child, pipe, output } = self;
        let mut watch = std::pin::pin!(family.watch());
        let mut open = true;
        loop {
            tokio::select! {
                status = child.wait() => return status,
                () = pump(pipe, output), if open => open = false,
                never = &mut watch => match never {},
            }
        }
    }

    /// Ends what still runs: asked first, killed after a grace. The names of what a finished shell left behind, and of
    /// what could not be ended.
    async fn stop(&mut self, end: ExitReason) -> Result<(Vec<String>, Vec<String>), SandboxError> {
        let by_itself = matches!(end, ExitReason::Code(_) | ExitReason::Signal(_));
        if by_itself {
            self.family.shell_is_gone();
            // What the shell printed last is still in the pipe; a child that holds the pipe open is not waited for.
            self.listen(DRAIN).await;
        }
        let left = if by_itself { self.family.names().await? } else { Vec::new() };
        if !by_itself || !left.is_empty() {
            self.family.terminate().await?;
            let grace = Instant::now() + GRACE;
            while Instant::now() < grace && !self.all_gone().await? {}
        }
        let unstopped = self.family.kill().await?;
        self.listen(DRAIN).await;
        self.child.wait().await.map_err(SandboxError::Start)?;
        Ok((left, unstopped))
    }

    /// Looks whether shell and children have ended, giving them a moment to.
    async fn all_gone(&mut self) -> Result<bool, SandboxError> {
        self.listen(POLL).await;
        let Ok(exited) = timeout(POLL, self.child.wait()).await else { return Ok(false) };
        exited.map_err(SandboxError::Start)?;
        self.family.shell_is_gone();
        Ok(self.family.names().await?.is_empty())
    }

    async fn listen(&mut self, most: Duration) {
        // That it takes longer is no error: whoever holds the pipe open is not waited for.
        let _ = timeout(most, pump(&mut self.pipe, &mut self.output)).await;
    }

    fn retire(self) -> Captured {
        self.family.disarm();
        self.output
    }
}

/// Reads until the pipe ends. Reading never stops for a full buffer, so the command is never held up (case T03).
async fn pump(pipe: &mut Receiver, into: &mut Captured) {
    let mut buffer = vec![0; 64 * 1024];
    // An error of the pipe ends the output like its end does.
    while let Ok(read @ 1..) = pipe.read(&mut buffer).await {
        into.push(&buffer[..read]);
    }
}

fn end_of(status: ExitStatus) -> ExitReason {
    match (status.code(), status.signal()) {
        (Some(code), _) => ExitReason::Code(code),
        (None, Some(signal)) => ExitReason::Signal(signal),
        // Neither exited nor killed cannot be for a process that was waited for.
        (None, None) => ExitReason::Code(-1),
    }
}

/// From the request to end until the kill.
const GRACE: Duration = Duration::from_millis(500);
const POLL: Duration = Duration::from_millis(20);
/// How long a finished shell's pipe is listened to.
const DRAIN: Duration = Duration::from_millis(200);
