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
mod client;
mod config;
mod cx;
mod error;
mod final_output;
#[cfg(feature = "macros")]
mod function;
mod hook;
mod hosted;
mod permission;
mod plan;
mod registry;
mod settings;
mod state;
mod tool;
mod wrapped;

pub use cap::{Capped, OutputCap};
pub use client::ClientTool;
pub use config::{Call, IntoEnd, Json, ToolConfig};
pub use cx::{Blobs, NoBlobs, SlotsHandle, ToolCx};
pub use error::ToolError;
pub use final_output::{FINAL_OUTPUT_TOOL, FinalOutput, final_output};
pub use hook::{
    After, AnswerFault, Before, HookCx, HookDecision, HookError, HookEvent, HookMessage, HookSpec, ToolHook,
    before_tool, read_answer,
};
pub use hosted::HostedTool;
pub use permission::{
    AskRequest, Classified, Classifier, ClassifierError, Confinement, DecidedBy, Matter, Pattern,
    PatternError, PermissionDecision, PermissionMode, PermissionRule, Permissions, Permit, Proposal, Ruling,
    Subject, Verdict,
};
pub use plan::{Preflight, batches, preflight, resolve};
pub use registry::{IntoTool, ToolSet, ToolSetBuilder, ToolSetError};
pub use settings::{MemorySettings, SettingsError, ToolSettings};
pub use state::ToolState;
pub use tool::{Access, Concurrency, Render, StandsFor, Tool, ToolEnd, ToolTraits};
pub use wrapped::Wrapped;

/// Makes a tool of an async function (requirement T1). What it leaves is a function without arguments that gives the
/// [`ToolConfig`]: put it into a set, or go on with the methods of that type.
///
/// ```
/// use agent_tools::{Call, ToolError, ToolSet, tool};
///
/// /// Greets a person by name. Use it when somebody new joins. Next, ask what they came for.
/// #[tool(access = read, deadline = "30s")]
/// async fn greet(
///     call: Call,
///     /** Whom to greet. */ name: String,
///     /** How often; once without it. */ times: Option<usize>,
/// ) -> Result<String, ToolError> {
///     if call.cx.cancel.is_cancelled() {
///         return Err(ToolError::Cancelled);
///     }
///     Ok(format!("Hello, {name}! ").repeat(times.unwrap_or(1)))
/// }
///
/// let tools = ToolSet::builder().with(greet()).freeze()?;
/// let card = &tools.cards()[0];
/// assert_eq!((card.name(), card.description().len()), ("greet", 86));
/// assert!(card.input_schema().get().contains(r#""description":"Whom to greet.""#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// **Arguments.** The first one may be a [`Call`]. Each other one is a field of the input, and its doc comment describes
/// it to the model; `#[serde(..)]` and `#[schemars(..)]` hold as on a field. One that is marked `#[input]` is all of the
/// input, and stands alone:
///
/// ```
/// use agent_tools::{ToolError, tool};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Order {
///     /// The order's number, digits only.
///     number: String,
/// }
///
/// /// Looks up how far an order is. Use it when the user names a number. Next, tell the user.
/// #[tool(access = network, idempotent, subject = text(number))]
/// async fn order_status(#[input] order: Order) -> Result<String, ToolError> {
///     Ok(format!("Order {} left the warehouse.", order.number))
/// }
/// # let _ = order_status();
/// ```
///
/// | option | what it says |
/// |---|---|
/// | `access = read` | the kind of effect: `read`, `session`, `edit`, `execute`, `network`. It must be there: a default that is too mild would let effects run unasked, one that is too strict would ask a person about every look |
/// | `idempotent`, `summarise` | as the methods of [`ToolConfig`] |
/// | `deadline = "30s"` | a whole number of `ms`, `s` or `m` |
/// | `cap_bytes = 20_000`, `cap_lines = 400` | the largest output |
/// | `concurrency = parallel` | or `serial` |
/// | `permission = ask` | or `allow`, `deny` |
/// | `subject = path(ARGUMENT)` | or `command(..)`, `text(..)`: the argument that rules look at. Where a path leads is not known then, so no rule for one allows the call; [`ToolConfig::subject_later`] can look it up |
/// | `name = "greet"` | the name, when it is not the function's |
/// | `crate = "agent_tools"` | where the names of the expansion are; `agent::tool` finds them in `agent` |
#[cfg(feature = "macros")]
pub use agent_macros::tool;

/// What the attribute `tool` expands to; no part of the public interface.
#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod __macro {
    pub use crate::function::{ToolField, ToolReturn, is_field};
    pub use crate::{Access, Concurrency, OutputCap, PermissionDecision, Subject, ToolConfig};
    pub use agent_macros::facade_tool;
    pub use schemars::{self, JsonSchema};
    pub use serde::{self, de::DeserializeOwned};
}
