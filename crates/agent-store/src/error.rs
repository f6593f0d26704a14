//! Why a store did not do what it was asked.

use std::fmt;
use std::path::PathBuf;

use agent_core::{BlobHash, Revision, SessionId};

/// Why a store did not do what it was asked. Nothing of the refused call was written (requirement D8).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another worker holds the session.
    #[error("session {session} is in use{}; end that run, or begin another session", by(*pid))]
    Busy {
        /// The session.
        session: SessionId,
        /// The process that holds it, where known.
        pid: Option<u32>,
    },
    /// The commit builds on a revision that is not the newest.
    #[error("session {session} is at revision {}, the commit builds on {}; load it again and decide anew", found.0, expected.0)]
    Stale {
        /// The session.
        session: SessionId,
        /// What the commit builds on.
        expected: Revision,
        /// What is stored.
        found: Revision,
    },
    /// Another worker took the session since.
    #[error(
        "the lease of session {session} (epoch {held}) was lost, the newest is {newest}; stop this run, another one has the session"
    )]
    LeaseLost {
        /// The session.
        session: SessionId,
        /// The epoch of the lease.
        held: u64,
        /// The epoch of the newest lease.
        newest: u64,
    },
    /// The lease is for one session and the data for another.
    #[error(
        "the lease is for session {lease}, the data for {given}; write to each session under its own lease"
    )]
    OtherSession {
        /// The session of the lease.
        lease: SessionId,
        /// The session of the data.
        given: SessionId,
    },
    /// There is no such session.
    #[error("there is no session {0}; create it first, or list the sessions for its right name")]
    Missing(SessionId),
    /// There is such a session already.
    #[error("session {0} exists already; load it to go on with it, or choose another name")]
    Exists(SessionId),
    /// A fork at an entry that a session does not have.
    #[error(
        "session {session} has {head} entries, so it has no beginning of {entries}; the step at work has no entry before it is complete"
    )]
    NoEntry {
        /// The session.
        session: SessionId,
        /// How many entries it has.
        head: u64,
        /// How many were asked for.
        entries: u64,
    },
    /// A durable event does not follow the stored ones.
    #[error(
        "the next event of session {session} has number {expected}, not {found}; number events from the loaded last_seq, without a gap"
    )]
    EventGap {
        /// The session.
        session: SessionId,
        /// The next number.
        expected: u64,
        /// The number given.
        found: u64,
    },
    /// A delta, or an event without a number.
    #[error(
        "a live event of session {0} cannot be stored; number the durable ones and only publish the others"
    )]
    LiveEvent(SessionId),
    /// A boundary while a response waits for its results.
    #[error(
        "session {0} has a journaled response, so no boundary can be written; commit its step first, then compact"
    )]
    Pending(SessionId),
    /// Something said to a session without an open turn, where nothing would hear it.
    #[error("session {0} has no open turn to say this to; send it as a message")]
    NoTurn(SessionId),
    /// A second input of one key.
    #[error("session {session} was told of {key} before; what was told first stands")]
    Repeated {
        /// The session.
        session: SessionId,
        /// What the inputs share, for example the request that both reply to.
        key: String,
    },
    /// A commit used an input that is not in the inbox.
    #[error("input {input} of session {session} was used before, or never was; load the session again")]
    NoInput {
        /// The session.
        session: SessionId,
        /// The input's number.
        input: u64,
    },
    /// A row of a session cannot be read.
    #[error("{row} of session {session} is damaged: {cause}; {}", way_on(session, *row))]
    Corrupt {
        /// The session.
        session: SessionId,
        /// Which row.
        row: Row,
        /// What is wrong with it.
        #[source]
        cause: Damage,
    },
    /// The bytes of a blob do not have its hash.
    #[error("the bytes stored as {0} are not the ones that were put there; run again what made them")]
    CorruptBlob(BlobHash),
    /// The data cannot be written as JSON.
    #[error("the data for session {session} cannot be written as JSON: {cause}")]
    Encode {
        /// The session.
        session: SessionId,
        /// What the writer said.
        #[source]
        cause: serde_json::Error,
    },
    /// The store was written by a newer release.
    #[error("the store has format {found}, this program knows up to {known}; use the newer program")]
    NewerFormat {
        /// The format of the store.
        found: u64,
        /// The newest format known here.
        known: u64,
    },
    /// The store was set up by a program with other migrations under the same numbers.
    #[error(
        "step {0} of the store's format is not the one this program knows; use the program that made the store, or another directory"
    )]
    ForeignFormat(u64),
    /// SQLite is too old to be trusted with the data.
    #[error("SQLite {found} can damage a database that several processes use; build with {needed} or newer")]
    OldSqlite {
        /// The version in use.
        found: &'static str,
        /// The first version that is good.
        needed: &'static str,
    },
    /// The directory cannot hold a database that several processes use.
    #[error(
        "{} cannot be shared between processes (journal mode {mode}, not wal); put the store on a local disk", path.display()
    )]
    NoWal {
        /// The database.
        path: PathBuf,
        /// The journal mode it has.
        mode: String,
    },
    /// There is no room left.
    #[error("the disk, or the room given to the store, is full; make room and try again: {cause}")]
    DiskFull {
        /// What the database said.
        #[source]
        cause: Cause,
    },
    /// The disk did not read or write what it was asked to. Nothing of the call is seen afterwards; if the process dies
    /// before its next write, the next one may find the call done, as it may one that got no answer.
    #[error("the disk failed to read or write; check it, then try again: {cause}")]
    DiskFailed {
        /// What the database said.
        #[source]
        cause: Cause,
    },
    /// Another process held the database for too long.
    #[error("another process holds the database; try again when it is done: {cause}")]
    DatabaseBusy {
        /// What the database said.
        #[source]
        cause: Cause,
    },
    /// The database file is damaged, or is no database.
    #[error("the database file is damaged or is no database; restore a copy of it: {cause}")]
    Damaged {
        /// What the database said.
        #[source]
        cause: Cause,
    },
    /// The database failed otherwise.
    #[error("the database failed: {cause}")]
    Database {
        /// What the database said.
        #[source]
        cause: Cause,
    },
    /// A file or directory of the store cannot be used.
    #[error("{} cannot be used: {cause}; check that the directory exists and belongs to you", path.display())]
    Io {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: std::io::Error,
    },
    /// The store's own thread is gone.
    #[error("the store has stopped; open it again")]
    Closed,
}

