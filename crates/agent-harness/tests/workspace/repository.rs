//! A git repository made for one test, with fixed people and dates.

use std::path::PathBuf;
use std::process::{Command, Output};

/// A repository. Its tests need git.
pub(crate) struct Repository {
    folder: PathBuf,
}

impl Repository {
    /// `git init` in a folder, on branch `main`.
    pub(crate) fn init(folder: PathBuf) -> Self {
        std::fs::create_dir_all(&folder).unwrap();
        let repository = Self { folder };
        repository.git(&["init", "--quiet", "--initial-branch=main"]);
        for (name, value) in [("user.name", "Ada"), ("user.email", "ada@example.org"), ("core.abbrev", "7")] {
            repository.git(&["config", name, value]);
        }
        repository
    }

    /// Writes a file and commits everything.
    pub(crate) fn commit(&self, file: &str, subject: &str) {
        std::fs::write(self.folder.join(file), format!("{subject}\n")).unwrap();
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", subject]);
    }

    /// What git prints; it must succeed.
    #[track_caller]
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let output = self.try_git(arguments, b"");
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    pub(crate) fn try_git(&self, arguments: &[&str], input: &[u8]) -> Output {
        use std::io::Write as _;
        let mut command = Command::new("git");
        command.current_dir(&self.folder).args(arguments).env_clear();
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin").env("HOME", "/nowhere");
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_DATE"), "2026-11-30T12:00:00Z");
        }
        command.stdin(std::process::Stdio::piped());
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let mut child = command.spawn().expect("these tests make repositories: install git");
        child.stdin.take().unwrap().write_all(input).unwrap();
        child.wait_with_output().unwrap()
    }
}
