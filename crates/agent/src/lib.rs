//! An agent harness: it turns what a language model says into what really happens, keeps the conversation alive, and
//! can stop, crash and continue without losing or repeating anything.
//!
//! Programs depend on this crate: it holds the builder and the names most of them need. Write a tool on
//! `agent-tools`, a provider on `agent-core`, a store on `agent-store`; those change less often.
//!
//! **This crate knows** how the parts are put together. **It never knows** more than that: every part is
//! re-exported under its own name and can be used alone.
//!
//! ```
//! use agent::{Access, Agent, SessionId, ToolConfig, ToolSet};
//! use agent_testkit::{Reply, ScriptedModel};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Add { a: i64, b: i64 }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // In a program: HttpModel::new(HttpConfig { api_key, model, ..HttpConfig::default() })?
//! let model = ScriptedModel::new(vec![
//!     Reply::tool("add", r#"{"a":2,"b":40}"#),
//!     Reply::text("That makes 42."),
//! ]);
//! let add = ToolConfig::new("add", "Adds two numbers. Use it for every sum.", Access::Read, |_, input: Add| async move {
//!     Ok((input.a + input.b).to_string())
//! });
//!
//! let agent = Agent::builder()
//!     .model(model)
//!     .system("You are a careful calculator.")
//!     .tools(ToolSet::builder().with(add).freeze()?)
//!     .build()?;
//!
//! let mut run = agent.session(SessionId::new("sums")?).send("What is 2 + 40?").await?;
//! while let Some(event) = run.next().await {
//!     println!("{}", serde_json::to_string(&event)?);
//! }
//! let end = run.finish().await?;
//! assert_eq!(end.text, "That makes 42.");
//! assert!(end.reason.is_success());
//! # Ok(())
//! # }
//! ```

mod builder;

/// Makes a tool of an async function; the options are those of [`agent_tools::tool`].
///
/// ```
/// use agent::{ToolError, ToolSet};
///
/// /// Adds two numbers. Use it for every sum. Next, tell the user the result.
/// #[agent::tool(access = read)]
/// async fn add(/** The one. */ a: i64, /** The other. */ b: i64) -> Result<String, ToolError> {
///     let sum = a.checked_add(b);
///     sum.map(|sum| sum.to_string()).ok_or_else(|| ToolError::failed("The sum is too large. Tell the user."))
/// }
///
/// let tools = ToolSet::builder().with(add()).freeze()?;
/// assert_eq!(tools.names(), "add");
/// # Ok::<(), agent::ToolSetError>(())
/// ```
pub use agent_tools::__macro::facade_tool as tool;

#[doc(hidden)]
pub use agent_tools::__macro;

pub use agent_cache::Lifetimes;
pub use agent_core::{
    Action, ActionCall, ActionOutcome, Approval, Authorization, COMPLETE_TOOL, CallId, Cancel, CardError,
    Choice, Closed, Diagnostic, EntryId, Event, EventBody, Finish, FinishKind, Heard, History, IdError,
    InputRequest, LanguageModel, ModelError, ModelErrorKind, ModelProfile, ParkKind, Question, Reply,
    RequestId, RequestSettings, SessionId, SystemBlock, TerminalReason, Thinking, ToolOutput, Ttl, Usage,
    UserMessage, Wait, WrongReply,
};
pub use agent_harness::{
    AfterStep, AfterStepCx, AfterTurn, AfterTurnCx, AllowAll, Answer, AskLater, AskPolicy, Asker, AskerError,
    Background, CallChanges, CallCx, CheckStatus, Checkup, ChildKind, Children, ChildrenError, Clock,
    CompactedTier, Compaction, Connection, ContextCx, ContextSource, Drained, Environment,
    ExplainedBreakpoint, ExplainedMessage, ExplainedPart, ExplainedRequest, FailedTier, Family, Finding,
    ForkedEnd, ForkedRun, Handed, Harness, HarnessConfig, HarnessError, InboxView, Jitter, MessageKind,
    ModelSpending, ModelView, Next, NobodyToAsk, NotesOutcome, NotesReport, NotesSource, NotesStatus,
    NotesView, NotesWriter, Observed, PermissionView, PostCompact, PostCompactCx, PrepareCall, Process,
    ProcessConfig, PromptSource, RandomJitter, ReadsView, RequestError, RetryPolicy, RootIsSet,
    RoundSummaries, RuleSink, RuleSinkError, Run, Secret, Session, SessionView, SourceError, Spending,
    StepReport, SystemClock, TurnEnd, Watch, Workspace, fork_stored,
};
pub use agent_memory::NotesPolicy;
pub use agent_store::{
    Imported, JsonlError, LeftOut, MemoryStore, Salvaged, Store, StoreError, export, import,
};
#[cfg(feature = "sqlite")]
pub use agent_store::{SqliteOptions, SqliteStore};
pub use agent_tools::{
    Access, After, AskRequest, Before, Call, Classified, Classifier, ClassifierError, ClientTool,
    Concurrency, Confinement, DecidedBy, HookCx, HookDecision, HookError, HookSpec, IntoEnd, Json, Matter,
    MemorySettings, OutputCap, Pattern, PatternError, PermissionDecision, PermissionMode, PermissionRule,
    Permissions, Permit, Proposal, Render, Ruling, SettingsError, Subject, Tool, ToolConfig, ToolCx, ToolEnd,
    ToolError, ToolHook, ToolSet, ToolSetBuilder, ToolSetError, ToolSettings, ToolState, ToolTraits, Wrapped,
    before_tool,
};
pub use agent_turn::{
    ContinueHook, DEFAULT_FAILURES, DEFAULT_STEPS, Mode, Stop, StopCondition, StopConditionExt, StopCx,
    Streak, Task, Todos, consecutive_failures, continue_when, cost_budget, no_progress, step_count,
    stop_when, todos_done, token_budget, tool_called, wall_clock,
};

