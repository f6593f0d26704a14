//! What can go wrong with memories, in words that say what to do next.

use std::io;
use std::path::PathBuf;

use crate::index::{INDEX_BYTES, INDEX_LINES, INDEX_READ};
use crate::notes_file::NOTES_BYTES;
use crate::{MemoryFault, NameError};

/// Why a memory could not be read or written. Nothing was changed, unless the words say so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The directory itself.
    #[error("the directory {path} cannot be opened: {cause}")]
    Open {
        /// The directory.
        path: PathBuf,
        /// What the system says.
        #[source]
        cause: io::Error,
    },
    /// A file in it.
    #[error("`{file}` cannot be {action}: {cause}")]
    Io {
        /// Its name in the directory.
        file: String,
        /// What was tried: `read`, `written`, `removed`, `locked`.
        action: &'static str,
        /// What the system says.
        #[source]
        cause: io::Error,
    },
    /// Another writer holds the lock.
    #[error(
        "another writer has been at work in {path} for some seconds. Nothing was changed; try again in a while, and when it stays like this look for a program that hangs"
    )]
    Busy {
        /// The directory.
        path: PathBuf,
    },
    /// Something that is no regular file stands where a file should be.
    #[error(
        "`{file}` is a {kind} and no regular file, so it is not opened; put a regular file in its place, or remove it"
    )]
    NotAFile {
        /// Its name in the directory.
        file: String,
        /// What it is.
        kind: &'static str,
    },
    /// A file that is too large to be read.
    #[error("`{file}` has more than {most} bytes, so it is not read; shorten it")]
    TooLarge {
        /// Its name in the directory.
        file: String,
        /// Most bytes of it.
        most: usize,
    },
    /// A file in another encoding.
    #[error("byte {at} of `{file}` is not UTF-8; save it as UTF-8")]
    NotUtf8 {
        /// Its name in the directory.
        file: String,
        /// The first such byte, counted from 0.
        at: usize,
    },
    /// More files than memories can be.
    #[error(
        "the directory holds more than {0} files, which are too many to look at; remove what is no memory"
    )]
    TooManyFiles(usize),
    /// No such memory.
    #[error("there is no memory `{name}`.{}", did_you_mean(.near))]
    Missing {
        /// What was asked for.
        name: String,
        /// Names that there are, the likeliest first.
        near: Vec<String>,
    },
    /// A memory of the name exists.
    #[error("there is a memory `{0}` already; change it, or choose another name")]
    Exists(String),
    /// It changed since it was read.
    #[error(
        "`{0}` was changed by somebody else meanwhile; read it again, and make the change on what it says now"
    )]
    Changed(String),
    /// What would be written is no memory.
    #[error("`{file}` is no memory: {fault}")]
    Fault {
        /// The file.
        file: String,
        /// Why.
        #[source]
        fault: MemoryFault,
    },
    /// A name that cannot be used.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The index has no room.
    #[error(
        "the index would have {lines} lines and {bytes} bytes, and may have {INDEX_LINES} and {INDEX_BYTES}, because every session reads it. Make room first: merge memories on one subject, shorten descriptions, or remove what no longer holds. Not changed for the longest: {}", .oldest.join(", ")
    )]
    IndexFull {
        /// Lines that it would have.
        lines: usize,
        /// Bytes that it would have.
        bytes: usize,
        /// Names of the memories whose lines stand last.
        oldest: Vec<String>,
    },
    /// Notes that are longer than a summary may be.
    #[error(
        "the session notes would have {0} bytes and may have {NOTES_BYTES}; shorten what is settled, and keep what the work needs next"
    )]
    LongNotes(usize),
    /// What runs beside a session keep of it is damaged.
    #[error(
        "`{file}` beside the session is damaged ({cause}); what it said is lost, and the next run writes it anew"
    )]
    Record {
        /// The file.
        file: &'static str,
        /// What is wrong with it.
        #[source]
        cause: serde_json::Error,
    },
    /// Refused by the edit itself, in its own words.
    #[error("{0}")]
    Refused(String),
}

impl MemoryError {
    pub(crate) fn io(file: &str, action: &'static str, cause: impl Into<io::Error>) -> Self {
        Self::Io { file: file.to_owned(), action, cause: cause.into() }
    }
}

fn did_you_mean(names: &[String]) -> String {
    match names {
        [] => " There are none yet.".to_owned(),
        names => format!(" Did you mean `{}`?", names.join("` or `")),
    }
}

// The index may be longer than what is shown of it, and not without end.
const _: () = assert!(INDEX_READ > INDEX_BYTES);
