//! The built-in tools of an agent, on a sandbox that is rooted in a workspace.
//!
//! Depend on this crate when you assemble an agent and want its usual tools, or when you write a tool that reaches
//! files or programs: ask for a [`Sandbox`]. To keep files elsewhere than on this machine, implement that trait; the
//! records it speaks in are all here. The tools need a tokio runtime: what computes for long runs on threads that may
//! block.
//!
//! **This crate knows** the tools `read_file`, `write_file`, `edit_file`, `glob`, `grep`, `bash`, `bash_output`,
//! `bash_kill`, `todo` and `complete` ([`all`] of them, one file each), and those that only some sessions have:
//! [`ask_question`], [`agent`], and [`memory`], which reads and writes what `agent-memory` keeps; the [`Sandbox`] they act through and two of them:
//! [`LocalSandbox`] for the user's own machine, and [`IsolatedSandbox`], whose commands are walled in. It also runs hooks
//! that are external commands, [`CommandHook`], and reads [`Skills`], which [`load_skill`] shows where there are some. With
//! the feature `web` there is `web_fetch` as well, which needs no sandbox and so is none of [`all`].
//!
//! **It never knows** the loop: who calls a tool, who gives permission, where an output goes.
//!
//! ```
//! use std::sync::Arc;
//! use agent_builtins::{LocalSandbox, all};
//! use agent_tools::ToolSet;
//!
//! let workspace = tempfile::tempdir()?;
//! let sandbox = Arc::new(LocalSandbox::open(workspace.path())?);
//! let tools = ToolSet::builder().extend(all(sandbox)).without("grep").freeze()?;
//! assert_eq!(tools.names(), "read_file, write_file, edit_file, glob, bash, bash_output, bash_kill, todo, complete");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod sandbox;

mod agent;
mod agent_file;
mod ask_question;
mod bash;
mod bash_kill;
mod bash_output;
mod blocking;
mod command_hook;
mod complete;
mod deferred;
mod edit_file;
mod gaps;
mod glob;
mod grep;
mod hint;
mod memory;
mod near;
mod read_file;
mod replace;
mod skills;
mod stamp;
mod text;
mod todo;
mod visible;
#[cfg(feature = "web")]
mod web_fetch;
mod web_search;
mod write_file;

use std::sync::Arc;

use agent_tools::IntoEnd;
use agent_tools::{Subject, Tool, ToolConfig};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

pub use agent::{AgentKind, agent};
pub use agent_core::{AGENT_ACTION, AgentTask};
pub use agent_file::{AgentFile, AgentFileError};
pub use ask_question::ask_question;
pub use bash::bash;
pub use bash_kill::bash_kill;
pub use bash_output::bash_output;
pub use command_hook::CommandHook;
pub use complete::complete;
pub use deferred::deferred;
pub use edit_file::edit_file;
pub use glob::glob;
pub use grep::grep;
pub use memory::memory;
pub use read_file::read_file;
pub use sandbox::{
    Captured, CommandOutput, ExitReason, Expect, FileBytes, FileWrite, Fingerprint, Found, FoundLine, Glob,
    IsolatedSandbox, JobCommand, JobOutput, JobState, LocalSandbox, Role, Sandbox, SandboxError, Search,
    ShellCommand, Skip, Walk, Walked, WalkedFile, allowed_env,
};
pub use skills::{
    LISTING_BYTES, SKILL_BYTES, SKILLS, Skill, SkillError, SkillSource, Skills, SkippedSkill, load_skill,
};
pub use todo::todo;
#[cfg(feature = "web")]
pub use web_fetch::{
    AllowedHost, AllowedHostError, Lookup, PrivateAddresses, SystemLookup, WebFetchConfig, web_fetch,
};
pub use web_search::web_search;
pub use write_file::write_file;

/// All built-in tools, always in this order (requirement A4).
pub fn all(sandbox: Arc<dyn Sandbox>) -> Vec<Arc<dyn Tool>> {
    vec![
        read_file(Arc::clone(&sandbox)),
        write_file(Arc::clone(&sandbox)),
        edit_file(Arc::clone(&sandbox)),
        glob(Arc::clone(&sandbox)),
        grep(Arc::clone(&sandbox)),
        bash(Arc::clone(&sandbox)),
        bash_output(Arc::clone(&sandbox)),
        bash_kill(sandbox),
        todo(),
        complete(),
    ]
}

/// The erased tool. A card fails only over its name or a schema that is no object, and both are written here.
fn built<I, O>(config: ToolConfig<I, O>) -> Arc<dyn Tool>
where
    I: DeserializeOwned + JsonSchema + Send + 'static,
    O: IntoEnd + Send + 'static,
{
    // Not the usual key: a user's tool of the same name does not inherit what this one kept.
    let key = format!("builtin:{}", config.name());
    config.state_key(key).build().unwrap_or_else(|error| unreachable!("a built-in tool has a card: {error}"))
}

/// The file or directory that a tool is about: as it was named, and where that leads.
async fn path_subject(sandbox: Arc<dyn Sandbox>, given: String) -> Subject {
    // What cannot be found is not allowed by a rule for paths, and the tool itself says what is wrong with it.
    let real = sandbox.real_path(&given).await.ok();
    Subject::Path { given, real }
}
