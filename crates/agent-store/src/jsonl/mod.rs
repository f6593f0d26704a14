//! A session as JSON Lines: out of any store and into any other (requirement D7).

mod base64;
mod found;
mod read;
mod write;

use std::fmt;

use agent_core::{Repair, SessionId};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::StoreError;

pub use read::import;
pub use write::export;

/// The version of the format; a file of a newer one is refused. Version 1 had no numbers of commits and inputs, no usage, no
/// rounds and no used inputs, and broke lines where a model had.
const VERSION: u64 = 2;

/// A session could not be written out or read in. Nothing was created then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JsonlError {
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The lines cannot be written or read.
    #[error("the lines cannot be written or read: {0}")]
    Io(#[from] std::io::Error),
    /// The file was written by a newer release.
    #[error("the file has version {found}, this program reads up to {VERSION}; use the newer program")]
    Newer {
        /// The version of the file.
        found: u64,
    },
    /// Nothing of a session is in the file.
    #[error(
        "line 1 is not the head of an exported session, and no entry follows; give a file that `export` wrote"
    )]
    NoSession,
    /// The head is missing, so that nothing says what the session is called.
    #[error("the head of the file cannot be read, so the session has no name; give it one")]
    NoName,
    /// The data cannot be written as JSON.
    #[error("the session cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// Something that was not carried over, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "returned to callers, who show it")]
pub struct LeftOut {
    /// What, for example `entry 4` or `line 7`.
    pub what: String,
    /// Why, and what stands in its place.
    pub why: String,
}

/// A session that was read in.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Imported {
    /// Its name.
    pub session: SessionId,
    /// How many entries it has.
    pub entries: usize,
    /// What the file does not hold, or what could not be read of it.
    pub left_out: Vec<LeftOut>,
    /// What is mended whenever it is loaded, so that calls and results pair. The entries are the bytes that were given.
    pub repairs: Vec<Repair>,
}

/// One line.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Line {
    kind: Kind,
    /// The version, in the head.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    /// How many commits the session has, in the head.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revision: Option<u64>,
    /// The number of the last input there was, in the head.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_input: Option<u64>,
    /// Position of an entry or a journal record, number of an event or an input, turn of a round, revision of usage; how
    /// many lines there are before the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    n: Option<u64>,
    /// The address of a blob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
    /// The bytes of a blob, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    /// The thing itself, as the bytes that are stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<Box<RawValue>>,
    /// The same as a text in its place, where the bytes have line breaks between their values: models write such JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

/// What a line holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Session,
    Entry,
    Blob,
    Checkpoint,
    Terminal,
    Journal,
    Input,
    /// The key of an input that a commit has used.
    Used,
    Usage,
    Round,
    Event,
    End,
    /// Of a later release.
    #[default]
    #[serde(other)]
    Unknown,
}

impl LeftOut {
    fn new(what: impl Into<String>, why: impl fmt::Display) -> Self {
        Self { what: what.into(), why: why.to_string() }
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.why)
    }
}
