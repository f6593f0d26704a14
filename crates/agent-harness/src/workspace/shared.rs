//! One look at the environment for the sessions that begin in a process, until it is invalidated.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_prompt::Memo;

use super::Environment;

/// What was seen, for whoever begins next. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Shared(Arc<Mutex<Memo<Environment>>>);

impl Shared {
    pub(super) fn seen(&self) -> Option<Environment> {
        self.memo().get().cloned()
    }

    /// Of two who looked at once, what the first one saw counts for both.
    pub(super) fn keep(&self, environment: Environment) -> Environment {
        self.memo().fill(environment).clone()
    }

    pub(super) fn invalidate(&self) {
        self.memo().invalidate();
    }

    fn memo(&self) -> MutexGuard<'_, Memo<Environment>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(unix)]
#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test stands in for git and counts how often it is asked")]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use agent_prompt::Prompt;

    use super::super::Workspace;
    use super::super::git::{DEADLINE, Git};
    use crate::PromptSource as _;

    /// A folder whose git says the branch that is written down, and notes each look.
    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            let place = Self(tempfile::tempdir().unwrap());
            std::fs::create_dir(place.path().join(".git")).unwrap();
            let script = "#!/bin/sh\ncase \"$*\" in\n*--is-inside-work-tree*) echo look >> looks; echo true ;;\n*symbolic-ref*) cat branch ;;\n*get-regexp*|*--verify*) exit 1 ;;\nesac\n";
            let program = place.path().join("stand-in");
            std::fs::write(&program, script).unwrap();
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
            place.checkout("one");
            place
        }

        fn path(&self) -> &Path {
            self.0.path()
        }

        fn checkout(&self, branch: &str) {
            std::fs::write(self.path().join("branch"), format!("{branch}\n")).unwrap();
        }

        fn looks(&self) -> usize {
            std::fs::read_to_string(self.path().join("looks")).map_or(0, |looks| looks.lines().count())
        }

        fn workspace(&self) -> Workspace {
            let git = Git { program: self.path().join("stand-in"), deadline: DEADLINE };
            Workspace { git: Some(git), ..Workspace::new(self.path()) }
        }
    }

    /// The branch that a session which begins is told, and how often git was asked by then.
    async fn begin(place: &Place, workspace: &Workspace) -> (String, usize) {
        let mut prompt = Prompt::default();
        workspace.add_to(&mut prompt).await.unwrap();
        let assembled = prompt.assemble();
        let branch = assembled.blocks()[0].text.as_str().split("Branch: ").nth(1).unwrap();
        (branch.lines().next().unwrap().to_owned(), place.looks())
    }

    fn block<F: Future>(future: F) -> F::Output {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
    }

    #[test]
    fn git_is_asked_once_until_the_look_is_invalidated() {
        let check = |share: bool, expect: [(&str, usize); 4]| {
            block(async {
                let place = Place::new();
                let workspace = if share { place.workspace().share_environment() } else { place.workspace() };
                let mut told = vec![begin(&place, &workspace).await];
                place.checkout("two");
                told.push(begin(&place, &workspace).await);
                workspace.clone().invalidate();
                told.push(begin(&place, &workspace).await);
                told.push(begin(&place, &workspace).await);
                let told: Vec<_> = told.iter().map(|(branch, looks)| (branch.as_str(), *looks)).collect();
                assert_eq!(told, expect, "shared: {share}");
                workspace.environment().await.unwrap();
                assert_eq!(place.looks(), expect[3].1 + 1, "who asks by hand is answered anew");
            });
        };
        check(false, [("one", 1), ("two", 2), ("two", 3), ("two", 4)]);
        check(true, [("one", 1), ("one", 1), ("two", 2), ("two", 2)]);
    }
}
