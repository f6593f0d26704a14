//! The sandbox of the user's own machine: files confined to the workspace, commands with a bare environment.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use agent_core::{Cancel, SessionId};
use agent_tools::{Access, Permit};
use async_trait::async_trait;

use super::jobs::Jobs;
use super::root::{Root, shown};
use super::shell::Start;
use super::wall::Wall;
use super::{
    CommandOutput, FileBytes, FileWrite, Found, JobCommand, JobOutput, Sandbox, SandboxError, Search,
    ShellCommand, Walk, Walked, allowed_env, search, shell, walk, write,
};
use crate::blocking::blocking;

/// A workspace of this machine (requirement T9).
///
/// Files are reached through a handle on the workspace's directory, so neither `..` nor an absolute path nor a
/// symbolic link leads out. Commands run with the user's rights and are *not* confined: what keeps them in bounds is
/// the permission check. Needs a tokio runtime with I/O and time. Clones share their background jobs, which end with the
/// last of them.
#[derive(Debug, Clone)]
pub struct LocalSandbox {
    root: Arc<Root>,
    env: Vec<(String, String)>,
    jobs: Arc<Jobs>,
    /// What an isolated sandbox puts around commands.
    pub(super) wall: Option<Arc<Wall>>,
}

impl LocalSandbox {
    /// A sandbox on this directory, which must exist. Commands see no variables of the user's yet.
    pub fn open(root: &Path) -> Result<Self, SandboxError> {
        Ok(Self { root: Arc::new(Root::open(root)?), env: Vec::new(), jobs: Arc::default(), wall: None })
    }

    /// Gives commands the user's variables, as far as [`allowed_env`] lets them through.
    #[must_use]
    pub fn env(mut self, vars: impl IntoIterator<Item = (String, String)>) -> Self {
        self.env = allowed_env(vars);
        self
    }

    /// The real absolute path of the workspace.
    pub fn path(&self) -> &Path {
        &self.root.path
    }

    /// Does file work on a thread that may block.
    async fn files<T, W>(&self, cancel: &Cancel, work: W) -> Result<T, SandboxError>
    where
        T: Send + 'static,
        W: FnOnce(&Root, &Cancel) -> Result<T, SandboxError> + Send + 'static,
    {
        let root = Arc::clone(&self.root);
        blocking(cancel, move |cancel| work(&root, cancel)).await?
    }

    /// The folder a command runs in.
    async fn folder(&self, cwd: String, cancel: &Cancel) -> Result<PathBuf, SandboxError> {
        let folder = self.files(cancel, move |root, _| root.directory(&cwd)).await?;
        Ok(if shown(&folder) == "." { self.root.path.clone() } else { self.root.path.join(folder) })
    }

    fn starting<'s>(&'s self, command: &'s str, cwd: &'s Path) -> Start<'s> {
        Start { command, cwd, env: &self.env, wall: self.wall.as_deref() }
    }
}

#[async_trait]
impl Sandbox for LocalSandbox {
    async fn real_path(&self, path: &str) -> Result<String, SandboxError> {
        let path = path.to_owned();
        self.files(&Cancel::new(), move |root, _| root.leads_to(&path)).await
    }

    async fn read(&self, permit: &Permit, path: &str, limit: u64) -> Result<FileBytes, SandboxError> {
        require(permit, Access::Read)?;
        let path = path.to_owned();
        let file = self.files(&Cancel::new(), move |root, _| root.read(&path, limit)).await?;
        permit.covers_path(&file.path).map_err(SandboxError::Permit)?;
        Ok(file)
    }

    async fn write(&self, permit: &Permit, write: FileWrite) -> Result<String, SandboxError> {
        require(permit, Access::Edit)?;
        let checked = permit.checked_path().map(str::to_owned);
        self.files(&Cancel::new(), move |root, _| write::write(root, &write, checked.as_deref())).await
    }

    async fn walk(&self, permit: &Permit, walk: Walk, cancel: &Cancel) -> Result<Walked, SandboxError> {
        require(permit, Access::Read)?;
        self.files(cancel, move |root, cancel| walk::walk(root, &walk, cancel)).await
    }

    async fn search(&self, permit: &Permit, search: Search, cancel: &Cancel) -> Result<Found, SandboxError> {
        require(permit, Access::Read)?;
        self.files(cancel, move |root, cancel| search::search(root, &search, cancel)).await
    }

    async fn run(
        &self,
        permit: &Permit,
        command: ShellCommand,
        cancel: &Cancel,
    ) -> Result<CommandOutput, SandboxError> {
        require(permit, Access::Execute)?;
        let ShellCommand { command, cwd, timeout } = command;
        within(timeout)?;
        let cwd = self.folder(cwd, cancel).await?;
        shell::run(&self.starting(&command, &cwd), timeout, cancel).await
    }

    async fn start_job(&self, permit: &Permit, command: JobCommand) -> Result<String, SandboxError> {
        require(permit, Access::Execute)?;
        let JobCommand { session, command, cwd, timeout } = command;
        timeout.map_or(Ok(()), within)?;
        let cwd = self.folder(cwd, &Cancel::new()).await?;
        self.jobs.start(&session, &self.starting(&command, &cwd), timeout)
    }

    async fn read_job(
        &self,
        permit: &Permit,
        session: &SessionId,
        job: &str,
        offset: Option<u64>,
    ) -> Result<JobOutput, SandboxError> {
        require(permit, Access::Read)?;
        self.jobs.read(session, job, offset)
    }

    async fn end_job(
        &self,
        permit: &Permit,
        session: &SessionId,
        job: &str,
    ) -> Result<JobOutput, SandboxError> {
        require(permit, Access::Session)?;
        self.jobs.end(session, job).await
    }

    async fn end_jobs(&self, session: &SessionId) {
        self.jobs.end_all(session).await;
    }

    fn drop_jobs(&self, session: &SessionId) {
        self.jobs.drop_all(session);
    }
}

fn within(timeout: Duration) -> Result<(), SandboxError> {
    if timeout.is_zero() || timeout > LONGEST {
        return Err(SandboxError::Timeout { asked: timeout, most: LONGEST });
    }
    Ok(())
}

/// Nothing is done for a tool that did not declare an effect of this kind.
fn require(permit: &Permit, effect: Access) -> Result<(), SandboxError> {
    permit.allows(effect).map_err(SandboxError::Permit)
}

/// The longest a command may take.
const LONGEST: Duration = Duration::from_secs(600);
