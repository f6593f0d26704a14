//! What an agent keeps for later sessions.

use std::path::PathBuf;
use std::sync::Arc;

use agent_core::LanguageModel;
use agent_harness::{MemoryExtractor, MemoryIndex, NotesWriter};
use agent_memory::{MemoryDir, MemoryError, MemoryFiles, MemoryPlace, NotesPolicy};
use agent_tools::{ToolSet, ToolSetError};

use super::AgentBuilder;

/// Memories for [`AgentBuilder::memory`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MemoryConfig {
    /// The memories.
    pub memories: Arc<MemoryDir>,
    /// The data directory of the program: how far each session was looked at is kept there.
    pub data: PathBuf,
    /// What extracts memories behind turns, when something does; ask it for its status.
    pub extractor: Option<Arc<MemoryExtractor>>,
    /// What keeps notes on each session, when something does; ask it for its status.
    pub notes: Option<NotesWriter>,
}

impl MemoryConfig {
    /// Opens the memories at a place, which is made as needed. The agent writes them itself only.
    ///
    /// # Errors
    /// When the directory cannot be opened.
    pub fn open(place: &MemoryPlace, data: impl Into<PathBuf>) -> Result<Self, MemoryError> {
        Ok(Self::new(MemoryDir::open(&place.path)?, data))
    }

    /// The same with memories that are open already.
    pub fn new(memories: impl Into<Arc<MemoryDir>>, data: impl Into<PathBuf>) -> Self {
        Self { memories: memories.into(), data: data.into(), extractor: None, notes: None }
    }

    /// Has memories extracted behind turns too, in a run beside the session that reads its cached prefix (requirement C3). Drain
    /// the agent before the program ends.
    #[must_use]
    pub fn extracting(mut self) -> Self {
        self.extractor = Some(Arc::new(MemoryExtractor::new(self.memories.clone(), self.data.clone())));
        self
    }

    /// The same, by another model where it costs less than the session's own.
    #[must_use]
    pub fn extracting_or_by(mut self, model: impl LanguageModel + 'static) -> Self {
        let extractor = MemoryExtractor::new(self.memories.clone(), self.data.clone());
        self.extractor = Some(Arc::new(extractor.or_by(Arc::new(model))));
        self
    }

    /// Keeps rolling notes on each session too, from which its compactions begin ([`AgentBuilder::session_notes`], requirement
    /// C2).
    #[must_use]
    pub fn noting(mut self, policy: NotesPolicy) -> Self {
        self.notes = Some(NotesWriter::new(self.data.clone(), policy));
        self
    }

    /// What the tool `memory` reaches.
    fn files(&self) -> MemoryFiles {
        let files = MemoryFiles::new(self.memories.clone());
        if self.notes.is_some() { files.with_notes(self.data.clone()) } else { files }
    }
}

impl<M> AgentBuilder<M> {
    /// Lets the agent keep memories for later sessions (requirements C1 and C3, feature `builtins`): a session that begins is told
    /// which there are, in the layer `Auto`; the tool `memory` reads and writes them, where no tool has that name; and where that
    /// is asked for, they are extracted behind turns, and notes are kept on each session.
    ///
    /// ```
    /// use agent::{Agent, NotesPolicy};
    /// use agent::memory::{MemoryConfig, MemoryPlace, project_root};
    /// # use agent_testkit::{Reply, ScriptedModel};
    /// # let model = ScriptedModel::new(vec![Reply::text("Hello!")]);
    /// # let home = tempfile::tempdir()?;
    /// # let (data, project) = (home.path().join("data"), home.path().to_owned());
    ///
    /// // `<data>/projects/<project>/memory`; settings of a trusted source may say another place.
    /// let place = MemoryPlace::resolve(&[], &data, &project_root(&project))?;
    /// let memory = MemoryConfig::open(&place, &data)?.extracting().noting(NotesPolicy::default());
    /// let extractor = memory.extractor.clone();
    /// let agent = Agent::builder().model(model).memory(memory).build()?;
    ///
    /// assert_eq!(agent.harness().config().tools.names(), "memory");
    /// assert!(extractor.is_some_and(|extractor| extractor.status().get().last.is_none()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn memory(mut self, memory: MemoryConfig) -> Self {
        self.parts.sources.push(Arc::new(MemoryIndex::new(memory.memories.clone())));
        self.parts.memory = Some(memory.files());
        self.parts.after_turn.extend(memory.extractor.map(|extractor| extractor as _));
        match memory.notes {
            Some(notes) => self.session_notes(notes),
            None => self,
        }
    }
}

/// The tools with the tool `memory` behind them, where there are memories.
pub(super) fn with_tool(tools: ToolSet, files: Option<MemoryFiles>) -> Result<ToolSet, ToolSetError> {
    let Some(files) = files.filter(|_| tools.get(agent_memory::MEMORY_TOOL).is_none()) else {
        return Ok(tools);
    };
    ToolSet::builder().extend(tools.iter().cloned()).with(agent_builtins::memory(files)).freeze()
}
