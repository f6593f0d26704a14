//! The nouns of an agent: messages, append-only history, usage, events, errors and the model trait.
//!
//! Depend on this crate when you write a provider, a store or a tool that must outlive releases of the
//! harness: it holds data and traits, and hardly ever changes.
//!
//! **This crate knows** what a conversation is: a [`History`] of [`Entry`]s in which every tool call has its
//! result, what a model says ([`Response`], [`ModelEvent`]), what it costs ([`Usage`]) and how it fails
//! ([`ModelError`]).
//!
//! **It never knows** an async runtime, a clock, a file, a socket or a provider's wire format.
//!
//! ```
//! use agent_core::{AssistantPart, Entry, History, Response, StepRecord, UserMessage};
//!
//! let mut history = History::new();
//! history.push(Entry::User(UserMessage::text("What is 2 + 2?")?))?;
//! let answer = Response::of(vec![AssistantPart::text("4").ok_or("blank")?]);
//! history.push(Entry::Step(StepRecord::new(answer, vec![])?))?;
//! assert_eq!(history.view().messages().count(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Three mistakes that do not compile, or do not construct:
//!
//! * changing a message through a view: a view only lends (`tests/compile_fail/mutate_through_view.rs`);
//! * growing the history while a [`Draft`] borrows it (`tests/compile_fail/grow_while_drafting.rs`);
//! * writing a step whose calls are not answered: [`StepRecord::new`] returns a [`PairingError`].

mod accountant;
mod blob;
mod body;
mod cancel;
mod card;
mod clip;
mod context;
mod error;
mod event;
mod history;
mod ids;
mod inbox;
mod json;
mod layer;
mod mark;
mod message;
mod model;
mod profile;
mod reads;
mod record;
mod request;
mod response;
mod settings;
mod slots;
mod spent;
mod step;
mod subagent;
mod terminal;
mod text;
mod usage;
mod view;

pub use accountant::{Accountant, BytesPerToken, TokenCounter};
pub use blob::BlobHash;
pub use body::{BLOCK_BYTES, Body, SharedBuffers};
pub use cancel::{Cancel, Cancelled};
pub use card::{COMPLETE_TOOL, CardError, SystemBlock, ToolCard, ToolChoice};
pub use clip::{clipped, clipped_file, clipped_part};
pub use context::Context;
pub use error::{ModelError, ModelErrorKind};
pub use event::{ActionCall, ActionOutcome, Closed, Event, EventBody};
pub use history::{Draft, Entry, History, HistoryError, Note, NoteKind, Rewrite, UnreadableEntry};
pub use ids::{CallId, EntryId, IdError, SessionId, StepNo, TurnId};
pub use inbox::{Heard, Input, InputId, StoredInput};
pub use json::RawJson;
pub use layer::Layer;
pub use mark::{Mark, MarkPoint, Ttl};
pub use message::{
    AssistantPart, AssistantText, ContentPart, EmptyMessage, FilePart, FileSource, FoundTool, ProviderData,
    ProviderPart, Reasoning, Seal, ToolCall, ToolInput, ToolOutput, ToolResult, UserMessage, UserPart,
};
pub use model::{
    Diagnostic, Encoded, Encoder, LanguageModel, ModelEvent, ModelRequest, ModelStream, Origin, Outgoing,
};
pub use profile::{CacheProfile, ModelProfile, Prices, Setting};
pub use reads::{Reads, ReadsMark};
pub use record::{
    Checkpoint, Commit, Committed, CompactionState, JournalRecord, OfChildren, Retried, Revision,
    RoundSummary, SessionMeta, SessionRecord, SessionState, SessionSummary, StandIn,
};
pub use request::{
    Action, Approval, Authorization, Choice, HeldRequest, InputRequest, Question, Reply, RequestId, Wait,
    WrongReply,
};
pub use response::{Finish, FinishKind, Response, ResponseBuilder};
pub use settings::{Effort, RequestSettings, ServiceTier, Thinking};
pub use slots::{ReadExtent, ReadStamp, SessionNotes, Slots, Todo, TodoStatus};
pub use spent::Spent;
pub use step::{MISSING_RESULT, PairingError, PendingStep, Repair, StepRecord};
pub use subagent::{AGENT_ACTION, AgentTask};
pub use terminal::{ParkKind, TerminalReason};
pub use text::{BlankText, Excerpt, Text, ceil_boundary, floor_boundary, hex, reminder};
pub use usage::Usage;
pub use view::{CONTINUE, Clip, HistoryView, Message, Rendered, SUMMARY_MARKER, Trim};
