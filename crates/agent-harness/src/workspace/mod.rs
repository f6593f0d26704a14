//! The folder an agent works in, as a source of its prompt: rule files and the environment.

mod answers;
mod environment;
mod files;
mod git;
mod place;
mod rules;
mod shared;

pub use environment::Environment;

use std::path::PathBuf;

use agent_core::Diagnostic;
use agent_prompt::{Fragment, Layer, Prompt, RuleConfig, Session};
use async_trait::async_trait;

use crate::{PromptSource, SourceError};
use git::Git;
use place::Place;
use rules::{Folders, Found};
use shared::Shared;

const KEY: &str = "environment";

/// The folder an agent works in: its rule files (requirement A2) and its environment (requirement A3) enter the prompt of
/// each session that begins.
///
/// Rule files are those that [`RuleConfig`] names: in the user's folder, in every folder from the root of the workspace
/// down to this one, and in the managed folder; and the files that they import. Each root is a handle that no symbolic
/// link leads out of. A file that is there and cannot be taken is told as a diagnostic, except for a managed one, which
/// keeps the session from beginning: a policy is not left out in silence.
///
/// The environment is what `git` says when it is asked without locks, without a terminal, without the programs that a
/// repository's settings may name, and for 5 seconds at most. Outside a repository there is none.
///
/// Needs a tokio runtime with I/O and time; files are read on a thread that may block.
///
/// ```
/// use agent_harness::{PromptSource, Workspace};
/// use agent_prompt::Prompt;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let folder = tempfile::tempdir()?;
/// std::fs::write(folder.path().join("AGENTS.md"), "Run the tests before you finish.")?;
///
/// let mut prompt = Prompt::default();
/// Workspace::new(folder.path()).add_to(&mut prompt).await?;
///
/// let assembled = prompt.assemble();
/// let system = assembled.system();
/// assert_eq!(system[0].text(), "Instructions from AGENTS.md (project):\n\nRun the tests before you finish.");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Workspace {
    folder: PathBuf,
    root: Option<PathBuf>,
    folders: Folders,
    config: RuleConfig,
    git: Option<Git>,
    /// What was seen, where sessions share it.
    shared: Option<Shared>,
}

impl Workspace {
    /// The workspace around `folder`: the nearest folder with a `.git` in it, from `folder` upwards, or else `folder`.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            root: None,
            folders: Folders::default(),
            config: RuleConfig::default(),
            git: Some(Git::default()),
            shared: None,
        }
    }

    /// Where the walk begins, when it is not the nearest folder with a `.git`: `folder` or one above it.
    #[must_use]
    pub fn root(mut self, root: impl Into<PathBuf>) -> Self {
        self.root = Some(root.into());
        self
    }

    /// Where the user's own rule files are; not read when not given.
    #[must_use]
    pub fn user_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folders.user = Some(folder.into());
        self
    }

    /// Where the rule files of whoever runs the agent are; not read when not given. They override all others and are
    /// rendered last.
    #[must_use]
    pub fn managed_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folders.managed = Some(folder.into());
        self
    }

    /// Which rule files are looked for.
    #[must_use]
    pub fn rules(mut self, config: RuleConfig) -> Self {
        self.config = config;
        self
    }

    /// Without rule files, except managed ones: they are not for the agent's user to leave out.
    #[must_use]
    pub fn without_rules(mut self) -> Self {
        self.config = RuleConfig { project: vec![], local: vec![], user: vec![], ..self.config };
        self
    }

    /// Without the environment: no git is started.
    #[must_use]
    pub fn without_environment(mut self) -> Self {
        self.git = None;
        self
    }

    /// Lets the sessions that begin in this process share one look at the environment, until [`Self::invalidate`]: for a program
    /// that begins many, such as sub-agents, and knows when the repository changed. Clones share it.
    #[must_use]
    pub fn share_environment(mut self) -> Self {
        self.shared = Some(Shared::default());
        self
    }

    /// Has the next session that begins look anew. Those that run keep the prompt they began with, so nothing of their
    /// cached prefix moves; tell them with a note, as [`Self::environment`] says.
    pub fn invalidate(&self) {
        self.shared.iter().for_each(Shared::invalidate);
    }

    /// Looks at the environment now. A session does so once, when it begins; this is for whoever wants to tell the model
    /// that it changed, which appends a note and rewrites nothing: [`Snapshot::note`](agent_prompt::Snapshot::note).
    ///
    /// It looks whether or not sessions begin with an environment. The error says that there is no such folder.
    pub async fn environment(&self) -> Result<Environment, SourceError> {
        let git = self.git.clone().unwrap_or_default();
        Ok(environment::look(&git, &self.place()?).await)
    }

    fn place(&self) -> Result<Place, SourceError> {
        Place::find(&self.folder, self.root.as_deref())
    }

    async fn found(&self) -> Result<Found, SourceError> {
        let Self { folders, config, .. } = self.clone();
        let place = self.place()?;
        let work = tokio::task::spawn_blocking(move || rules::find(&place, &folders, config));
        work.await.map_err(|cause| SourceError::new("the rule files", cause))?
    }

    async fn looked(&self) -> Result<Option<Environment>, SourceError> {
        let Some(git) = &self.git else { return Ok(None) };
        if let Some(seen) = self.shared.as_ref().and_then(Shared::seen) {
            return Ok(Some(seen));
        }
        let environment = environment::look(git, &self.place()?).await;
        Ok(Some(match &self.shared {
            Some(shared) => shared.keep(environment),
            None => environment,
        }))
    }
}

#[async_trait]
impl PromptSource for Workspace {
    async fn add_to(&self, prompt: &mut Prompt) -> Result<(), SourceError> {
        let (found, looked) = tokio::try_join!(self.found(), self.looked())?;
        let Environment { facts, problems } = looked.unwrap_or_default();
        for problem in found.problems.into_iter().chain(problems) {
            prompt.report(problem);
        }
        prompt.add_rules(&found.files);
        let Some(snapshot) = facts.snapshot() else { return Ok(()) };
        match Fragment::<Session>::new(Layer::Session, KEY, &snapshot) {
            Ok(fragment) => {
                prompt.add(fragment);
            }
            Err(error) => {
                prompt.report(Diagnostic { what: KEY.into(), why: error.to_string() });
            }
        }
        Ok(())
    }
}
