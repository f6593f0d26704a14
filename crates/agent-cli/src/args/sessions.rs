//! The command line of stored sessions: taking them up, looking at them, moving them.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use super::{AgentArgs, DataArgs};

// `--deny` is a reply here; the rule of that name has another flag.
#[derive(Debug, Parser)]
#[command(mut_arg("deny", |rule| rule.long("deny-rule")))]
pub(crate) struct ResumeArgs {
    /// The session
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) reply: ReplyArgs,
    #[command(flatten)]
    pub(crate) agent: AgentArgs,
    /// Print events as JSON Lines
    #[arg(long)]
    pub(crate) json: bool,
}

/// One reply to one request, or what becomes of the turn. `agent sessions list` names the requests.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct ReplyArgs {
    /// Run the call that asks for permission
    #[arg(long, value_name = "REQ")]
    pub(crate) approve: Option<String>,
    /// Run it, and do not ask again in this session
    #[arg(long, value_name = "REQ")]
    pub(crate) always: Option<String>,
    /// Do not run it, or leave a question without an answer; the model gets the words
    #[arg(long = "deny", value_names = ["REQ", "WORDS"], num_args = 1..=2, allow_hyphen_values = true)]
    pub(crate) decline: Option<Vec<String>>,
    /// Answer a question; several answers where several may be chosen
    #[arg(long, value_names = ["REQ", "TEXT"], num_args = 2.., allow_hyphen_values = true)]
    pub(crate) answer: Option<Vec<String>>,
    /// Run the call with another input
    #[arg(long, value_names = ["REQ", "JSON"], num_args = 2)]
    pub(crate) edit: Option<Vec<String>>,
    /// Give the result of work that is done elsewhere
    #[arg(long, value_names = ["REQ", "JSON"], num_args = 2)]
    pub(crate) result: Option<Vec<String>>,
    /// Say that the sign-in was made
    #[arg(long, value_name = "REQ")]
    pub(crate) signed_in: Option<String>,
    /// Go on though the program was lost over this turn again and again; the count begins anew
    #[arg(long)]
    pub(crate) again: bool,
    /// End the turn: nothing of it runs any more, and what it reached stays
    #[arg(long)]
    pub(crate) abandon: bool,
}

#[derive(Debug, Parser)]
pub(crate) struct EventsArgs {
    /// The session
    pub(crate) id: String,
    /// The first number that is shown
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) from: u64,
    /// Go on with what happens, whichever process does it, until no turn is open
    #[arg(long)]
    pub(crate) follow: bool,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Parser)]
pub(crate) struct SessionsArgs {
    #[command(subcommand)]
    pub(crate) command: SessionsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// All sessions, the last used first, with what they wait for
    List(ListArgs),
    /// One session's conversation, also of a damaged one as far as it can be read
    Show(ShowArgs),
    /// Begin another session as a copy of the beginning of one
    Fork(ForkArgs),
    /// Write a session as JSON Lines; exit status 1 when a part of it cannot be read
    Export(ExportArgs),
    /// Read a session that was exported; exit status 1 when a part of it cannot be read
    Import(ImportArgs),
    /// Delete sessions with all they keep, and with the sessions of their sub-agents
    Delete(DeleteArgs),
}

#[derive(Debug, Parser)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Parser)]
pub(crate) struct ShowArgs {
    /// The session
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Print the stored events as JSON Lines
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the number of each entry, for `agent sessions fork --at`
    #[arg(long)]
    pub(crate) numbers: bool,
}

#[derive(Debug, Parser)]
pub(crate) struct ForkArgs {
    /// The session to copy from
    pub(crate) id: String,
    /// The last entry to copy, as `agent sessions show --numbers` counts them; default the newest
    #[arg(long, value_name = "ENTRY")]
    pub(crate) at: Option<u64>,
    /// The name of the new session; default a fresh one
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

#[derive(Debug, Parser)]
pub(crate) struct ExportArgs {
    /// The session
    pub(crate) id: String,
    /// Where to write it; default standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

#[derive(Debug, Parser)]
pub(crate) struct ImportArgs {
    /// The file; default standard input
    pub(crate) file: Option<PathBuf>,
    /// Another name for the session
    #[arg(long = "as", value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

#[derive(Debug, Parser)]
pub(crate) struct DeleteArgs {
    /// The sessions
    #[arg(required = true)]
    pub(crate) ids: Vec<String>,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}
