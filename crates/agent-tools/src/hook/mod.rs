//! Hooks: what a program or its user puts before and behind every tool call (requirement T3).

mod wire;

use std::fmt::Debug;

use agent_core::{CallId, RawJson, SessionId, Text, ToolOutput};
use async_trait::async_trait;

use crate::{Pattern, Subject};

pub use wire::{AnswerFault, HookEvent, HookMessage, HookSpec, read_answer};

/// Looks at tool calls, and may change them. Every method has a default that changes nothing.
///
/// A hook may fail, and its failure is told. Before a call that means that the call does not run, because what the hook was
/// to prevent is not known; behind a call the result stands.
///
/// ```
/// use agent_tools::{Before, HookCx, HookError, ToolHook};
/// use agent_core::RawJson;
///
/// #[derive(Debug)]
/// struct OfficeHours;
///
/// #[async_trait::async_trait]
/// impl ToolHook for OfficeHours {
///     fn name(&self) -> &str { "office-hours" }
///
///     async fn before(&self, cx: &HookCx<'_>, input: &RawJson) -> Result<Before, HookError> {
///         let deploys = cx.tool == "bash" && input.get().contains("deploy");
///         Ok(if deploys { Before::block("Nothing is deployed on Fridays. Tell the user.") } else { Before::default() })
///     }
/// }
/// ```
#[async_trait]
pub trait ToolHook: Debug + Send + Sync {
    /// Its name, for the log and for the model.
    fn name(&self) -> &str;

    /// Whether it looks at calls of this tool.
    fn looks_at(&self, _tool: &str) -> bool {
        true
    }

    /// Before the input is checked and permission is looked for.
    async fn before(&self, _cx: &HookCx<'_>, _input: &RawJson) -> Result<Before, HookError> {
        Ok(Before::default())
    }

    /// Behind a call that succeeded.
    async fn after(
        &self,
        _cx: &HookCx<'_>,
        _input: &RawJson,
        _output: &ToolOutput,
    ) -> Result<After, HookError> {
        Ok(After::default())
    }

    /// Behind a call that failed, was refused, or could not run.
    async fn failed(
        &self,
        _cx: &HookCx<'_>,
        _input: &RawJson,
        _output: &ToolOutput,
    ) -> Result<After, HookError> {
        Ok(After::default())
    }
}

/// What a hook knows of a call.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "built by drivers and by tests of hooks")]
pub struct HookCx<'a> {
    /// The session.
    pub session: &'a SessionId,
    /// The call.
    pub call: &'a CallId,
    /// The tool.
    pub tool: &'a str,
    /// What rules look at in the input, as it would run or ran; `None` where that was not looked up. A
    /// [`Pattern`] is held against it with [`Pattern::speaks_of`].
    pub subject: Option<&'a Subject>,
}

/// What a hook wants before a call. The default changes nothing.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "written as a literal with ..Default")]
pub struct Before {
    /// What becomes of the call.
    pub decision: Option<HookDecision>,
    /// Another input in place of this one; it is checked as the model's own would be.
    pub updated_input: Option<RawJson>,
    /// Words for the model, beside the result.
    pub context: Option<Text>,
}

/// What a hook says of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must handle each")]
pub enum HookDecision {
    /// It needs no person; a rule that refuses still does.
    Allow,
    /// A person decides.
    Ask,
    /// It does not run, for this reason, which the model reads.
    Block(String),
}

/// What a hook wants behind a call. The default changes nothing.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "written as a literal with ..Default")]
pub struct After {
    /// Another output in place of this one.
    pub output: Option<ToolOutput>,
    /// Words for the model, beside the result.
    pub context: Option<Text>,
}

/// A hook that could not do its work.
#[derive(Debug, thiserror::Error)]
#[error("the hook `{hook}` failed: {why}")]
#[non_exhaustive]
pub struct HookError {
    /// The hook.
    pub hook: String,
    /// What went wrong, and what to do about it.
    pub why: String,
}

impl Before {
    /// The call does not run; the reason is for the model.
    pub fn block(reason: impl Into<String>) -> Self {
        Self { decision: Some(HookDecision::Block(reason.into())), ..Self::default() }
    }

    /// The call runs with another input.
    pub fn with_input(input: RawJson) -> Self {
        Self { updated_input: Some(input), ..Self::default() }
    }
}

impl HookError {
    /// A failure with these words.
    pub fn new(hook: &str, why: impl Into<String>) -> Self {
        Self { hook: hook.to_owned(), why: why.into() }
    }
}

/// The same as one function, for hooks that only look before a call.
pub fn before_tool<F>(name: impl Into<String>, tools: Pattern, look: F) -> impl ToolHook
where
    F: Fn(&HookCx<'_>, &RawJson) -> Before + Send + Sync,
{
    BeforeTool { name: name.into(), tools, look }
}

struct BeforeTool<F> {
    name: String,
    tools: Pattern,
    look: F,
}

impl<F> Debug for BeforeTool<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BeforeTool").field("name", &self.name).finish_non_exhaustive()
    }
}

#[async_trait]
impl<F> ToolHook for BeforeTool<F>
where
    F: Fn(&HookCx<'_>, &RawJson) -> Before + Send + Sync,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn looks_at(&self, tool: &str) -> bool {
        self.tools.names(tool)
    }

    async fn before(&self, cx: &HookCx<'_>, input: &RawJson) -> Result<Before, HookError> {
        Ok(if self.tools.speaks_of(cx.tool, cx.subject) { (self.look)(cx, input) } else { Before::default() })
    }
}
