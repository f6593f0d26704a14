//! What can go wrong in a verb; each message says what to do next.

use std::io;
use std::path::PathBuf;

use crate::verb;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("{problem}\n{}", verb::usage())]
    Usage { problem: String },

    #[error("`{command}` failed ({status})\nrepeat it with: {command}")]
    Command { command: String, status: String },

    #[error(
        "`{command}` could not be started: {source}\ninstall its program (the Rust toolchain for cargo), or put it on the PATH"
    )]
    Start { command: String, source: io::Error },

    #[error(
        "`{command}` printed JSON of an unknown shape: {source}\nadapt xtask/src/workspace.rs to this cargo"
    )]
    Metadata { command: String, source: serde_json::Error },

    #[error("{path} could not be written: {source}\ncheck its permissions, and that the disk has room", path = path.display())]
    Write { path: PathBuf, source: io::Error },

    #[error("{problem}\n{next}")]
    Gate { problem: String, next: &'static str },

    #[error("{path} could not be read: {source}\ncheck its permissions, or delete it if it does not belong here", path = path.display())]
    Read { path: PathBuf, source: io::Error },

    #[error("{count} finding(s), listed above\nmend them, then repeat with: cargo xtask {verb}")]
    Findings { verb: &'static str, count: usize },

    #[error("the run was green but no test ran\nsee which targets were selected with: {command}")]
    NoTests { command: String },

    /// Told on standard output by `ci` itself, so that its summary stays the last line.
    #[error("a check failed\nread why above, then repeat it alone")]
    Ci,

    #[error("output could not be written: {0}\nrun again with an open standard output")]
    Output(#[from] io::Error),
}

impl Error {
    pub(crate) fn usage(problem: &str) -> Self {
        Error::Usage { problem: problem.to_owned() }
    }
}
