//! What bubblewrap is told to keep a command apart from the rest of the machine.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::SandboxError;
use super::env::PATH;

/// How commands are isolated.
#[derive(Debug, Clone)]
pub(crate) struct Wall {
    program: PathBuf,
    workspace: PathBuf,
    /// What commands can look at: the system's own folders, and those that the user adds.
    pub(super) readable: Vec<PathBuf>,
    pub(super) network: bool,
    shell: &'static str,
}

impl Wall {
    /// Looks for bubblewrap and tries it: one that is installed and may not make a sandbox is found out here, and not by
    /// the first command.
    pub(super) fn find(workspace: &Path, search: Option<&str>) -> Result<Self, SandboxError> {
        let program = lookup(search.unwrap_or(PATH.1), workspace).ok_or_else(|| isolation(MISSING))?;
        let readable = SYSTEM.iter().map(PathBuf::from).filter(|folder| folder.exists()).collect();
        let mut wall =
            Self { program, workspace: workspace.to_owned(), readable, network: false, shell: "bash" };
        let version = wall.ask(["--version".into()])?;
        let tried = wall.try_out()?;
        if !tried.status.success() {
            wall.shell = "/bin/sh";
            let plain = wall.try_out()?;
            if !plain.status.success() {
                return Err(isolation(&format!(
                    "`bwrap` ({}) is installed and could not make a sandbox: {}. On many systems unprivileged user namespaces must be allowed first; in a container, it must be started with that right",
                    said(&version.stdout),
                    said(&plain.stderr)
                )));
            }
        }
        Ok(wall)
    }

