//! What an agent keeps beyond a session, as the command line says it.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct KeptArgs {
    /// Keep memories of the project: a session that begins is told which there are, the tool `memory` reads and writes them,
    /// what a turn taught is extracted behind it, and notes are kept on a long session. The last two ask the model more often.
    /// Also on with {"memory": {"on": true}} in the user's, local or managed settings
    #[arg(long)]
    pub(crate) memory: bool,
    /// The directory of memories, in place of the project's; with it, memories are kept
    #[arg(long, value_name = "DIR")]
    pub(crate) memory_dir: Option<PathBuf>,
    /// A model of the same provider that extracts memories where that costs less than the run's own, which reads the session
    /// from its cache
    #[arg(long, value_name = "NAME")]
    pub(crate) memory_model: Option<String>,
}
