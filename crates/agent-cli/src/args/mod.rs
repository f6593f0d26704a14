//! The command line.

mod agent_args;
mod budget;
mod kept;
mod memory;
mod sessions;
mod tools;

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use crate::parked::quoted;

pub(crate) use agent_args::AgentArgs;
pub(crate) use budget::BudgetArgs;
pub(crate) use kept::KeptArgs;
pub(crate) use memory::{
    MemoryAddArgs, MemoryArgs, MemoryCommand, MemoryListArgs, MemoryNameArgs, MemoryPlaceArgs, MemoryShowArgs,
};
pub(crate) use sessions::{
    DeleteArgs, EventsArgs, ExportArgs, ForkArgs, ImportArgs, ListArgs, ReplyArgs, ResumeArgs, SessionsArgs,
    SessionsCommand, ShowArgs,
};
pub(crate) use tools::{
    CallArgs, PermissionsArgs, PermissionsCheckArgs, PermissionsCommand, ReachArgs, RuleArgs, SandboxArg,
    SkillArgs, ToolsArgs, ToolsCommand, ToolsListArgs, ToolsShowArgs,
};

/// An agent that works in a directory through tools, and can stop, crash and continue.
#[derive(Debug, Parser)]
#[command(name = "agent", version, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Give the agent a message and watch it work
    Run(RunArgs),
    /// See a whole run, offline and without a key: simulated provider, real HTTP, real tools
    Demo(DemoArgs),
    /// See what would be sent next, block by block, without a key; no model is asked and nothing is written
    Explain(ExplainArgs),
    /// Examine the agent: ten points, each with evidence; fails when one does
    Doctor(DoctorArgs),
    /// Make the context of a session smaller now, also one that is full
    Compact(StoredArgs),
    /// See how full the context of a session is, and where something happens
    Context(StoredArgs),
    /// Take up a session's open turn: after a crash, or with a reply to what it waits for
    Resume(ResumeArgs),
    /// Look at stored sessions; fork, export, import and delete them
    Sessions(SessionsArgs),
    /// See what happened in a session, also while another process works on it
    Events(EventsArgs),
    /// What stored sessions cost, and how their turns ended
    Stats(StatsArgs),
    /// Look at what is kept for later sessions on a project, and keep or remove it
    Memory(MemoryArgs),
    /// Look at the built-in tools, and run one as a model would have it run
    Tools(ToolsArgs),
    /// Try what the permission rules say of a call; nothing runs
    Permissions(PermissionsArgs),
    /// Look at what goes over the wire to a provider
    Wire(WireArgs),
    /// Find out why prompts are paid for again
    Cache(CacheArgs),
    /// Serve a simulated provider that checks, accounts and fails like the real ones, for agents in any language
    Sim(SimArgs),
}

#[derive(Debug, Parser)]
pub(crate) struct RunArgs {
    /// What the agent is to do
    #[arg(allow_hyphen_values = true)]
    pub(crate) prompt: String,
    /// A session to begin or go on with; an interrupted turn is taken up
    #[arg(long)]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
    /// Print events as JSON Lines
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Parser)]
pub(crate) struct ExplainArgs {
    /// What the user says next; without it an interrupted turn goes on, or a stand-in is shown
    #[arg(allow_hyphen_values = true)]
    pub(crate) prompt: Option<String>,
    /// A session, stored or new; without it, one that begins
    #[arg(long)]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
    /// Print it as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Show the body too, byte for byte as it would be sent: the last line, or the member `body`
    #[arg(long)]
    pub(crate) wire: bool,
}

