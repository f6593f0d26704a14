//! The command line of memories.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use super::DataArgs;

#[derive(Debug, Parser)]
pub(crate) struct MemoryArgs {
    #[command(subcommand)]
    pub(crate) command: MemoryCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MemoryCommand {
    /// All memories of the project, and what is off about them
    List(MemoryListArgs),
    /// One memory, as its file says it
    Show(MemoryShowArgs),
    /// Keep something for later sessions
    Add(MemoryAddArgs),
    /// Remove a memory
    Rm(MemoryNameArgs),
    /// Where the memories of the project are, or would be
    Path(MemoryPlaceArgs),
}

/// Which memories.
#[derive(Debug, Args)]
pub(crate) struct MemoryPlaceArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// A directory of the project
    #[arg(long, default_value = ".")]
    pub(crate) cwd: PathBuf,
    /// The directory of memories itself, in place of the project's
    #[arg(long, value_name = "DIR")]
    pub(crate) memory_dir: Option<PathBuf>,
}

#[derive(Debug, Parser)]
pub(crate) struct MemoryListArgs {
    #[command(flatten)]
    pub(crate) place: MemoryPlaceArgs,
    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Parser)]
pub(crate) struct MemoryShowArgs {
    /// The memory
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) place: MemoryPlaceArgs,
    /// Print it as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Parser)]
pub(crate) struct MemoryAddArgs {
    /// Lower-case letters, digits, `_` and `-`
    #[arg(long)]
    pub(crate) name: String,
    /// user, feedback, project or reference
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) kind: String,
    /// One line: when it matters
    #[arg(long, allow_hyphen_values = true)]
    pub(crate) description: String,
    /// What is to be remembered; feedback says **Why:** and **How to apply:**
    #[arg(long, allow_hyphen_values = true)]
    pub(crate) body: String,
    #[command(flatten)]
    pub(crate) place: MemoryPlaceArgs,
}

#[derive(Debug, Parser)]
pub(crate) struct MemoryNameArgs {
    /// The memory
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) place: MemoryPlaceArgs,
}
