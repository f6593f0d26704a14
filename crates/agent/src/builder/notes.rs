//! Session notes: who keeps them, and that the agent has the tool they are written with.

use agent_harness::NotesWriter;
use agent_memory::MEMORY_TOOL;
use agent_tools::ToolSet;

use super::{AgentBuilder, BuildError, Parts};

impl<M> AgentBuilder<M> {
    /// Keeps rolling notes on each session, written beside its turns, and begins its compactions from them (requirement C2). A
    /// clone that is kept outside watches it. Drain the agent before the program ends, and when a session is deleted, remove
    /// [`NotesWriter::file`].
    ///
    /// They are written with the tool `memory`, which the agent must be given too, with notes in the same data directory:
    ///
    #[cfg_attr(feature = "builtins", doc = "```")]
    #[cfg_attr(not(feature = "builtins"), doc = "```ignore")]
    /// use agent::{Agent, NotesPolicy, NotesWriter, ToolSet};
    /// use agent_memory::{MemoryDir, MemoryFiles};
    /// # use agent_testkit::{Reply, ScriptedModel};
    /// # let model = || ScriptedModel::new(vec![Reply::text("Hello!")]);
    /// # let place = tempfile::tempdir()?;
    /// # let data = place.path();
    ///
    /// let files = MemoryFiles::new(MemoryDir::open(&data.join("memory"))?).with_notes(data);
    /// let tools = ToolSet::builder().with(agent_builtins::memory(files)).freeze()?;
    /// let notes = NotesWriter::new(data, NotesPolicy::default());
    /// let agent = Agent::builder().model(model()).tools(tools).session_notes(notes.clone()).build()?;
    ///
    /// let without = Agent::builder().model(model()).session_notes(notes).build().unwrap_err();
    /// assert!(without.to_string().contains("give it the tool `memory`"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn session_notes(mut self, notes: NotesWriter) -> Self {
        self.parts.writes_notes = true;
        self.after_step(notes.clone()).notes(notes)
    }
}

impl Parts {
    /// Refuses notes that nobody could write.
    pub(super) fn check_notes(&self, tools: &ToolSet) -> Result<(), BuildError> {
        if self.writes_notes && tools.get(MEMORY_TOOL).is_none() {
            return Err(BuildError::NoMemoryTool);
        }
        Ok(())
    }
}
