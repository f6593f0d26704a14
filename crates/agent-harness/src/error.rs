//! Failures of the harness itself; a model's or a tool's failure is an outcome of the turn, not one of these.

use agent_core::{EmptyMessage, HistoryError, IdError, RequestId, SessionId, UnreadableEntry, WrongReply};
use agent_prepare::PrepareError;
use agent_store::StoreError;
use agent_tools::{ToolError, ToolSetError};
use agent_turn::{Misuse, RestoreError};

use crate::SourceError;

/// The session could not be driven. Its last committed state is whole and loads again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HarnessError {
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The stored history cannot be read.
    #[error(
        "session {session}: {cause}; `agent sessions fork {session} --at ENTRY` goes on from an entry before it"
    )]
    Unreadable {
        /// The session.
        session: SessionId,
        /// What cannot be read.
        #[source]
        cause: UnreadableEntry,
    },
    /// The stored turn cannot be taken up.
    #[error("session {session}: {cause}")]
    Turn {
        /// The session.
        session: SessionId,
        /// Why.
        #[source]
        cause: RestoreError,
    },
    /// The session cannot begin without a part of its prompt.
    #[error("session {session} cannot begin: {cause}")]
    Source {
        /// The session.
        session: SessionId,
        /// What is missing.
        #[source]
        cause: SourceError,
    },
    /// The message has no content.
    #[error(transparent)]
    Message(#[from] EmptyMessage),
    /// A name that no session can have.
    #[error(transparent)]
    Id(#[from] IdError),
    /// The turn cannot go on without what `prepare_call` or a source of context gives. It stays open.
    #[error("session {session} cannot go on: {cause}")]
    Call {
        /// The session.
        session: SessionId,
        /// What is missing.
        #[source]
        cause: SourceError,
    },
    /// A tier of compaction gave what cannot be.
    #[error("session {session} cannot be compacted: {cause}")]
    Prepare {
        /// The session.
        session: SessionId,
        /// What it gave.
        #[source]
        cause: PrepareError,
    },
    /// A turn is open, and a boundary may not come between a call and its result.
    #[error(
        "session {0} has an open turn; resume it or send a message, and compact the session when the turn is over"
    )]
    TurnOpen(SessionId),
    /// Nothing was said yet.
    #[error("session {0} has no messages yet, so there is nothing to compact")]
    NothingToCompact(SessionId),
    /// A forked run, or what it called, wanted another one, or to compact.
    #[error(
        "session {0} was asked from within a run that is forked off a session; such a run cannot fork or compact, so do it when the run is over"
    )]
    Forked(SessionId),
    /// The session is at work on another message of this process.
    #[error("session {0} is at work on another message; wait for its run to finish")]
    AtWork(SessionId),
    /// A reply that cannot be taken.
    #[error("session {session}: {cause}")]
    Request {
        /// The session.
        session: SessionId,
        /// Why.
        #[source]
        cause: RequestError,
    },
    /// Workers were lost over the open turn, as many as there may be. Nothing of it is lost, and it stays open.
    #[error(
        "session {session} has an open turn that was taken up {attempts} times, and each time the worker was lost before the turn ended; nothing of the session is lost. See in its events what the turn was at, then take it up once more (`Session::resume_again`) or end it (`Session::abandon`)"
    )]
    NotTakenUp {
        /// The session.
        session: SessionId,
        /// How many workers took the turn up and were lost.
        attempts: u32,
    },
    /// What was left open is lost, because it cannot be read; the next message begins a turn.
    #[error("session {session}: {why}; look at what it did, then send a message")]
    Closed {
        /// The session.
        session: SessionId,
        /// What cannot be read, and what was done.
        why: String,
    },
    /// There is nothing to resume.
    #[error("session {0} has no open turn; send it a message")]
    NothingToResume(SessionId),
    /// The open turn ends by itself, so there is no request to explain.
    #[error("the open turn of session {0} ends without another request; give the message that comes next")]
    NothingToSend(SessionId),
    /// A stage, or a full context, ends the turn before a model is asked.
    #[error("session {session} would ask no model now; the turn ends with: {words}")]
    Unasked {
        /// The session.
        session: SessionId,
        /// What is said in the model's place.
        words: String,
    },
    /// A fault of this crate: stand-ins of a set of tools that are no set.
    #[error("the tools cannot be stood in for ({0}); please report this")]
    StandIn(#[from] ToolSetError),
    /// A fault of this crate: an entry that breaks the rules of the history.
    #[error("the driver wrote an entry that breaks the rules ({0}); please report this")]
    History(#[from] HistoryError),
    /// A fault of this crate: a report that does not fit.
    #[error("the driver told the turn something that does not fit ({0}); please report this")]
    Misuse(#[from] Misuse),
    /// State that cannot be written as JSON.
    #[error("the state of the turn cannot be saved: {0}")]
    Save(#[from] serde_json::Error),
}

/// A reply that cannot be taken. Nothing was changed, and no model is asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The session has no such request.
    #[error("there is no request {0} that is open; list the requests of the session")]
    Unknown(RequestId),
    /// Somebody replied before; the first reply stands.
    #[error("request {0} was answered before; the first answer stands")]
    Answered(RequestId),
    /// It came too late.
    #[error("request {0} has lapsed; resume the session, and it goes on without an answer")]
    Expired(RequestId),
    /// It answers something else.
    #[error(transparent)]
    Reply(#[from] WrongReply),
    /// The tool does not take the input that was put in place of the model's.
    #[error("request {request} is still open, because the tool does not take the other input: {cause}")]
    Edit {
        /// The request.
        request: RequestId,
        /// What is wrong with the input.
        #[source]
        cause: ToolError,
    },
}
