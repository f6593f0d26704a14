//! The erased tool: what the driver calls.

use std::borrow::Cow;
use std::fmt::Debug;
use std::time::Duration;

use agent_core::{RawJson, SessionId, ToolCard, ToolOutput, Wait};
use async_trait::async_trait;

use crate::{OutputCap, PermissionDecision, Permit, Subject, ToolCx, ToolError};

/// A tool, whatever its types. Most are made by [`crate::ToolConfig`]; implement it by hand when the card is only
/// known at run time.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    note = "make one with `ToolConfig::new(name, description, access, |cx, input| async {{ .. }}).build()?`"
)]
pub trait Tool: Debug + Send + Sync {
    /// What the model sees.
    fn card(&self) -> &ToolCard;

    /// What the driver must know to run it.
    fn traits(&self) -> &ToolTraits;

    /// Under which name [`ToolCx::state`] keeps what this tool keeps in a session (requirement T11): `tool:` and its name. The
    /// tools that are shipped have keys of their own, so that one of yours with such a name does not inherit what they
    /// kept; a tool around another one gives the key of the inner one.
    fn state_key(&self) -> Cow<'_, str> {
        Cow::Owned(format!("tool:{}", self.card().name()))
    }

    /// The part of the input that rules look at and a person must see to decide, for example the command or the path.
    ///
    /// The whole input stands in when this is `None`.
    async fn subject(&self, _input: &RawJson) -> Option<Subject> {
        None
    }

    /// Whether an input fits, in words for the model when it does not. Asked where another input takes the place of the
    /// model's, and before a person is asked; what runs is looked at again.
    fn validate(&self, _input: &RawJson) -> Result<(), ToolError> {
        Ok(())
    }

    /// The call that a call of this tool stands for, where other tools are called through it: what is checked, allowed, run
    /// and counted is that call. `None` for every other tool.
    ///
    /// # Errors
    /// When the input names no call; the words answer the model.
    fn stands_for(&self, _input: &RawJson) -> Result<Option<StandsFor>, ToolError> {
        Ok(None)
    }

    /// What of an output is worth keeping, as a text that takes its place before it first enters the history
    /// (requirement T6); `None` keeps it as it is. The whole output goes to the blob store first.
    fn compact(&self, _input: &RawJson, _output: &ToolOutput) -> Option<String> {
        None
    }

    /// Runs one call. It consumes the permit, so nothing runs that was not checked, and nothing runs twice.
    ///
    /// Contract: returns soon after `cx.cancel` is cancelled, and leaves nothing running behind.
    async fn run(&self, cx: &ToolCx, permit: Permit, input: &RawJson) -> Result<ToolEnd, ToolError>;

    /// The session is closed in this program: what it left running between calls ends now (requirement T8). Called when
    /// the last handle on a session that was opened is dropped, so it must not block; a tool that stands before another
    /// hands it on.
    fn session_closed(&self, _session: &SessionId) {}
}

/// How a run of a tool ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a driver must handle both")]
pub enum ToolEnd {
    /// With an output.
    Output(ToolOutput),
    /// It had no effect, and cannot go on without somebody outside: the turn parks when nothing else of its step can run
    /// (requirement L7). The reply to a question, to an action and to the tool of a client is the output; after an
    /// approval or a sign-in the call runs again.
    Waits(Wait),
}

/// A call inside a call; see [`Tool::stands_for`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "built by tools")]
pub struct StandsFor {
    /// The tool that is called.
    pub tool: String,
    /// Its input, byte for byte as the model wrote it.
    pub input: RawJson,
}

/// What the driver must know of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a config struct: a literal with ..ToolTraits::of(access)")]
pub struct ToolTraits {
    /// What kind of effect it has; permission modes go by it.
    pub access: Access,
    /// Whether running it again with the same input does no further harm; decides what a resumed session does
    /// with a call whose result was lost (requirement D4).
    pub idempotent: bool,
    /// Whether calls may run beside others.
    pub concurrency: Concurrency,
    /// Longest run; the driver cancels it then.
    pub deadline: Option<Duration>,
    /// Largest output that enters the history.
    pub cap: OutputCap,
    /// Whether the agent's cheap model may shorten its outputs above 1,000 tokens before they first enter the history
    /// (requirement T6). Never for tools that show what is then changed, such as a file.
    pub summarise: bool,
    /// What happens to a call on which no rule speaks, in place of what the mode says of its kind; bypass lifts it unless
    /// it refuses.
    pub permission: Option<PermissionDecision>,
    /// How a program shows its outputs to people; the model sees the same text either way.
    pub render: Render,
}

/// How an output is shown to people (requirement T1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Render {
    /// As it is.
    #[default]
    Text,
    /// As Markdown.
    Markdown,
    /// As a unified diff.
    Diff,
    /// As a terminal: a fixed width, and words from a program.
    Terminal,
    /// As JSON.
    Json,
}

/// What kind of effect a tool has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "every permission mode decides on every kind")]
pub enum Access {
    /// Only looks.
    Read,
    /// Changes state of the session itself, such as the todo list.
    Session,
    /// Changes files of the workspace.
    Edit,
    /// Runs programs.
    Execute,
    /// Reaches the network.
    Network,
}

/// Whether calls of a tool may run beside others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the plan handles both")]
pub enum Concurrency {
    /// Beside other parallel calls of the same step.
    Parallel,
    /// Alone, in call order.
    Serial,
}

impl ToolEnd {
    /// The output, unless it waits.
    pub fn output(&self) -> Option<&ToolOutput> {
        if let Self::Output(output) = self { Some(output) } else { None }
    }
}

impl From<ToolOutput> for ToolEnd {
    fn from(output: ToolOutput) -> Self {
        Self::Output(output)
    }
}

impl From<Wait> for ToolEnd {
    fn from(wait: Wait) -> Self {
        Self::Waits(wait)
    }
}

impl ToolTraits {
    /// The usual traits of a kind: readers are idempotent and run in parallel, everything else is not.
    pub fn of(access: Access) -> Self {
        let reads = access == Access::Read;
        Self {
            access,
            idempotent: reads,
            concurrency: if reads { Concurrency::Parallel } else { Concurrency::Serial },
            deadline: None,
            cap: OutputCap::default(),
            summarise: false,
            permission: None,
            render: Render::Text,
        }
    }
}

impl Render {
    /// The name, for programs: `text`, `markdown`, `diff`, `terminal` or `json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Markdown => "markdown",
            Self::Diff => "diff",
            Self::Terminal => "terminal",
            Self::Json => "json",
        }
    }
}
