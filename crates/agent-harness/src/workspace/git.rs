//! Asking git: read-only, without a terminal, without programs that a repository names, within a deadline.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::time::timeout;

/// How long one question may take.
pub(super) const DEADLINE: Duration = Duration::from_secs(5);
/// Bytes of an answer that are read; a prompt takes far less.
pub(super) const ANSWER_BYTES: u64 = 64 * 1024;

/// How git is started.
#[derive(Debug, Clone)]
pub(super) struct Git {
    pub(super) program: PathBuf,
    pub(super) deadline: Duration,
}

/// What git answered.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    /// `None` when it was ended by a signal.
    pub(super) code: Option<i32>,
    pub(super) out: Vec<u8>,
    pub(super) err: Vec<u8>,
    /// Whether `out` is only the beginning.
    pub(super) is_cut: bool,
}

/// Git gave no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Silence {
    #[error("git cannot be started ({0}); install it, or leave the environment out")]
    Start(io::Error),
    #[error("git took longer than {} s and was stopped", .0.as_secs_f32())]
    Deadline(Duration),
    #[error("what git says cannot be read ({0})")]
    Read(#[from] io::Error),
}

impl Default for Git {
    fn default() -> Self {
        Self { program: "git".into(), deadline: DEADLINE }
    }
}

impl Git {
    /// Asks in `folder`. `settings` hold for this question and stand above every file of settings. When the future is
    /// dropped, git is killed.
    pub(super) async fn ask(
        &self,
        folder: &Path,
        settings: &[String],
        question: &[&str],
    ) -> Result<Answer, Silence> {
        let mut command = self.command(folder);
        for setting in SETTINGS.iter().copied().chain(settings.iter().map(String::as_str)) {
            command.args(["-c", setting]);
        }
        command.args(question);
        timeout(self.deadline, answer(command)).await.map_err(|_| Silence::Deadline(self.deadline))?
    }

    fn command(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(folder).args(["--no-optional-locks", "--no-pager"]);
        for name in REDIRECTIONS {
            command.env_remove(name);
        }
        command.envs(VARIABLES);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }
}

async fn answer(mut command: Command) -> Result<Answer, Silence> {
    let mut child = command.spawn().map_err(Silence::Start)?;
    let (out, err) = tokio::try_join!(read(child.stdout.take()), read(child.stderr.take()))?;
    let is_cut = out.len() as u64 == ANSWER_BYTES;
    if is_cut {
        child.start_kill()?;
    }
    let code = child.wait().await?.code();
    Ok(Answer { code, out, err, is_cut })
}

async fn read(pipe: Option<impl AsyncRead + Unpin>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        pipe.take(ANSWER_BYTES).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

/// Settings that name programs, and those that change how answers are written. A repository's own file of settings may
/// be anyone's; filters have names of their own and are turned off one by one.
const SETTINGS: [&str; 15] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.quotePath=false",
    "core.untrackedCache=false",
    "log.showSignature=false",
    "safe.bareRepository=explicit",
    "i18n.logOutputEncoding=UTF-8",
    "color.ui=false",
    "color.status=false",
    "column.ui=never",
    "column.status=never",
    "status.branch=false",
    "status.relativePaths=true",
    "status.showStash=false",
    "status.aheadBehind=false",
];

/// Nothing is asked of a person, nothing is written, nothing is fetched: not even objects that a partial clone lacks.
const VARIABLES: [(&str, &str); 9] = [
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", ""),
    ("SSH_ASKPASS", ""),
    ("GIT_PAGER", "cat"),
    ("PAGER", "cat"),
    ("GIT_NO_LAZY_FETCH", "1"),
    // The list of protocols that may be used, which stands above every setting; none has this name.
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("LC_ALL", "C"),
];

/// Variables that make git look at another repository than the folder's, as when the agent is started by a hook
/// (`git rev-parse --local-env-vars`), and some that make it start programs or write files.
const REDIRECTIONS: [&str; 24] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_COUNT",
    "GIT_OBJECT_DIRECTORY",
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_GRAFT_FILE",
    "GIT_INDEX_FILE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_REPLACE_REF_BASE",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_COMMON_DIR",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NAMESPACE",
    "GIT_LITERAL_PATHSPECS",
    "GIT_EXTERNAL_DIFF",
    "GIT_TRACE",
    "GIT_TRACE2",
    "GIT_TRACE2_EVENT",
    "GIT_TRACE2_PERF",
    "GIT_TRACE_SETUP",
];

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// A stand-in for git that does what `script` says; what `ask` makes of it.
    fn check(script: &str, deadline: Duration) -> (tempfile::TempDir, Result<Answer, Silence>) {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("stand-in");
        write(&program, &format!("#!/bin/sh\n{script}\n"));
        let git = Git { program, deadline };
        let answer = block(git.ask(folder.path(), &["filter.x.clean=".into()], &["status"]));
        (folder, answer)
    }

    #[expect(clippy::disallowed_methods, reason = "the program that the test starts")]
    fn write(program: &Path, script: &str) {
        std::fs::write(program, script).unwrap();
        std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn block<F: Future>(future: F) -> F::Output {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
    }

    #[test]
    fn what_it_is_started_with() {
        let script =
            r#"printf '%s\n' "$@"; printenv GIT_OPTIONAL_LOCKS GIT_ALLOW_PROTOCOL LC_ALL >&2; exit 3"#;
        let (_folder, answer) = check(script, DEADLINE);
        let answer = answer.unwrap();
        assert_eq!((answer.code, answer.is_cut), (Some(3), false));
        let out = String::from_utf8(answer.out).unwrap();
        assert!(out.starts_with("--no-optional-locks\n--no-pager\n-c\ncore.fsmonitor=false\n"), "{out}");
        assert!(out.ends_with("-c\nfilter.x.clean=\nstatus\n"), "{out}");
        assert_eq!(String::from_utf8(answer.err).unwrap(), "0\nnone\nC\n");
        let command = Git::default().command(Path::new("/"));
        let removed = command.as_std().get_envs().filter(|(_, value)| value.is_none());
        assert!(removed.map(|(name, _)| name).eq(std::collections::BTreeSet::from(REDIRECTIONS)));
    }

    #[test]
    fn too_slow_is_stopped() {
        let script = "echo $$ > pid; exec sleep 600";
        let (folder, answer) = check(script, Duration::from_millis(300));
        assert!(matches!(answer, Err(Silence::Deadline(_))), "{answer:?}");
        let pid = folder.path().join("pid");
        assert!(pid.exists(), "it had begun");
        #[expect(clippy::disallowed_methods, reason = "what the test's program wrote")]
        let pid = std::fs::read_to_string(pid).unwrap();
        let is_alive = || {
            let state =
                std::process::Command::new("ps").args(["-o", "stat=", "-p", pid.trim()]).output().unwrap();
            !matches!(state.stdout.first(), None | Some(b'Z'))
        };
        let gone = (0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            !is_alive()
        });
        assert!(gone, "process {} lives on", pid.trim());
    }

    #[test]
    fn an_endless_answer_is_cut() {
        let (_folder, answer) = check("exec yes ' M file'", DEADLINE);
        let answer = answer.unwrap();
        assert!(answer.is_cut);
        assert_eq!(answer.out.len() as u64, ANSWER_BYTES);
    }

    #[test]
    fn no_git_is_told() {
        let git = Git { program: "/nowhere/git".into(), deadline: DEADLINE };
        let silence = block(git.ask(Path::new("/"), &[], &["status"])).unwrap_err();
        insta::assert_snapshot!(silence, @"git cannot be started (No such file or directory (os error 2)); install it, or leave the environment out");
    }
}