#[derive(Debug, Parser)]
pub(crate) struct StoredArgs {
    /// The session
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
    /// Print it as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Parser)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
    /// Print it as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Parser)]
pub(crate) struct ModelsArgs {
    /// A table of what models can do, refuse and cost, laid over the built-in one; `agent run` also reads models.json in the
    /// data directory
    #[arg(long = "models", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, Parser)]
pub(crate) struct DataArgs {
    /// Where sessions are kept; default AGENT_DATA_DIR, else the platform's data directory
    #[arg(long)]
    pub(crate) data_dir: Option<PathBuf>,
}

impl DataArgs {
    /// The flags that lead another command to the same sessions.
    pub(crate) fn flags(&self) -> String {
        let dir = self.data_dir.as_ref();
        dir.map_or_else(String::new, |dir| format!(" --data-dir {}", quoted(&dir.display().to_string())))
    }
}

#[derive(Debug, Parser)]
pub(crate) struct DemoArgs {
    /// What to show in place of a run that mends a project
    #[arg(value_enum)]
    pub(crate) of: Option<DemoOf>,
    /// Print events as JSON Lines
    #[arg(long)]
    pub(crate) json: bool,
    /// Keep the workspace and the session in this directory, which must be empty or new
    #[arg(long)]
    pub(crate) keep: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DemoOf {
    /// Three sessions: what is learnt in the first is used in the third
    Memory,
}

#[derive(Debug, Parser)]
pub(crate) struct StatsArgs {
    /// One session; all of them without it
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) known: ModelsArgs,
    /// Print it as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Parser)]
pub(crate) struct CacheArgs {
    #[command(subcommand)]
    pub(crate) command: CacheCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// Hold the requests of an agent, one JSON object a line, against each other as a prompt cache does
    Audit(AuditArgs),
    /// Play scenarios through the harness against a simulated provider, and hold them to their budgets
    Check(CheckArgs),
    /// The agent of a scenario; `check` starts it
    #[command(hide = true)]
    Play,
}

#[derive(Debug, Parser)]
pub(crate) struct CheckArgs {
    /// Scenario files, or folders of them
    #[arg(default_value = "fixtures/cache")]
    pub(crate) paths: Vec<PathBuf>,
    /// Print one JSON object for each scenario
    #[arg(long)]
    pub(crate) json: bool,
    /// Print a line for each request too
    #[arg(long)]
    pub(crate) rows: bool,
    /// Draw what was found into this file, a page of its own
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
}

#[derive(Debug, Parser)]
pub(crate) struct AuditArgs {
    /// Request bodies (Anthropic Messages, OpenAI Chat Completions or Responses), or recorded exchanges, one a line
    pub(crate) file: PathBuf,
    /// Whose cache rules count; default those of the format's inventor
    #[arg(long)]
    pub(crate) provider: Option<String>,
    /// Fail when a smaller share of the input than this was read from the cache, over all requests, 0 to 100
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(crate) min_hit_rate: Option<f64>,
    /// Fail when the input cost more than so many times the ideal, in which each token is written once and read ever
    /// after; 1 is the ideal
    #[arg(long, value_name = "X", value_parser = ratio)]
    pub(crate) max_cost_ratio: Option<f64>,
    /// Print one JSON object for each request, and a last one with the sums
    #[arg(long)]
    pub(crate) json: bool,
}

fn percent(given: &str) -> Result<f64, String> {
    let number = given.trim_end_matches('%').parse().ok().filter(|number| (0.0..=100.0).contains(number));
    number.ok_or_else(|| "give a number from 0 to 100, for example 90".into())
}

fn ratio(given: &str) -> Result<f64, String> {
    let number = given.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "give a number above 0, for example 1.1".into())
}

#[derive(Debug, Parser)]
pub(crate) struct SimArgs {
    /// The port on this machine; 0 takes a free one and prints it
    #[arg(long, default_value_t = 8787)]
    pub(crate) port: u16,
    /// What the model says: a JSON array of replies, as docs/guides/testing-your-agent.md describes it. Without one, each answer
    /// says what was asked
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// Give replies one after the other; default by the number of assistant messages in the request
    #[arg(long)]
    pub(crate) in_order: bool,
    /// Whose cache rules count, for example bedrock or deepseek, or `none`; default those of the format's inventor
    #[arg(long)]
    pub(crate) provider: Option<String>,
    /// A table of cache rules laid over the built-in one
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: Option<PathBuf>,
    /// Tokens a prompt may have; default what is known of the model
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) context_window: Option<u64>,
    /// Print one JSON object a line on standard output: the address, then how each request was answered
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Parser)]
pub(crate) struct WireArgs {
    #[command(subcommand)]
    pub(crate) command: WireCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WireCommand {
    /// Decode one raw response body from standard input and print what it says as JSON
    Decode(DecodeArgs),
    /// Read a transcript as JSON from standard input and print the request body that a provider gets
    Encode(EncodeArgs),
    /// Read a request body of one format from standard input and print it in another
    Convert(ConvertArgs),
    /// Decode and compare recorded exchanges, one JSON object a line
    Replay(ReplayArgs),
}

#[derive(Debug, Parser)]
pub(crate) struct DecodeArgs {
    /// The provider's format: anthropic, openai-responses, openai-chat, gemini or ollama
    #[arg(long)]
    pub(crate) format: String,
    /// Who answered, where its answers differ from the format's, for example deepseek or mistral
    #[arg(long)]
    pub(crate) provider: Option<String>,
    /// Standard input is a JSON object {"chunks_hex": [...], "end": "eof"}: network reads in order. How the body ended is for
    /// the record: an answer without its last event is interrupted either way
    #[arg(long)]
    pub(crate) chunks: bool,
    /// The HTTP status of the response
    #[arg(long, value_parser = clap::value_parser!(u16).range(100..600))]
    pub(crate) status: Option<u16>,
    /// A header of the response, as 'name: value'; may be given more than once
    #[arg(long = "header")]
    pub(crate) headers: Vec<String>,
}

#[derive(Debug, Parser)]
pub(crate) struct EncodeArgs {
    /// The format to write: anthropic, openai-responses, openai-chat, gemini or ollama
    #[arg(long)]
    pub(crate) format: String,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

#[derive(Debug, Parser)]
pub(crate) struct ConvertArgs {
    /// The format of the request on standard input, or `transcript`
    #[arg(long)]
    pub(crate) from: String,
    /// The format to write, or `transcript`
    #[arg(long)]
    pub(crate) to: String,
    /// Whose request is on standard input, where the provider's differ from the format's
    #[arg(long)]
    pub(crate) from_provider: Option<String>,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

/// Whom a request is written for.
#[derive(Debug, Parser)]
pub(crate) struct TargetArgs {
    /// Who gets the request, where the provider's differ from the format's, for example deepseek or mistral
    #[arg(long)]
    pub(crate) provider: Option<String>,
    /// The model; default the one of the input
    #[arg(long)]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) known: ModelsArgs,
}

#[derive(Debug, Parser)]
pub(crate) struct ReplayArgs {
    /// Files of recorded exchanges
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// The provider's format; default the one that the path of a file's first request is known for
    #[arg(long)]
    pub(crate) format: Option<String>,
    /// Who answered, where its answers differ from the format's
    #[arg(long)]
    pub(crate) provider: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ModeArg {
    /// Readers run; edits, programs and the network ask
    Default,
    /// Readers run; everything else is refused
    Plan,
    /// Readers and edits run; programs and the network ask
    AcceptEdits,
    /// Everything runs
    Bypass,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AskMode {
    /// Ask on the terminal
    Prompt,
    /// Refuse, and tell the model why
    Deny,
    /// Allow
    Allow,
    /// Stop and wait: the turn goes on with `agent resume`
    Later,
}

impl From<ModeArg> for agent::PermissionMode {
    fn from(mode: ModeArg) -> Self {
        match mode {
            ModeArg::Default => Self::Default,
            ModeArg::Plan => Self::Plan,
            ModeArg::AcceptEdits => Self::AcceptEdits,
            ModeArg::Bypass => Self::Bypass,
        }
    }
}
