//! The driver: it does what a turn wants, and is the only one that commits.
//!
//! Most programs use it through the facade crate `agent`. Depend on it directly to bring your own builder.
//!
//! **This crate knows** how wants become model calls and tool runs, when a failed model call is tried again, how outcomes
//! are journaled, committed and told as events, what a session's prompt is made of, when the model is told the day, how a step is
//! prepared and a context compacted, why a prompt cache was lost, and how a session is taken up again after a crash. It is the only async driver: streaming and
//! collecting are the same run, watched or not. On stand-ins for model and tools the same driver explains what would be
//! sent ([`Session::explain`]) and examines an agent ([`examine`]).
//!
//! **It never knows** the terminal, HTTP servers, which tools exist or how a store keeps its rows.
//!
//! ```
//! use std::sync::Arc;
//! use agent_core::SessionId;
//! use agent_harness::{Harness, HarnessConfig};
//! use agent_store::MemoryStore;
//! use agent_testkit::{Reply, ScriptedModel};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! let model = ScriptedModel::new(vec![Reply::text("Hello!")]);
//! let harness = Harness::new(HarnessConfig::new(Arc::new(model), Arc::new(MemoryStore::new())));
//! let end = harness.session(SessionId::new("first")?).send("Hi").await?.finish().await?;
//! assert_eq!(end.text, "Hello!");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod after_step;
mod asker;
mod background;
mod breaker;
mod cache;
mod changes;
mod children;
mod clock;
mod compaction;
mod config;
mod doctor;
mod drive;
mod encoders;
mod error;
mod explain;
mod family;
mod fork;
mod front;
mod gauge;
mod handed;
mod held;
mod hooks;
mod kin;
mod listed;
mod live;
mod memory;
mod mend;
mod observed;
mod outbox;
mod process;
mod quiet;
mod retry;
mod rounds;
mod run;
mod session;
mod source;
mod spy;
mod stand_ins;
mod unless;
mod view;
mod workspace;

pub use after_step::{AfterStep, AfterStepCx};
pub use asker::{AllowAll, Answer, AskLater, Asker, AskerError, NobodyToAsk, RuleSink, RuleSinkError};
pub use background::{AfterTurn, AfterTurnCx, Background, Drained};
pub use children::{ChildKind, Children, ChildrenError};
pub use clock::{Clock, SystemClock};
pub use compaction::{CompactedTier, Compaction, FailedTier};
pub use config::{Harness, HarnessConfig};
pub use doctor::{CheckStatus, Checkup, Finding, examine};
pub use error::{HarnessError, RequestError};
pub use explain::{ExplainedBreakpoint, ExplainedMessage, ExplainedPart, ExplainedRequest, MessageKind};
pub use family::Family;
pub use fork::{ForkedEnd, ForkedRun, fork_stored};
pub use handed::Handed;
pub use hooks::{
    AskPolicy, CallChanges, CallCx, ContextCx, ContextSource, PostCompact, PostCompactCx, PrepareCall,
};
pub use memory::{
    ChoiceReason, Extracted, ExtractionOutcome, ExtractionSkip, ExtractionStatus, MemoryExtractor,
    MemoryIndex, ModelChoice, NotesOutcome, NotesReport, NotesStatus, NotesView, NotesWriter,
    RunningExtraction, SkippedTurn,
};
pub use observed::{Observed, Watch};
pub use process::{ModelSpending, Process, ProcessConfig, RootIsSet, Secret, Spending};
pub use retry::{Jitter, RandomJitter, RetryPolicy};
pub use rounds::RoundSummaries;
pub use run::{Next, Run, StepReport, TurnEnd};
pub use session::Session;
pub use source::{NotesSource, PromptSource, SourceError};
pub use view::{Connection, InboxView, ModelView, PermissionView, ReadsView, SessionView};
pub use workspace::{Environment, Workspace};