#[cfg(feature = "web")]
pub use agent_builtins::{
    AllowedHost, AllowedHostError, Lookup, PrivateAddresses, SystemLookup, WebFetchConfig,
};
#[cfg(feature = "builtins")]
pub use agent_builtins::{
    CommandHook, IsolatedSandbox, LocalSandbox, Sandbox, SandboxError, Skill, SkillError, SkillSource,
    Skills, SkippedSkill, allowed_env,
};
#[cfg(feature = "http")]
pub use agent_providers::{
    ApiKey, Auth, Catalog, CatalogError, ConfigError, HttpConfig, HttpModel, HttpTransport, Transport,
    Vendor, is_loopback,
};

pub use builder::{Agent, AgentBuilder, BuildError, NeedsModel, WithModel};

/// What an author of a prompt works with: fragments typed by how long their bytes stay, layers, rule files.
pub mod prompt {
    pub use agent_prompt::{
        Assembled, Beside, Caps, Date, Dynamic, Enters, EnvironmentFacts, Explanation, Fragment,
        FragmentError, InSystem, Layer, Prompt, RuleConfig, RuleFiles, Session, Snapshot, Source, Stability,
        Static, Step, Turn, Value,
    };
}

/// What an author of stages and of tiers of compaction works with.
pub mod prepare {
    pub use agent_core::{
        Accountant, BytesPerToken, CompactionState, Entry, History, HistoryView, Note, NoteKind, RawJson,
        Rewrite, Slots, StepNo, Text, Todo, TodoStatus, TokenCounter, ToolCard, ToolChoice,
    };
    pub use agent_prepare::{
        ActiveReminders, ActiveTools, Answer, Ask, AskFailure, Cascade, Cause, Choose, Clear, ClearToolUses,
        CompactCx, Compacted, Compacting, Context, ContextState, DIRECTIVE, FnStage, ForceWhileTodos, Level,
        Move, Narrow, Need, Notes, Overrides, Pipeline, PrepareError, Prepared, Preparing, Reminders, Scene,
        ServerCompaction, ServerEdits, Shrink, Stage, StageCx, StepCx, Summarise, SwitchModel, Synthesised,
        Thresholds, Tier, TierCx, TierVerdict, Verdict, Way, stage_fn,
    };
}

/// What an agent keeps for later sessions (feature `builtins`).
#[cfg(feature = "builtins")]
pub mod memory {
    pub use crate::builder::MemoryConfig;
    pub use agent_harness::{
        ChoiceReason, Extracted, ExtractionOutcome, ExtractionSkip, ExtractionStatus, MemoryExtractor,
        MemoryIndex, ModelChoice, RunningExtraction, SkippedTurn,
    };
    pub use agent_memory::{
        AutoFile, AutoRecord, Extraction, IndexView, Memory, MemoryDir, MemoryError, MemoryName, MemoryPlace,
        MemoryType, NotesFile, PlaceError, TrustedSource, project_root,
    };
}

/// The built-in tools (feature `builtins`).
#[cfg(feature = "builtins")]
pub mod builtins {
    #[cfg(feature = "web")]
    pub use agent_builtins::web_fetch;
    pub use agent_builtins::{
        AgentFile, AgentFileError, AgentKind, AgentTask, agent, all, ask_question, bash, bash_kill,
        bash_output, complete, deferred, edit_file, glob, grep, load_skill, read_file, todo, web_search,
        write_file,
    };
}

/// What an author of a [`Sandbox`] works with (feature `builtins`).
#[cfg(feature = "builtins")]
pub mod sandbox {
    pub use agent_builtins::{
        Captured, CommandOutput, ExitReason, Expect, FileBytes, FileWrite, Fingerprint, Found, FoundLine,
        Glob, JobCommand, JobOutput, JobState, Role, Search, ShellCommand, Skip, Walk, Walked, WalkedFile,
    };
}

/// The code in the README and the guides, compiled and run as doctests.
#[cfg(all(doctest, feature = "http", feature = "builtins", feature = "sqlite"))]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../../../docs/guides/write-a-tool.md")]
#[doc = include_str!("../../../docs/guides/sessions.md")]
#[doc = include_str!("../../../docs/guides/stopping.md")]
#[doc = include_str!("../../../docs/guides/skills.md")]
#[doc = include_str!("../../../docs/guides/memory.md")]
#[doc = include_str!("../../../docs/guides/models.md")]
#[doc = include_str!("../../../docs/guides/testing-your-agent.md")]
#[doc = include_str!("../../../docs/guides/doctor.md")]
#[doc = include_str!("../../../docs/guides/cache-audit.md")]
#[doc = include_str!("../../../docs/guides/wire.md")]
#[doc = include_str!("../../../docs/guides/cache-scenarios.md")]
#[doc = include_str!("../../../docs/guides/prompts.md")]
#[doc = include_str!("../../../docs/guides/prepare.md")]
#[doc = include_str!("../../../docs/guides/subagents.md")]
struct ReadmeDoctests;
