//! The command line of everything about tools and the permission to run them.

use std::path::PathBuf;

use agent::{AllowedHost, Pattern};
use clap::{Parser, Subcommand, ValueEnum};

use super::ModeArg;

/// What the command line says of permissions.
#[derive(Debug, Parser)]
pub(crate) struct RuleArgs {
    /// What may happen without asking; default what the settings say, else `default`
    #[arg(long, value_enum)]
    pub(crate) permission_mode: Option<ModeArg>,
    /// Calls that run without a question, as TOOL or TOOL(ARGUMENT); may be given more than once
    #[arg(long, value_name = "RULE")]
    pub(crate) allow: Vec<Pattern>,
    /// Calls that are refused, whatever else allows them; may be given more than once
    #[arg(long, value_name = "RULE")]
    pub(crate) deny: Vec<Pattern>,
    /// Calls that are asked about, also where the mode would let them run; may be given more than once
    #[arg(long, value_name = "RULE")]
    pub(crate) ask_rule: Vec<Pattern>,
    #[command(flatten)]
    pub(crate) managed: ManagedArgs,
}

/// How far tools reach.
#[derive(Debug, Clone, Parser)]
pub(crate) struct ReachArgs {
    /// Where commands run
    #[arg(long, value_enum, default_value_t = SandboxArg::Local)]
    pub(crate) sandbox: SandboxArg,
    /// A host or network that web_fetch may reach though it is not public, such as localhost or 10.1.0.0/16; may be given
    /// more than once
    #[arg(long, value_name = "HOST")]
    pub(crate) allow_host: Vec<AllowedHost>,
}

#[derive(Debug, Parser)]
pub(crate) struct ManagedArgs {
    /// Settings that no other ones outrank; default the file that AGENT_MANAGED_SETTINGS names
    #[arg(long, value_name = "FILE")]
    pub(crate) managed_settings: Option<PathBuf>,
}

/// Where skills are, besides the usual places.
#[derive(Debug, Default, Parser)]
pub(crate) struct SkillArgs {
    /// A folder of skills, besides .agent/skills of the workspace and of the user; may be given more than once, and comes
    /// first
    #[arg(long, value_name = "DIR")]
    pub(crate) skills: Vec<PathBuf>,
}

#[derive(Debug, Parser)]
pub(crate) struct ToolsArgs {
    #[command(subcommand)]
    pub(crate) command: ToolsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// All built-in tools: what kind of effect each has, what happens to its calls in the default mode, what it does
    List(ToolsListArgs),
    /// One tool as the model sees it, and what the harness knows of it
    Show(ToolsShowArgs),
    /// Run one tool exactly as a model would have it run; exit status 0 for a result, 1 for an error result
    ///
    /// Each call is a session of its own: a background job ends with it, and a file that is to be changed has to be read in
    /// it first, with --read.
    Call(Box<CallArgs>),
}

#[derive(Debug, Parser)]
pub(crate) struct ToolsListArgs {
    #[command(flatten)]
    pub(crate) skills: SkillArgs,
    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Parser)]
pub(crate) struct ToolsShowArgs {
    /// The tool
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) skills: SkillArgs,
    /// Print it as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Parser)]
pub(crate) struct CallArgs {
    /// The tool
    pub(crate) name: String,
    /// Its input, as the model would write it
    #[arg(value_name = "INPUT_JSON", allow_hyphen_values = true)]
    pub(crate) input: String,
    /// The directory to work in
    #[arg(long, default_value = ".")]
    pub(crate) cwd: PathBuf,
    /// Answer yes when the call needs permission; what a rule refuses stays refused
    #[arg(long)]
    pub(crate) yes: bool,
    /// A file that read_file reads before the call, as edit_file and write_file want it; may be given more than once
    #[arg(long, value_name = "PATH")]
    pub(crate) read: Vec<String>,
    #[command(flatten)]
    pub(crate) rules: RuleArgs,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
    #[command(flatten)]
    pub(crate) skills: SkillArgs,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Parser)]
pub(crate) struct PermissionsArgs {
    #[command(subcommand)]
    pub(crate) command: PermissionsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PermissionsCommand {
    /// Print allow, ask or deny for a call, and what decided: the rule, its layer, and the part of the input
    Check(PermissionsCheckArgs),
}

#[derive(Debug, Parser)]
pub(crate) struct PermissionsCheckArgs {
    /// The tool
    pub(crate) tool: String,
    /// Its input
    #[arg(value_name = "INPUT_JSON", allow_hyphen_values = true)]
    pub(crate) input: String,
    /// A rule that allows, as TOOL or TOOL(ARGUMENT); may be given more than once
    #[arg(long, value_name = "RULE")]
    pub(crate) allow: Vec<Pattern>,
    /// A rule that asks; may be given more than once
    #[arg(long, value_name = "RULE")]
    pub(crate) ask: Vec<Pattern>,
    /// A rule that refuses; may be given more than once
    #[arg(long, value_name = "RULE")]
    pub(crate) deny: Vec<Pattern>,
    /// What happens where no rule speaks; default what the settings say, else `default`
    #[arg(long, value_enum)]
    pub(crate) mode: Option<ModeArg>,
    /// The workspace whose settings and files count
    #[arg(long, default_value = ".")]
    pub(crate) cwd: PathBuf,
    #[command(flatten)]
    pub(crate) managed: ManagedArgs,
    /// Print it as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

impl ReachArgs {
    /// As far as without any flag.
    pub(crate) fn usual() -> Self {
        Self { sandbox: SandboxArg::Local, allow_host: Vec::new() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SandboxArg {
    /// On this machine, with your rights
    Local,
    /// Behind bubblewrap: without a network, and with nothing but the workspace and the system's programs
    Isolated,
}