/// What a database said, of whatever kind the database is.
pub(crate) type Cause = Box<dyn std::error::Error + Send + Sync>;

/// A row of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Row {
    /// What was fixed at its beginning.
    Meta,
    /// An entry, by position.
    Entry(u64),
    /// The newest checkpoint.
    Checkpoint,
    /// A journal record, by position.
    Journal(u64),
    /// An event, by number.
    Event(u64),
    /// The usage of a commit, by the revision it led to.
    Usage(u64),
    /// What was said to it, by number.
    Input(u64),
    /// What was said of a turn, by its number.
    Round(u64),
    /// What the session list shows.
    Summary,
}

/// What is wrong with a row.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// Not UTF-8.
    #[error("it is not UTF-8 ({0})")]
    Utf8(#[from] std::string::FromUtf8Error),
    /// Not JSON, or not of the right shape.
    #[error("it is not readable ({0})")]
    Json(#[from] serde_json::Error),
    /// It should be there and is not.
    #[error("it is missing")]
    Missing,
    /// It stands behind the session's end.
    #[error("it should not be there")]
    Stray,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Meta => f.write_str("the description"),
            Self::Entry(n) => write!(f, "entry {n}"),
            Self::Input(n) => write!(f, "input {n}"),
            Self::Round(n) => write!(f, "what was said of turn {n}"),
            Self::Checkpoint => f.write_str("the checkpoint"),
            Self::Journal(n) => write!(f, "journal record {n}"),
            Self::Event(n) => write!(f, "event {n}"),
            Self::Usage(n) => write!(f, "the usage of revision {n}"),
            Self::Summary => f.write_str("the summary"),
        }
    }
}

/// What can be done about a damaged row.
fn way_on(session: &SessionId, row: Row) -> String {
    match row {
        Row::Entry(n @ 1..) => format!(
            "restore a copy of the store, or go on from what is before it: `agent sessions fork {session} --at {}`",
            n - 1
        ),
        Row::Meta
        | Row::Entry(0)
        | Row::Checkpoint
        | Row::Journal(_)
        | Row::Event(_)
        | Row::Usage(_)
        | Row::Input(_)
        | Row::Round(_)
        | Row::Summary => "restore a copy of the store, or go on in a new session".to_owned(),
    }
}

fn by(pid: Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" by process {pid}"))
}