    /// Whether the program is still there: what comes to be it only at the end could not say that it is not.
    pub(super) fn check(&self) -> io::Result<()> {
        if self.program.is_file() { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    pub(super) fn program(&self) -> OsString {
        self.program.clone().into()
    }

    /// All that comes before the shell's own `-c` and command.
    pub(super) fn arguments(&self, cwd: &Path) -> Vec<OsString> {
        let mut all: Vec<OsString> = ALWAYS.iter().map(OsString::from).collect();
        if self.network {
            all.push("--share-net".into());
        }
        // First, because a readable folder or the workspace may lie in one of them.
        all.extend(PRIVATE.iter().map(OsString::from));
        for folder in &self.readable {
            all.extend(["--ro-bind".as_ref(), folder.as_os_str(), folder.as_os_str()].map(OsStr::to_owned));
        }
        // Of a system whose name server is told at run time, the file in /etc is a link to here.
        if self.network {
            all.extend(["--ro-bind-try", RESOLVER, RESOLVER].map(OsString::from));
        }
        // Last, because it may lie in a folder that can only be read.
        let workspace = self.workspace.as_os_str();
        all.extend(["--bind".as_ref(), workspace, workspace].map(OsStr::to_owned));
        all.extend(["--chdir".as_ref(), cwd.as_os_str(), "--".as_ref()].map(OsStr::to_owned));
        all.push(self.shell.into());
        all
    }

    fn try_out(&self) -> Result<Output, SandboxError> {
        self.ask(self.arguments(&self.workspace).into_iter().chain(["-c".into(), "true".into()]))
    }

    fn ask(&self, arguments: impl IntoIterator<Item = OsString>) -> Result<Output, SandboxError> {
        let mut command = Command::new(&self.program);
        command.args(arguments).env_clear().env(PATH.0, PATH.1).stdin(Stdio::null());
        command.output().map_err(|error| {
            isolation(&format!("`{}` could not be started: {error}", self.program.display()))
        })
    }
}

/// The first `bwrap` of a search path. Folders that are named relatively, or that lie in the workspace, are passed over:
/// what a model can write must not be what isolates it.
fn lookup(search: &str, workspace: &Path) -> Option<PathBuf> {
    let all = std::env::split_paths(search).filter(|folder| folder.is_absolute());
    let real = all.map(|folder| folder.join("bwrap")).filter_map(|program| program.canonicalize().ok());
    real.filter(|program| !program.starts_with(workspace)).find(|program| program.is_file())
}

fn said(bytes: &[u8]) -> String {
    let words = crate::visible::visible(bytes).text;
    let line = words.trim().lines().next().unwrap_or_default();
    if line.is_empty() { "it said nothing".to_owned() } else { line.to_owned() }
}

fn isolation(why: &str) -> SandboxError {
    SandboxError::Isolation { why: why.to_owned() }
}

const MISSING: &str =
    "there is no `bwrap` in PATH; install bubblewrap, the package has that name on most Linux systems";
const ALWAYS: [&str; 5] = ["--die-with-parent", "--new-session", "--unshare-all", "--cap-drop", "ALL"];
/// The system's programs and settings.
const SYSTEM: [&str; 10] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt", "/nix/store", "/gnu/store"];
const RESOLVER: &str = "/run/systemd/resolve";
/// What each command has for itself. Its home is a folder that goes with it, because the user's own is not there.
const PRIVATE: [&str; 12] = [
    "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--setenv", "HOME", "/tmp", "--setenv", "TMPDIR",
    "/tmp",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn wall(network: bool, readable: &[&str]) -> Wall {
        Wall {
            program: "/usr/bin/bwrap".into(),
            workspace: "/srv/work".into(),
            readable: readable.iter().map(PathBuf::from).collect(),
            network,
            shell: "bash",
        }
    }

    #[test]
    fn what_bubblewrap_is_told() {
        let check = |wall: &Wall, cwd: &str| {
            let all = wall.arguments(Path::new(cwd));
            all.iter().map(|one| one.to_str().unwrap()).collect::<Vec<_>>().join(" ").replace(" --", "\n--")
        };
        insta::assert_snapshot!(check(&wall(false, &["/usr", "/etc"]), "/srv/work/src"), @"
        --die-with-parent
        --new-session
        --unshare-all
        --cap-drop ALL
        --proc /proc
        --dev /dev
        --tmpfs /tmp
        --setenv HOME /tmp
        --setenv TMPDIR /tmp
        --ro-bind /usr /usr
        --ro-bind /etc /etc
        --bind /srv/work /srv/work
        --chdir /srv/work/src
        -- bash
        ");
        insta::assert_snapshot!(check(&wall(true, &["/usr", "/srv/toolchain"]), "/srv/work"), @"
        --die-with-parent
        --new-session
        --unshare-all
        --cap-drop ALL
        --share-net
        --proc /proc
        --dev /dev
        --tmpfs /tmp
        --setenv HOME /tmp
        --setenv TMPDIR /tmp
        --ro-bind /usr /usr
        --ro-bind /srv/toolchain /srv/toolchain
        --ro-bind-try /run/systemd/resolve /run/systemd/resolve
        --bind /srv/work /srv/work
        --chdir /srv/work
        -- bash
        ");
    }

    #[test]
    fn a_program_that_the_model_could_have_written_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        for folder in ["ws/bin", "far"] {
            std::fs::DirBuilder::new().recursive(true).create(base.join(folder)).unwrap();
            std::fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(base.join(folder).join("bwrap"))
                .unwrap();
        }
        let (workspace, within, far) = (base.join("ws"), base.join("ws/bin"), base.join("far"));
        std::os::unix::fs::symlink(&within, base.join("link")).unwrap();
        let check = |folders: &[&Path], found: Option<&Path>| {
            let search = std::env::join_paths(folders).unwrap();
            assert_eq!(lookup(search.to_str().unwrap(), &workspace).as_deref(), found);
        };
        let bwrap = far.join("bwrap");
        check(&[&far], Some(&bwrap));
        check(&[&within, &far], Some(&bwrap));
        check(&[&base.join("link")], None);
        check(&[Path::new("."), Path::new("bin"), &base], None);
    }
}
