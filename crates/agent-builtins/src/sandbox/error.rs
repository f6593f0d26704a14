//! How an effect fails, in words that teach the model the next step.

use std::io;
use std::time::Duration;

use agent_tools::ToolError;

/// An effect that was refused or went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The permit of the call does not cover an effect of this kind.
    #[error(transparent)]
    Permit(ToolError),
    /// The path leads out of the workspace, by itself or through a symbolic link.
    #[error(
        "`{path}` leads outside the workspace, so it was not touched. Use a path inside the workspace, relative to its root; symbolic links that lead out, or that are absolute, are not followed."
    )]
    Outside {
        /// The path as given.
        path: String,
    },
    /// Nothing is there.
    #[error("`{path}` does not exist.")]
    NotFound {
        /// The path as given.
        path: String,
    },
    /// Nothing is there, and what may have been meant.
    #[error("`{path}` does not exist. {hint}")]
    NoSuchFile {
        /// The path as given.
        path: String,
        /// What to do instead.
        hint: String,
    },
    /// A symbolic link to nothing.
    #[error(
        "`{path}` is a symbolic link to something that does not exist, so it was not touched. Remove or mend the link first."
    )]
    Dangling {
        /// The path as given.
        path: String,
    },
    /// A directory, pipe, device or socket where a regular file is needed.
    #[error("`{path}` is a {kind}, not a regular file. {hint}")]
    NotAFile {
        /// The path as given.
        path: String,
        /// What it is.
        kind: &'static str,
        /// What to do instead.
        hint: &'static str,
    },
    /// A file where a directory is needed.
    #[error("`{path}` is not a directory. Give a directory of the workspace, or leave the field out.")]
    NotADirectory {
        /// The path as given.
        path: String,
    },
    /// More bytes than the caller can take.
    #[error(
        "`{path}` has {len} bytes, more than the {limit} this tool takes. Look at parts of it with bash, for example `sed -n 1,200p`, or search it with grep."
    )]
    TooLarge {
        /// The path as given.
        path: String,
        /// Its size in bytes.
        len: u64,
        /// The most allowed.
        limit: u64,
    },
    /// The file is not what the writer saw.
    #[error(
        "`{path}` changed since you read it; nothing was written. Read it again with read_file, then repeat the change on what is there now."
    )]
    Changed {
        /// The path as given.
        path: String,
    },
    /// A file came into being where there was none.
    #[error(
        "`{path}` was created by someone else meanwhile; nothing was written. Read it with read_file, then decide."
    )]
    Appeared {
        /// The path as given.
        path: String,
    },
    /// The file's mode forbids writing.
    #[error(
        "`{path}` is read-only, so it was not changed. If the user wants it changed, make it writable first with bash: `chmod u+w`."
    )]
    ReadOnly {
        /// The path as given.
        path: String,
    },
    /// A glob that cannot be used.
    #[error(
        "`{pattern}` is not a glob: {why}. Use `*` within a name, `**/` for any directories, `{{a,b}}` for alternatives and `[x]` for a literal character x."
    )]
    Glob {
        /// The glob as given.
        pattern: String,
        /// What is wrong with it.
        why: String,
    },
    /// A regular expression that cannot be used.
    #[error(
        "`{pattern}` is not a regular expression: {cause}. Escape special characters with a backslash, or set literal to true to search for the text as it stands."
    )]
    Pattern {
        /// The expression as given.
        pattern: String,
        /// What is wrong with it.
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The operating system refused.
    #[error(
        "`{path}` could not be {action}: {source}. Check the path and its permissions with bash: `ls -la`."
    )]
    Io {
        /// The path as given.
        path: String,
        /// What was to be done.
        action: &'static str,
        /// The system's word.
        source: io::Error,
    },
    /// No shell could be started.
    #[error(
        "The command could not be started: {0}. Nothing ran; try once more, then tell the user that commands cannot be run here."
    )]
    Start(#[source] io::Error),
    /// A command that is longer than the system takes.
    #[error(
        "The command has {len} bytes, more than can be given to bash at once; nothing ran. Write it to a file with write_file and run that file, for example `bash FILE`; put long data into files of its own."
    )]
    LongCommand {
        /// Its size in bytes.
        len: usize,
    },
    /// A sandbox that runs no background jobs.
    #[error(
        "Commands cannot run in the background here; nothing ran. Run the command without background, with what it needs started and stopped in the same command."
    )]
    NoJobs,
    /// A job that the session does not have.
    #[error(
        "This session has no background job `{job}`. Its jobs: {jobs}. Start one with bash and background; one that began before the program was started again has ended."
    )]
    NoSuchJob {
        /// The id as given.
        job: String,
        /// The session's jobs, in words.
        jobs: String,
    },
    /// As many jobs as may run at once.
    #[error(
        "{most} background jobs are running, which is the most; nothing ran. End one with bash_kill first: {jobs}."
    )]
    ManyJobs {
        /// The most there may be.
        most: usize,
        /// The session's jobs, in words.
        jobs: String,
    },
    /// Commands cannot be isolated.
    #[error(
        "Commands cannot be isolated: {why}. Nothing was run, and nothing runs unisolated in its place: mend this, or choose the local sandbox, which confines files only."
    )]
    Isolation {
        /// What is missing, and what to do about it.
        why: String,
    },
    /// A helper thread died.
    #[error("The work was lost: {0}. This is a fault of the program that runs the tools; try another way.")]
    Worker(#[source] tokio::task::JoinError),
    /// The call was cancelled.
    #[error("The call was cancelled.")]
    Cancelled,
    /// A timeout that the sandbox does not offer.
    #[error("A timeout of {} ms is not possible; ask for 1 to {} ms.", .asked.as_millis(), .most.as_millis())]
    Timeout {
        /// What was asked for.
        asked: Duration,
        /// The most there is.
        most: Duration,
    },
}

impl SandboxError {
    pub(super) fn io(path: &str, action: &'static str, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), action, source }
    }
}

impl From<SandboxError> for ToolError {
    fn from(error: SandboxError) -> Self {
        if matches!(error, SandboxError::Cancelled) {
            return Self::Cancelled;
        }
        if let SandboxError::Permit(refusal) = error {
            return refusal;
        }
        Self::failed(error.to_string())
    }
}
