//! What of a session is shown while it is loaded: typed groups, which only the driver writes.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use agent_core::{Effort, ReadStamp, ReadsMark, RequestId, Thinking, Todo};
use agent_prepare::ContextState;
use agent_tools::{PermissionMode, SlotsHandle};

/// The state of a session, in typed groups (requirement K3): as the driver last knew it, while it is loaded; what a group
/// cannot know before the session is taken up is empty.
///
/// The driver writes each group where it changes, and at every commit. What that costs does not grow with the session. It
/// is no second truth: what has to outlive the process is in the store, and read from there.
///
/// Out of scope: what only a user interface has (what is expanded, what is typed), work begun on a guess of the next
/// message, and teams of agents.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct SessionView {
    /// Which model is asked, and how.
    pub model: ModelView,
    /// What may run, and what did not.
    pub permissions: PermissionView,
    /// The todo list, as of the last call that is stored.
    pub todos: Arc<[Todo]>,
    /// The files that were read.
    pub reads: ReadsView,
    /// Whom the session spoke with outside the process, by name: each model that it asked (`model NAME`) and the source of
    /// its notes (`notes`), once they answered or failed.
    pub connections: Arc<BTreeMap<String, Connection>>,
    /// How full the context is: as of the last request that was prepared or answered.
    pub context: Option<ContextState>,
    /// Where its rolling notes are, when they are in a file.
    pub memory_path: Option<PathBuf>,
    /// What waits to be read.
    pub inbox: InboxView,
}

/// Which model is asked, and how.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ModelView {
    /// The agent's model.
    pub default: String,
    /// The one that took its place in the turn or the step at work.
    pub chosen: Option<String>,
    /// How it thinks; as the provider has it when not given.
    pub thinking: Option<Thinking>,
    /// How much work it puts into an answer.
    pub effort: Option<Effort>,
    /// Whether its output is to be faster, at a higher price.
    pub fast: bool,
}

/// What may run, and what did not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PermissionView {
    /// What happens where no rule speaks.
    pub mode: PermissionMode,
    /// How many patterns a person allowed for this session.
    pub remembered: usize,
    /// Calls that were refused in the open turn, or in the last one when none is open.
    pub denied: u32,
}

/// Whether somebody outside the process answered when last asked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Connection {
    /// They answered.
    Up,
    /// They failed: the kind of the failure.
    Failed(String),
}

/// What waits to be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct InboxView {
    /// Whether something was said that nobody has looked at, as of the last commit.
    pub has_unread: bool,
    /// Messages that were taken and join at the next step.
    pub taken: usize,
    /// The requests of the open turn that nobody has answered.
    pub requests: Arc<[RequestId]>,
}

/// The files that were read: looked up where the session keeps them, so that none is copied.
#[derive(Clone, Default)]
pub struct ReadsView {
    count: usize,
    mark: ReadsMark,
    slots: SlotsHandle,
}

impl ReadsView {
    pub(crate) fn of(slots: &SlotsHandle) -> Self {
        let (count, mark) = slots.read(|slots| (slots.reads.len(), slots.reads.mark()));
        Self { count, mark, slots: slots.clone() }
    }

    /// How many, when it was shown.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Which, as of now, by real path relative to the workspace.
    pub fn paths(&self) -> Vec<String> {
        self.slots.read(|slots| slots.reads.keys().cloned().collect())
    }

    /// What is known of a file, as of now.
    pub fn stamp(&self, path: &str) -> Option<ReadStamp> {
        self.slots.read(|slots| slots.reads.get(path).cloned())
    }
}

/// Equal when nothing was read between the two.
impl PartialEq for ReadsView {
    fn eq(&self, other: &Self) -> bool {
        self.count == other.count && self.mark == other.mark
    }
}

impl fmt::Debug for ReadsView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadsView").field("count", &self.count).finish_non_exhaustive()
    }
}
