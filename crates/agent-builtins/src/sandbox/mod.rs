//! The one handle through which tools reach files and programs.

pub(crate) mod capture;
mod env;
mod error;
mod family;
mod glob;
mod guardian;
mod ignores;
mod isolated;
mod job;
mod jobs;
mod local;
mod mark;
mod processes;
mod root;
mod search;
pub(crate) mod shell;
mod unique;
mod walk;
mod wall;
mod write;

use std::fmt::Debug;
use std::time::{Duration, SystemTime};

use agent_core::{Cancel, SessionId, hex};
use agent_tools::Permit;
use async_trait::async_trait;
use sha2::{Digest, Sha256};

pub use capture::Captured;
pub use env::allowed_env;
pub use error::SandboxError;
pub use glob::Glob;
pub use isolated::IsolatedSandbox;
pub use job::{JobCommand, JobOutput, JobState};
pub use local::LocalSandbox;

/// Where a session's files and programs live (requirement T9).
///
/// Every effect asks to see the permit of the call, so nothing reaches a file or a program unchecked: an
/// implementation first asks [`Permit::allows`] for the kind named at the method, before it shows or changes a file
/// [`Permit::covers_path`] for its real path, and answers a refusal with [`SandboxError::Permit`]. Paths are relative to the workspace, or absolute inside it; what leads out is
/// [`SandboxError::Outside`]. All records it takes and gives are plain data, so a sandbox in memory or on another
/// machine can be written outside this crate.
#[async_trait]
pub trait Sandbox: Debug + Send + Sync {
    /// Where a path leads: relative to the workspace, with every link followed; of what is not there yet, where it would
    /// lie. Permission rules are held against it, so that it needs no permit and shows nothing to the model.
    async fn real_path(&self, path: &str) -> Result<String, SandboxError>;

    /// Reads a regular file of at most `limit` bytes; never blocks on a pipe or a device. Needs `Access::Read`.
    async fn read(&self, permit: &Permit, path: &str, limit: u64) -> Result<FileBytes, SandboxError>;

    /// Replaces or creates a file in one step, if it still is what the caller expects. Returns its real path. Needs
    /// `Access::Edit`.
    async fn write(&self, permit: &Permit, write: FileWrite) -> Result<String, SandboxError>;

    /// Lists files, in no promised order. Needs `Access::Read`.
    async fn walk(&self, permit: &Permit, walk: Walk, cancel: &Cancel) -> Result<Walked, SandboxError>;

    /// Searches the text of files, in the order of their paths. Needs `Access::Read`.
    async fn search(&self, permit: &Permit, search: Search, cancel: &Cancel) -> Result<Found, SandboxError>;

    /// Runs a shell command to its end, its timeout or its cancellation; nothing that is known of it runs on
    /// afterwards. Needs
    /// `Access::Execute`.
    async fn run(
        &self,
        permit: &Permit,
        command: ShellCommand,
        cancel: &Cancel,
    ) -> Result<CommandOutput, SandboxError>;

    /// Starts a shell command that runs on behind the call, and returns the id of the job. It ends with the sandbox at the
    /// latest. Needs `Access::Execute`.
    ///
    /// Whoever has no background jobs leaves this and the next four as they are.
    async fn start_job(&self, _permit: &Permit, _command: JobCommand) -> Result<String, SandboxError> {
        Err(SandboxError::NoJobs)
    }

    /// What a job of the session printed from this byte on, or since it was last read, and how it is. Needs
    /// `Access::Read`.
    async fn read_job(
        &self,
        _permit: &Permit,
        _session: &SessionId,
        _job: &str,
        _offset: Option<u64>,
    ) -> Result<JobOutput, SandboxError> {
        Err(SandboxError::NoJobs)
    }

    /// Ends a job of the session with everything it started, and shows what it printed since it was last read. One that
    /// has ended stays as it is. Needs `Access::Session`: it takes back what the session itself began.
    async fn end_job(
        &self,
        _permit: &Permit,
        _session: &SessionId,
        _job: &str,
    ) -> Result<JobOutput, SandboxError> {
        Err(SandboxError::NoJobs)
    }

    /// Ends all jobs of a session that is over. No call of a model, so that it needs no permit.
    async fn end_jobs(&self, _session: &SessionId) {}

    /// The same at once and without a grace, for a session whose last handle is dropped: nobody can wait there.
    fn drop_jobs(&self, _session: &SessionId) {}
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "built by sandboxes")]
pub struct FileBytes {
    /// Its real path relative to the workspace: equal for every way to name the file.
    pub path: String,
    /// All of it.
    pub bytes: Vec<u8>,
}

/// A file to write.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "built by tools")]
pub struct FileWrite {
    /// Where.
    pub path: String,
    /// All of it.
    pub bytes: Vec<u8>,
    /// What must be there now; asked again just before the file is put in place.
    pub expect: Expect,
}

