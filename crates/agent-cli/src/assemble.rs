//! Puts an agent together from what the command line says.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent::{
    Agent, AgentBuilder, AllowAll, AnthropicConfig, AnthropicModel, ApiKey, LocalSandbox, NobodyToAsk,
    Permissions, SqliteStore, StopConditionExt, ToolSet, WithModel, builtins, step_count, tool_called,
};

use crate::args::{AskMode, RunArgs};
use crate::ask::TerminalAsker;
use crate::env;
use crate::error::CliError;

const SYSTEM: &str = include_str!("../prompt/system.md");
/// A server of one's own needs no key, but its clients send one.
const LOCAL_KEY: &str = "local";
/// The file that a store keeps its sessions in.
const DATABASE: &str = "sessions.db";

/// What every agent of this program has.
pub(crate) struct Base<'a> {
    pub(crate) model: AnthropicModel,
    pub(crate) workspace: &'a Path,
    pub(crate) data: &'a Path,
    pub(crate) permissions: Permissions,
    pub(crate) max_steps: u32,
}

/// The agent of `agent run`.
pub(crate) fn agent(args: &RunArgs) -> Result<Agent, CliError> {
    let data = env::data_dir(args.data.data_dir.clone())?;
    let base = Base {
        model: model(args)?,
        workspace: &args.cwd,
        data: &data,
        permissions: Permissions { mode: args.permission_mode.into(), ..Permissions::default() },
        max_steps: args.max_steps,
    };
    let builder = builder(base)?;
    let builder = match ask_mode(args.ask)? {
        AskMode::Prompt => builder.asker(TerminalAsker),
        AskMode::Deny => builder.asker(NobodyToAsk::default()),
        AskMode::Allow => builder.asker(AllowAll::default()),
    };
    Ok(builder.build()?)
}

/// Built-in tools on the workspace, sessions on disk, the program's own instructions.
pub(crate) fn builder(base: Base<'_>) -> Result<AgentBuilder<WithModel>, CliError> {
    let sandbox = LocalSandbox::open(base.workspace)?.env(env::vars());
    let place = format!("The workspace is {}. Paths are relative to it.", sandbox.path().display());
    let tools = ToolSet::builder().extend(builtins::all(Arc::new(sandbox))).freeze()?;
    let store = SqliteStore::open(base.data)?;
    let builder = Agent::builder().model(base.model).store(store).tools(tools);
    let stop = step_count(base.max_steps).or(tool_called("complete"));
    Ok(builder.system(SYSTEM).system(place).permissions(base.permissions).stop(stop))
}

fn model(args: &RunArgs) -> Result<AnthropicModel, CliError> {
    let name = match args.model.split_once('/') {
        Some(("anthropic", name)) if !name.is_empty() => name.to_owned(),
        _ => return Err(CliError::Model { given: args.model.clone() }),
    };
    let mut config = AnthropicConfig { model: name, ..AnthropicConfig::default() };
    if let Some(base_url) = args.base_url.clone().or_else(|| env::var("ANTHROPIC_BASE_URL")) {
        config.base_url = base_url;
    }
    config.api_key = match env::var("ANTHROPIC_API_KEY") {
        Some(key) => ApiKey::new(key),
        None if is_local(&config.base_url) => ApiKey::new(LOCAL_KEY),
        None => return Err(CliError::NoKey),
    };
    Ok(AnthropicModel::new(config)?)
}

/// Whether the address is on this machine.
fn is_local(base_url: &str) -> bool {
    let host = base_url.split_once("://").map_or(base_url, |(_, rest)| rest);
    let host = host.split(['/', '?']).next().unwrap_or_default();
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let name = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn ask_mode(given: Option<AskMode>) -> Result<AskMode, CliError> {
    let terminal = std::io::stdin().is_terminal();
    match given {
        Some(AskMode::Prompt) if !terminal => Err(CliError::NoTerminal),
        Some(mode) => Ok(mode),
        None if terminal => Ok(AskMode::Prompt),
        None => Ok(AskMode::Deny),
    }
}

/// The store of a command that only looks; `None` where nothing was ever stored, and nothing is created.
pub(crate) fn stored(data_dir: Option<PathBuf>) -> Result<Option<SqliteStore>, CliError> {
    let data = env::data_dir(data_dir)?;
    if !data.join(DATABASE).exists() {
        return Ok(None);
    }
    Ok(Some(SqliteStore::open(&data)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_machine() {
        for local in
            ["http://127.0.0.1:11434", "http://localhost/v1", "http://[::1]:8080/", "http://user@localhost:1"]
        {
            assert!(is_local(local), "{local}");
        }
        for far in
            ["https://api.anthropic.com", "http://127.0.0.1.example.com", "http://localhost.example.com", ""]
        {
            assert!(!is_local(far), "{far}");
        }
    }
}
