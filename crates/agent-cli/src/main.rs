//! The `agent` program: run, resume, explain and examine an agent, try its tools and permissions, look at sessions, debug the wire.

mod agents;
mod args;
mod ask;
mod assemble;
mod clock;
mod cmd;
mod env;
mod error;
mod limits;
mod memory;
mod models;
mod parked;
mod secret;
mod settings;
mod show;
mod skills;
mod tell;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use crate::args::{
    AgentArgs, Args, CacheCommand, Command, MemoryCommand, PermissionsCommand, SessionsCommand, ToolsCommand,
    WireCommand,
};
use crate::error::CliError;

fn main() -> ExitCode {
    let args = Args::parse();
    start_log();
    // Before anything else runs: it may start the program again.
    let key = match &args.command {
        Command::Run(run) => take_key(&run.agent),
        Command::Resume(resume) => take_key(&resume.agent),
        Command::Compact(compact) => take_key(&compact.agent),
        Command::Demo(_)
        | Command::Explain(_)
        | Command::Doctor(_)
        | Command::Context(_)
        | Command::Sessions(_)
        | Command::Events(_)
        | Command::Stats(_)
        | Command::Memory(_)
        | Command::Tools(_)
        | Command::Permissions(_)
        | Command::Wire(_)
        | Command::Cache(_)
        | Command::Sim(_) => None,
    };
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return complain(&CliError::Runtime(error)),
    };
    let ended = runtime.block_on(dispatch(args.command, key));
    // A thread may still wait for an answer on the terminal; it is not waited for.
    runtime.shutdown_background();
    ended.unwrap_or_else(|error| complain(&error))
}

fn take_key(args: &AgentArgs) -> Option<String> {
    let (vendor, _) = args.chosen()?;
    secret::take_key(&vendor.key_env)
}

async fn dispatch(command: Command, key: Option<String>) -> Result<ExitCode, CliError> {
    match command {
        Command::Run(args) => cmd::run::run(args, key).await,
        Command::Resume(args) => cmd::resume::resume(args, key).await,
        Command::Explain(args) => cmd::explain::explain(args).await,
        Command::Doctor(args) => cmd::doctor::doctor(args).await,
        Command::Compact(args) => cmd::context::compact(args, key).await,
        Command::Context(args) => cmd::context::context(args).await,
        Command::Demo(args) => cmd::demo::demo(args).await,
        Command::Sessions(args) => match args.command {
            SessionsCommand::List(args) => cmd::sessions::list(args).await,
            SessionsCommand::Show(args) => cmd::sessions::show(args).await,
            SessionsCommand::Fork(args) => cmd::sessions::fork(args).await,
            SessionsCommand::Export(args) => cmd::sessions::export(args).await,
            SessionsCommand::Import(args) => cmd::sessions::import(args).await,
            SessionsCommand::Delete(args) => cmd::sessions::delete(args).await,
        },
        Command::Events(args) => cmd::events::events(args).await,
        Command::Stats(args) => cmd::stats::stats(args).await,
        Command::Memory(args) => match args.command {
            MemoryCommand::List(args) => cmd::memory::list(args),
            MemoryCommand::Show(args) => cmd::memory::show(args),
            MemoryCommand::Add(args) => cmd::memory::add(args),
            MemoryCommand::Rm(args) => cmd::memory::rm(args),
            MemoryCommand::Path(args) => cmd::memory::path(args),
        },
        Command::Tools(args) => match args.command {
            ToolsCommand::List(args) => cmd::tools::list(&args),
            ToolsCommand::Show(args) => cmd::tools::show(&args),
            ToolsCommand::Call(args) => cmd::tools::call(*args).await,
        },
        Command::Permissions(args) => match args.command {
            PermissionsCommand::Check(args) => cmd::permissions::check(args).await,
        },
        Command::Cache(args) => match args.command {
            CacheCommand::Audit(args) => cmd::cache::audit(&args),
            CacheCommand::Check(args) => cmd::cache::check(&args).await,
            CacheCommand::Play => cmd::cache::play().await,
        },
        Command::Sim(args) => cmd::sim::sim(args).await,
        Command::Wire(args) => match args.command {
            WireCommand::Decode(args) => cmd::wire::decode::decode(&args),
            WireCommand::Encode(args) => cmd::wire::convert::encode(&args),
            WireCommand::Convert(args) => cmd::wire::convert::convert(&args),
            WireCommand::Replay(args) => cmd::wire::replay::replay(&args),
        },
    }
}

/// The log goes to standard error, and only when `AGENT_LOG` asks for it.
fn start_log() {
    let Some(filter) = env::var("AGENT_LOG") else { return };
    let filter = tracing_subscriber::EnvFilter::new(filter);
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
}

fn complain(error: &CliError) -> ExitCode {
    if error.is_closed_pipe() {
        // The reader had enough, as `head` does; what was committed stays.
        return ExitCode::from(CLOSED_PIPE);
    }
    let mut text = format!("agent: {error}");
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = error.source();
    }
    // Standard error may be closed; there is nobody left to tell then.
    drop(writeln!(std::io::stderr(), "{text}"));
    ExitCode::from(error.code())
}

/// The status of a program whose reader went away: 128 and the number of SIGPIPE.
const CLOSED_PIPE: u8 = 141;
