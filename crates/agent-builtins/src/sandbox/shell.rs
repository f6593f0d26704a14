//! Running a command: its own session, pipes for what it reads and prints, and nothing left behind.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use agent_core::Cancel;
use process_wrap::tokio::{ChildWrapper, CommandWrap, KillOnDrop, ProcessSession};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::time::{Instant, sleep, timeout};

use super::capture::Printed;
use super::env::{FORCED, PATH};
use super::family::Family;
use super::guardian::Guardian;
use super::mark::Mark;
use super::wall::Wall;
use super::{CommandOutput, ExitReason, SandboxError};

/// What a command is started with.
#[derive(Debug)]
pub(crate) struct Start<'s> {
    pub(crate) command: &'s str,
    pub(crate) cwd: &'s Path,
    pub(crate) env: &'s [(String, String)],
    /// What keeps it apart from the rest of the machine.
    pub(crate) wall: Option<&'s Wall>,
}

/// What a command reads, and where goes what it prints. By default it reads nothing and prints to one place.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    pub(crate) input: Vec<u8>,
    pub(crate) out: Printed,
    /// A place of its own for its errors; else they go with the rest, in the order they come.
    pub(crate) errors: Option<Printed>,
}

/// A command that runs. Dropped, it kills everything the command started.
pub(crate) struct Running {
    /// Before the child, so that a drop ends the group while its number still means this group.
    family: Family,
    child: Box<dyn ChildWrapper>,
    input: Option<Feed>,
    out: Outlet,
    errors: Option<Outlet>,
    began: Instant,
}

/// What became of a command.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) exit: ExitReason,
    pub(crate) took: Duration,
    pub(crate) stopped: Vec<String>,
    pub(crate) unstopped: Vec<String>,
}

struct Feed {
    pipe: Sender,
    bytes: Vec<u8>,
    at: usize,
}

struct Outlet {
    pipe: Receiver,
    into: Printed,
}

/// A child with our ends of its pipes.
struct Piped {
    child: Box<dyn ChildWrapper>,
    input: Option<Feed>,
    out: Outlet,
    errors: Option<Outlet>,
}

/// Runs a command to its end. Dropping the future kills everything the command started.
pub(super) async fn run(
    start: &Start<'_>,
    most: Duration,
    cancel: &Cancel,
) -> Result<CommandOutput, SandboxError> {
    let out = Printed::default();
    let running = start.launch(Streams { out: out.clone(), ..Streams::default() })?;
    let Ended { exit, took, stopped, unstopped } = running.finish(Some(most), cancel).await?;
    Ok(CommandOutput { exit, printed: out.take(), took, stopped, unstopped })
}

impl Start<'_> {
    /// Starts it; it runs on until [`Running::finish`] or a drop.
    pub(crate) fn launch(&self, streams: Streams) -> Result<Running, SandboxError> {
        self.begin(streams).map_err(|error| self.explain(error))
    }

    fn explain(&self, error: io::Error) -> SandboxError {
        if error.kind() == io::ErrorKind::ArgumentListTooLong {
            return SandboxError::LongCommand { len: self.command.len() };
        }
        SandboxError::Start(error)
    }

    fn begin(&self, streams: Streams) -> io::Result<Running> {
        let began = Instant::now();
        self.wall.map_or(Ok(()), Wall::check)?;
        let mark = Mark::new();
        let guardian = Guardian::start(&mark)?;
        let Piped { child, input, out, errors } = self.spawn(&mark, &streams)?;
        let family = Family::new(mark, guardian, child.id());
        Ok(Running { family, child, input, out, errors, began })
    }

    fn spawn(&self, mark: &Mark, streams: &Streams) -> io::Result<Piped> {
        let (out, writer) = Outlet::open(&streams.out)?;
        let (errors, errors_writer) = match &streams.errors {
            Some(errors) => Outlet::open(errors).map(|(outlet, writer)| (Some(outlet), writer))?,
            None => (None, writer.try_clone()?),
        };
        let (input, reader) = Feed::open(&streams.input)?;
        let mut wrap = CommandWrap::with_new("/bin/sh", |command| {
            command
                .args(["-c", BEGIN, "sh", mark.kind(), &mark.limit()])
                .args(self.program())
                .current_dir(self.cwd)
                .env_clear()
                .env(PATH.0, PATH.1)
                .envs(self.env.iter().map(|(name, value)| (name, value)))
                .envs(FORCED)
                .env(mark.variable(), "1")
                .stdin(reader)
                .stdout(writer)
                .stderr(errors_writer);
        });
        // A session of its own has no terminal to ask on, and its group can be signalled as one (cases T02, T04).
        wrap.wrap(ProcessSession).wrap(KillOnDrop);
        // The command's ends of the pipes go with `wrap`, so that a pipe ends when the command's own do.
        Ok(Piped { child: wrap.spawn()?, input, out, errors })
    }

    /// The program with its arguments. Empty is the first shell there is.
    fn program(&self) -> Vec<OsString> {
        let walled = self.wall.map(|wall| std::iter::once(wall.program()).chain(wall.arguments(self.cwd)));
        let command = ["-c".into(), OsString::from(self.command)];
        match walled {
            Some(walled) => walled.chain(command).collect(),
            None => std::iter::once(OsString::new()).chain(command).collect(),
        }
    }
}