/// What a writer believes to be at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a writer has either seen a file or its absence")]
pub enum Expect {
    /// No file.
    Absent,
    /// The file with this content.
    Same(Fingerprint),
}

/// Content in brief: what decides whether a file changed, whatever its times say.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fingerprint {
    /// SHA-256, lower-case hex.
    pub hash: String,
    /// Bytes.
    pub len: u64,
}

/// Files to list.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "a config struct: a literal with ..Default")]
pub struct Walk {
    /// The directory, or one file; empty for the whole workspace.
    pub start: String,
    /// Only files whose path from `start` fits.
    pub glob: Option<Glob>,
    /// What of the usually skipped is looked at too.
    pub skip: Skip,
    /// Most entries, files and directories, that are looked at; [`Walked::more`] says when there were more. Default:
    /// a million.
    pub most: u64,
}

/// What a walk leaves out. Version control's own directory is always left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "each sandbox handles all three")]
pub enum Skip {
    /// Hidden files and what ignore files name.
    #[default]
    HiddenAndIgnored,
    /// What ignore files name.
    Ignored,
    /// Nothing.
    Nothing,
}

/// What a walk found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "built by sandboxes, with ..Default")]
pub struct Walked {
    /// The files.
    pub files: Vec<WalkedFile>,
    /// Entries that were looked at, whether they fit or not.
    pub entries: u64,
    /// Entries that could not be read or listed.
    pub unreadable: u64,
    /// Whether the walk stopped at its bound, so that there may be more files.
    pub more: bool,
}

/// A file of a walk.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "built by sandboxes")]
pub struct WalkedFile {
    /// Path relative to the workspace.
    pub path: String,
    /// Last change of its content, when the file system says.
    pub modified: Option<SystemTime>,
}

/// Text to look for.
#[derive(Debug, Clone, Default)]
#[expect(clippy::exhaustive_structs, reason = "a config struct: a literal with ..Default")]
pub struct Search {
    /// Where.
    pub walk: Walk,
    /// What: a regular expression over one line, or plain text.
    pub pattern: String,
    /// Whether the pattern is plain text.
    pub literal: bool,
    /// Whether case is the same.
    pub ignore_case: bool,
    /// Lines shown around each match.
    pub context: usize,
    /// Most matching lines that are kept; all are counted.
    pub keep: usize,
}

/// What a search found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "built by sandboxes, with ..Default")]
pub struct Found {
    /// Matching lines with their context, up to the number asked for.
    pub lines: Vec<FoundLine>,
    /// Each file with a match and its number of matching lines, sorted by path.
    pub files: Vec<(String, u64)>,
    /// Files that were searched to their end.
    pub searched: u64,
    /// Files that are binary and were passed over.
    pub binary: u64,
    /// Files that could not be read to their end, and directories that could not be listed.
    pub unreadable: u64,
    /// Files that the walk found, whether they were searched or not.
    pub listed: u64,
    /// Whether the walk stopped at its bound, so that there may be more files.
    pub more: bool,
}

/// A line of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "built by sandboxes")]
pub struct FoundLine {
    /// The file.
    pub path: String,
    /// The 1-based line.
    pub number: u64,
    /// Its text without the line ending; of a very long line only the beginning.
    pub text: String,
    /// Bytes of the line that are not in `text`.
    pub left_out: u64,
    /// Why it is here.
    pub role: Role,
}

/// Why a line is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a line is shown for one of these reasons")]
pub enum Role {
    /// It matches.
    Match,
    /// It stands before a match.
    Before,
    /// It stands after a match.
    After,
}

/// A shell command to run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "built by tools")]
pub struct ShellCommand {
    /// What the shell runs.
    pub command: String,
    /// The directory it runs in; empty for the workspace.
    pub cwd: String,
    /// How long it may take.
    pub timeout: Duration,
}

/// What came of a command.
#[derive(Debug, Clone)]
#[expect(clippy::exhaustive_structs, reason = "built by sandboxes")]
pub struct CommandOutput {
    /// How it ended.
    pub exit: ExitReason,
    /// What it printed, both streams as they came.
    pub printed: Captured,
    /// How long it took.
    pub took: Duration,
    /// Processes it left behind, which were stopped; by their command lines.
    pub stopped: Vec<String>,
    /// Processes of it that are known to run on, because nothing could stop them; by their command lines.
    pub unstopped: Vec<String>,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a tool must say each of these in words")]
pub enum ExitReason {
    /// By itself, with this code.
    Code(i32),
    /// By a signal that was not ours.
    Signal(i32),
    /// Stopped at its timeout.
    TimedOut,
    /// Stopped because the call was cancelled.
    Cancelled,
}

impl Default for Walk {
    fn default() -> Self {
        Self { start: String::new(), glob: None, skip: Skip::default(), most: 1_000_000 }
    }
}

impl Fingerprint {
    /// The fingerprint of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self { hash: hex(&Sha256::digest(bytes)), len: bytes.len() as u64 }
    }
}
