//! The sandbox whose commands see nothing but the workspace and the system's programs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_core::{Cancel, SessionId};
use agent_tools::Permit;
use async_trait::async_trait;

use super::wall::Wall;
use super::{
    CommandOutput, FileBytes, FileWrite, Found, JobCommand, JobOutput, LocalSandbox, Sandbox, SandboxError,
    Search, ShellCommand, Walk, Walked,
};

/// A workspace of this machine whose commands are isolated by bubblewrap (requirement T9).
///
/// Files are reached as by [`LocalSandbox`]. A command has the workspace, to read and to write, at its own path; the
/// system's folders, to read; a `/tmp` and a home of its own that go with it; its own processes; and no network unless
/// [`IsolatedSandbox::network`] gives it. Where that cannot be had, opening fails: nothing ever runs unisolated in its
/// place.
#[derive(Debug, Clone)]
pub struct IsolatedSandbox(LocalSandbox);

impl IsolatedSandbox {
    /// A sandbox on this directory, which must exist. Of the user's variables commands see what
    /// [`super::allowed_env`] lets through; `PATH` among them says where `bwrap` is looked for.
    ///
    /// # Errors
    /// When the directory cannot be opened, and [`SandboxError::Isolation`] when bubblewrap is not installed or cannot
    /// make a sandbox on this system; the words say what to do.
    pub fn open(root: &Path, vars: impl IntoIterator<Item = (String, String)>) -> Result<Self, SandboxError> {
        let vars: Vec<(String, String)> = vars.into_iter().collect();
        let local = LocalSandbox::open(root)?;
        let search = vars.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_str());
        let wall = Wall::find(local.path(), search)?;
        Ok(Self(local.env(vars))).map(|sandbox| sandbox.walled(wall))
    }

    /// Whether commands reach the network. They do not unless this says so.
    #[must_use]
    pub fn network(self, network: bool) -> Self {
        self.change(|wall| wall.network = network)
    }

    /// Lets commands look at one more folder, such as that of a toolchain.
    #[must_use]
    pub fn readable(self, folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        self.change(|wall| wall.readable.push(folder))
    }

    /// The real absolute path of the workspace.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    fn walled(mut self, wall: Wall) -> Self {
        self.0.wall = Some(Arc::new(wall));
        self
    }

    fn change(mut self, change: impl FnOnce(&mut Wall)) -> Self {
        if let Some(wall) = &mut self.0.wall {
            change(Arc::make_mut(wall));
        }
        self
    }
}

#[async_trait]
impl Sandbox for IsolatedSandbox {
    async fn real_path(&self, path: &str) -> Result<String, SandboxError> {
        self.0.real_path(path).await
    }

    async fn read(&self, permit: &Permit, path: &str, limit: u64) -> Result<FileBytes, SandboxError> {
        self.0.read(permit, path, limit).await
    }

    async fn write(&self, permit: &Permit, write: FileWrite) -> Result<String, SandboxError> {
        self.0.write(permit, write).await
    }

    async fn walk(&self, permit: &Permit, walk: Walk, cancel: &Cancel) -> Result<Walked, SandboxError> {
        self.0.walk(permit, walk, cancel).await
    }

    async fn search(&self, permit: &Permit, search: Search, cancel: &Cancel) -> Result<Found, SandboxError> {
        self.0.search(permit, search, cancel).await
    }

    async fn run(
        &self,
        permit: &Permit,
        command: ShellCommand,
        cancel: &Cancel,
    ) -> Result<CommandOutput, SandboxError> {
        self.0.run(permit, command, cancel).await
    }

    async fn start_job(&self, permit: &Permit, command: JobCommand) -> Result<String, SandboxError> {
        self.0.start_job(permit, command).await
    }

    async fn read_job(
        &self,
        permit: &Permit,
        session: &SessionId,
        job: &str,
        offset: Option<u64>,
    ) -> Result<JobOutput, SandboxError> {
        self.0.read_job(permit, session, job, offset).await
    }

    async fn end_job(
        &self,
        permit: &Permit,
        session: &SessionId,
        job: &str,
    ) -> Result<JobOutput, SandboxError> {
        self.0.end_job(permit, session, job).await
    }

    async fn end_jobs(&self, session: &SessionId) {
        self.0.end_jobs(session).await;
    }

    fn drop_jobs(&self, session: &SessionId) {
        self.0.drop_jobs(session);
    }
}
