//! The one handle through which tools reach files and programs.

mod capture;
mod env;
mod error;
mod family;
mod glob;
mod local;
mod root;
mod search;
mod shell;
mod walk;
mod write;

use std::fmt::Debug;
use std::time::{Duration, SystemTime};

use agent_core::Cancel;
use agent_tools::Permit;
use async_trait::async_trait;
use sha2::{Digest, Sha256};

pub use capture::Captured;
pub use env::allowed_env;
pub use error::SandboxError;
pub use glob::Glob;
pub use local::LocalSandbox;

/// Where a session's files and programs live (requirement T9).
///
/// Every effect asks to see the permit of the call, so nothing reaches a file or a program unchecked. Paths are
/// relative to the workspace, or absolute inside it; what leads out is [`SandboxError::Outside`].
#[async_trait]
pub trait Sandbox: Debug + Send + Sync {
    /// Reads a regular file of at most `limit` bytes; never blocks on a pipe or a device.
    async fn read(&self, permit: &Permit, path: &str, limit: u64) -> Result<FileBytes, SandboxError>;

    /// Replaces or creates a file in one step, if it still is what the caller expects. Returns its real path.
    async fn write(&self, permit: &Permit, write: FileWrite) -> Result<String, SandboxError>;

    /// Lists files, in no promised order.
    async fn walk(&self, permit: &Permit, walk: Walk, cancel: &Cancel) -> Result<Walked, SandboxError>;

    /// Searches the text of files, in the order of their paths.
    async fn search(&self, permit: &Permit, search: Search, cancel: &Cancel) -> Result<Found, SandboxError>;

    /// Runs a shell command to its end, its timeout or its cancellation; nothing of it runs on afterwards.
    async fn run(&self, permit: &Permit, command: Shell, cancel: &Cancel) -> Result<Ran, SandboxError>;
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
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
#[derive(Debug, Clone, Default)]
#[expect(clippy::exhaustive_structs, reason = "a config struct: a literal with ..Default")]
pub struct Walk {
    /// The directory, or one file; empty for the whole workspace.
    pub start: String,
    /// Only files whose path from `start` fits.
    pub glob: Option<Glob>,
    /// What of the usually skipped is looked at too.
    pub skip: Skip,
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
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Walked {
    /// The files.
    pub files: Vec<WalkedFile>,
    /// Real path of where it began, `.` for the workspace.
    pub start: String,
}

/// A file of a walk.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
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
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Found {
    /// Matching lines with their context, up to the number asked for.
    pub lines: Vec<FoundLine>,
    /// Each file with a match and its number of matching lines, sorted by path.
    pub files: Vec<(String, u64)>,
    /// Files that were looked at.
    pub searched: u64,
    /// Files that are binary and were passed over.
    pub binary: u64,
}

/// A line of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundLine {
    /// The file.
    pub path: String,
    /// The 1-based line.
    pub number: u64,
    /// Its text without the line ending.
    pub text: String,
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

/// A command to run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "built by tools")]
pub struct Shell {
    /// What the shell runs.
    pub command: String,
    /// The directory it runs in; empty for the workspace.
    pub cwd: String,
    /// How long it may take.
    pub timeout: Duration,
}

/// A command that ran.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Ran {
    /// How it ended.
    pub end: End,
    /// What it printed, both streams as they came.
    pub output: Captured,
    /// How long it took.
    pub took: Duration,
    /// Processes it left behind, which were stopped; by their command lines.
    pub stopped: Vec<String>,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a tool must say each of these in words")]
pub enum End {
    /// By itself, with this code.
    Exit(i32),
    /// By a signal that was not ours.
    Signal(i32),
    /// Stopped at its timeout.
    TimedOut,
    /// Stopped because the call was cancelled.
    Cancelled,
}

impl Fingerprint {
    /// The fingerprint of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let hash = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        Self { hash, len: bytes.len() as u64 }
    }
}
