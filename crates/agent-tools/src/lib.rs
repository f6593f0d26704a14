//! Tools as data: what the model sees of a tool, what it may do, and in which order calls run.
//!
//! Depend on this crate when you write a tool: define an input type and a function with [`ToolConfig`], or
//! implement [`Tool`] by hand for tools that are only known at run time.
//!
//! **This crate knows** tool cards and traits, the frozen [`ToolSet`], the permission check that yields a
//! [`Permit`], the execution plan ([`batches`]) and the caps on outputs.
//!
//! **It never knows** which tools exist, and it never spawns: the driver runs what the plan says.
//!
//! ```
//! use agent_tools::{Access, ToolConfig, ToolSet};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Greet { /** Whom to greet. */ name: String }
//!
//! let greet = ToolConfig::new("greet", "Greets a person by name.", Access::Read, |_, input: Greet| async move {
//!     Ok(format!("Hello, {}!", input.name))
//! });
//! let tools = ToolSet::builder().with(greet).freeze()?;
//! assert_eq!(tools.cards()[0].name(), "greet");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cap;
mod config;
mod cx;
mod error;
mod hook;
mod hosted;
mod permission;
mod plan;
mod registry;
mod settings;
mod tool;

pub use cap::{Capped, OutputCap};
pub use config::{Call, IntoOutput, Json, ToolConfig};
pub use cx::{Blobs, NoBlobs, SlotsHandle, ToolCx};
pub use error::ToolError;
pub use hook::{
    After, AnswerFault, Before, HookCx, HookDecision, HookError, HookEvent, HookMessage, HookSpec, ToolHook,
    before_tool, read_answer,
};
pub use hosted::HostedTool;
pub use permission::{
    AskRequest, DecidedBy, Matter, Pattern, PatternError, PermissionDecision, PermissionMode, PermissionRule,
    Permissions, Permit, Proposal, Ruling, Subject, Verdict,
};
pub use plan::{Preflight, batches, preflight, resolve};
pub use registry::{IntoTool, ToolSet, ToolSetBuilder, ToolSetError};
pub use settings::{SettingsError, ToolSettings};
pub use tool::{Access, Concurrency, StandsFor, Tool, ToolTraits};
