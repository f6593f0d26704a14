//! The prompt of a real folder: rule files and repositories on disk.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    reason = "the tests make the folders that a workspace looks at, and say so when git is missing"
)]

mod environment;
mod hostile;
mod once;
mod repository;
mod rules;

use std::path::{Path, PathBuf};

use agent_harness::{PromptSource as _, SourceError, Workspace};
use agent_prompt::{Assembled, Prompt};
use tempfile::TempDir;

/// A folder for one test, with `work` for the workspace, `user` and `managed` beside it.
pub(crate) struct Place {
    dir: TempDir,
}

impl Place {
    /// `files`: path and text.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let place = Self { dir: tempfile::tempdir().unwrap() };
        std::fs::create_dir(place.path("work")).unwrap();
        for (path, text) in files {
            place.write(path, text.as_bytes());
        }
        place
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    #[cfg(unix)]
    pub(crate) fn link(&self, path: &str, target: impl AsRef<Path>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
    }

    /// The workspace at `folder`, with the folders beside it.
    pub(crate) fn workspace(&self, folder: &str) -> Workspace {
        Workspace::new(self.path(folder)).user_folder(self.path("user")).managed_folder(self.path("managed"))
    }

    /// A text without the place of this test.
    pub(crate) fn placeless(&self, text: &str) -> String {
        let real = self.dir.path().canonicalize().unwrap();
        text.replace(&real.display().to_string(), "TMP")
            .replace(&self.dir.path().display().to_string(), "TMP")
    }

    /// What is sent of a workspace, block by block, and what the user is told.
    pub(crate) fn show(&self, workspace: &Workspace) -> String {
        let assembled = match assemble(workspace) {
            Ok(assembled) => assembled,
            Err(error) => return self.placeless(&format!("error: {error}")),
        };
        let blocks = assembled.blocks().iter().map(|block| format!("== {}\n{}\n", block.key, block.text));
        let told = assembled.diagnostics().iter().map(|told| format!("!! {}: {}\n", told.what, told.why));
        self.placeless(&blocks.chain(told).collect::<String>())
    }
}

pub(crate) fn assemble(workspace: &Workspace) -> Result<Assembled, SourceError> {
    let mut prompt = Prompt::default();
    block(workspace.add_to(&mut prompt))?;
    Ok(prompt.assemble())
}

/// Runs a future on a runtime with real time, which processes need.
pub(crate) fn block<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}