impl Running {
    /// Waits until the shell exits or is stopped: after this time, or when it is cancelled.
    pub(crate) async fn finish(
        mut self,
        most: Option<Duration>,
        cancel: &Cancel,
    ) -> Result<Ended, SandboxError> {
        let exit = tokio::select! {
            status = self.outlast() => end_of(status.map_err(SandboxError::Start)?),
            () = after(most) => ExitReason::TimedOut,
            () = cancel.cancelled() => ExitReason::Cancelled,
        };
        let (stopped, unstopped) = self.stop(exit).await?;
        self.family.disarm();
        Ok(Ended { exit, took: self.began.elapsed(), stopped, unstopped })
    }

    /// Until the shell exits, whoever else holds the pipes.
    async fn outlast(&mut self) -> io::Result<ExitStatus> {
        let Self { family, child, input, out, errors, .. } = self;
        let mut watch = std::pin::pin!(family.watch());
        let mut open = true;
        loop {
            tokio::select! {
                status = child.wait() => return status,
                () = drain(out, errors.as_mut()), if open => open = false,
                () = feed(input), if input.is_some() => {}
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
        // That it takes longer is no error: whoever holds a pipe open is not waited for.
        let _ = timeout(most, drain(&mut self.out, self.errors.as_mut())).await;
    }
}

impl Feed {
    /// Nothing to read is no pipe at all.
    fn open(bytes: &[u8]) -> io::Result<(Option<Self>, Stdio)> {
        if bytes.is_empty() {
            return Ok((None, Stdio::null()));
        }
        let (reader, writer) = io::pipe()?;
        let pipe = Sender::from_owned_fd(OwnedFd::from(writer))?;
        Ok((Some(Self { pipe, bytes: bytes.to_owned(), at: 0 }), reader.into()))
    }
}

impl Outlet {
    fn open(into: &Printed) -> io::Result<(Self, io::PipeWriter)> {
        let (reader, writer) = io::pipe()?;
        Ok((Self { pipe: Receiver::from_owned_fd(OwnedFd::from(reader))?, into: into.clone() }, writer))
    }

    /// Reads until the pipe ends. Reading never stops for a full buffer, so the command is never held up (case T03).
    async fn drain(&mut self) {
        let mut buffer = vec![0; 64 * 1024];
        // An error of the pipe ends the output like its end does.
        while let Ok(read @ 1..) = self.pipe.read(&mut buffer).await {
            self.into.push(&buffer[..read]);
        }
    }
}

async fn drain(out: &mut Outlet, errors: Option<&mut Outlet>) {
    match errors {
        Some(errors) => {
            tokio::join!(out.drain(), errors.drain());
        }
        None => out.drain().await,
    }
}

/// Gives a command what it reads, and closes the pipe behind it. One that does not want to read it has what it wants.
async fn feed(input: &mut Option<Feed>) {
    while let Some(Feed { pipe, bytes, at }) = input {
        match pipe.write(&bytes[*at..]).await {
            Ok(written @ 1..) if *at + written < bytes.len() => *at += written,
            Ok(_) | Err(_) => *input = None,
        }
    }
}

async fn after(most: Option<Duration>) {
    match most {
        Some(most) => sleep(most).await,
        None => std::future::pending().await,
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

/// Marks itself and then becomes the program, so nothing of a command ever runs without the mark. Shells do not agree
/// what the limit on file locks is called, and some have none.
const BEGIN: &str = r#"[ "$2" ] && { ulimit $1 -w "$2" || ulimit $1 -x "$2"; } 2>/dev/null
[ "$3" ] && shift 2 && exec "$@"
command -v bash >/dev/null && exec bash "$4" "$5"
exec sh "$4" "$5""#;
/// From the request to end until the kill.
const GRACE: Duration = Duration::from_millis(500);
const POLL: Duration = Duration::from_millis(20);
/// How long a finished shell's pipe is listened to.
const DRAIN: Duration = Duration::from_millis(200);
