//! Puts an agent together from what the command line says.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

use agent::{
    Agent, AgentBuilder, AllowAll, ApiKey, AskLater, CommandHook, HookSpec, HttpConfig, HttpModel,
    LocalSandbox, NobodyToAsk, Permissions, Process, ProcessConfig, RetryPolicy, SessionId, Skills,
    SqliteStore, StopConditionExt, Store, ToolSet, WithModel, Workspace, builtins, is_loopback, step_count,
    tool_called,
};

use agent::memory::{MemoryConfig, MemoryExtractor, project_root};
use agent::prompt::{Fragment, Layer, Session, Value};
use agent_core::{COMPLETE_TOOL, LanguageModel};

use crate::agents::{Agents, Made};
use crate::args::{AgentArgs, AskMode, ReachArgs};
use crate::ask::TerminalAsker;
use crate::clock::LocalClock;
use crate::cmd::tools;
use crate::error::CliError;
use crate::settings::{self, Settings};
use crate::{agents, env, limits, memory, models, skills, tell};

const SYSTEM: &str = include_str!("../prompt/system.md");
/// A server of one's own needs no key, but its clients send one. No word of it may occur in an error text, where keys are
/// blacked out.
const LOCAL_KEY: &str = "no-key-for-a-server-on-this-machine";
const PLACE: &str = "The workspace is ";
const PLACE_END: &str = ". Paths are relative to it.";
/// The file that a store keeps its sessions in.
const DATABASE: &str = "sessions.db";

/// What every agent of this program has.
pub(crate) struct Base<'a> {
    pub(crate) model: HttpModel,
    pub(crate) workspace: &'a Path,
    pub(crate) reach: &'a ReachArgs,
    pub(crate) skills: Skills,
    pub(crate) agents: Agents,
    /// How the models of sub-agents are reached; `None` where all have the agent's own.
    pub(crate) models: Option<HttpConfig>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) permissions: Permissions,
    pub(crate) max_steps: u32,
    /// Whether somebody answers questions, so that the model may ask some.
    pub(crate) answers: bool,
}

/// The agent of `agent run`, and what extracts its memories.
pub(crate) fn agent(
    args: &AgentArgs,
    key: Option<String>,
) -> Result<(Agent, Option<Arc<MemoryExtractor>>), CliError> {
    let data = env::data_dir(args.data.data_dir.clone())?;
    let model = model(args, &data, key)?;
    let mut settings = settings::load(&args.cwd, &args.rules.given())?;
    tell::withheld(&settings)?;
    let memory = memory::of_run(args, std::mem::take(&mut settings.memory), &data, &model)?;
    let extractor = memory.as_ref().and_then(|memory| memory.extractor.clone());
    let agent = assembled(args, settings, (model, Arc::new(SqliteStore::open(&data)?)), memory)?;
    Ok((agent, extractor))
}

/// The same agent for a command that asks no model, and so needs no key.
pub(crate) fn keyless(args: &AgentArgs, store: Arc<dyn Store>) -> Result<Agent, CliError> {
    let data = env::data_dir(args.data.data_dir.clone())?;
    let model = model(args, &data, Some(LOCAL_KEY.to_owned()))?;
    let mut settings = settings::load(&args.cwd, &args.rules.given())?;
    // Nothing is called, so no hook runs.
    settings.hooks.clear();
    let memory = memory::of_look(args, std::mem::take(&mut settings.memory), &data)?;
    assembled(args, settings, (model, store), memory)
}

fn assembled(
    args: &AgentArgs,
    settings: Settings,
    (models, store): (HttpConfig, Arc<dyn Store>),
    memory: Option<MemoryConfig>,
) -> Result<Agent, CliError> {
    let Settings { workspace, permissions, hooks, keeper, is_trusted, .. } = settings;
    let model = HttpModel::new(models.clone())?;
    let agents = agents::find(&args.cwd, is_trusted, args.subagents, args.bare)?;
    let skills = skills::find(&args.cwd, &args.skills, args.bare)?;
    tell::skipped(&skills)?;
    tell::web_search(args.web_search, &model.profile().provider)?;
    let mode = ask_mode(args.ask)?;
    let stop = limits::of_run(args.max_steps, &args.budget, model.profile())?;
    let base = Base {
        answers: matches!(mode, AskMode::Prompt | AskMode::Later),
        model,
        workspace: &args.cwd,
        reach: &args.reach,
        skills,
        agents,
        models: Some(models),
        store,
        permissions,
        max_steps: args.max_steps,
    };
    let retry = RetryPolicy { max_attempts: args.max_attempts, ..RetryPolicy::default() };
    let builder = builder(base)?.retry(retry).clock(LocalClock).tell_date();
    let builder = if args.web_search { builder.web_search() } else { builder };
    let builder = if args.budget.task { builder.task() } else { builder };
    let builder = builder.stop(stop);
    let builder = match mode {
        AskMode::Prompt => {
            let layers = std::iter::once(Layer::Session).chain(keeper.layers()).collect();
            builder.asker(TerminalAsker { layers })
        }
        AskMode::Deny => builder.asker(NobodyToAsk),
        AskMode::Allow => builder.asker(AllowAll),
        AskMode::Later => builder.asker(AskLater),
    };
    let builder = with_hooks(builder.rule_sink(keeper), hooks, &workspace);
    let builder = builder.source(surroundings(args)).process(process(&workspace)?);
    let builder = match memory {
        Some(memory) => builder.memory(memory),
        None => builder,
    };
    Ok(builder.build()?)
}

/// This process, for what asks where it works and what it spent.
fn process(workspace: &Path) -> Result<Process, CliError> {
    let id = std::process::id().to_string();
    let process = Process::new(ProcessConfig { id, cwd: workspace.to_owned(), ..ProcessConfig::default() });
    process.set_root(project_root(workspace)).map_err(std::io::Error::other).map_err(CliError::Runtime)?;
    Ok(process)
}

/// Puts the hooks of settings before and behind every call.
pub(crate) fn with_hooks(
    builder: AgentBuilder<WithModel>,
    hooks: Vec<HookSpec>,
    workspace: &Path,
) -> AgentBuilder<WithModel> {
    let command = |spec| CommandHook::new(spec, workspace).env(env::vars());
    hooks.into_iter().map(command).fold(builder, AgentBuilder::tool_hook)
}

/// What else a session that begins is told: rule files, and the state of the repository.
fn surroundings(args: &AgentArgs) -> Workspace {
    let workspace = Workspace::new(&args.cwd);
    if args.bare {
        return workspace.without_rules().without_environment();
    }
    match env::config_dir() {
        Some(folder) => workspace.user_folder(folder),
        None => workspace,
    }
}

/// Built-in tools on the workspace, sessions on disk, the program's own instructions.
pub(crate) fn builder(base: Base<'_>) -> Result<AgentBuilder<WithModel>, CliError> {
    let place = place(LocalSandbox::open(base.workspace)?.path());
    let tools = tools::on(base.workspace, base.reach, &base.skills)?;
    let tools = if base.answers {
        ToolSet::builder().extend(tools.iter().cloned()).with(builtins::ask_question()).freeze()?
    } else {
        tools
    };
    let listing = base.skills.listing();
    let skills = listing.iter().map(|list| ("skills", list.clone()));
    let beside: Vec<_> = std::iter::once(("workspace", place.clone())).chain(skills).collect();
    let made = Made { tools: tools.clone(), models: base.models.as_ref(), beside: &beside };
    let builder = Agent::builder().model(base.model).store(base.store);
    let builder = match base.agents.children(made)? {
        Some((tools, children)) => builder.tools(tools).subagents(children),
        None => builder.tools(tools),
    };
    let stop = step_count(base.max_steps).or(tool_called(COMPLETE_TOOL));
    let place = Fragment::<Session>::new(Layer::Session, "workspace", Value::session(place))?;
    let builder = builder.system(SYSTEM).fragment(place).permissions(base.permissions).stop(stop);
    // A session keeps the list as it began with it, like the rest of its prompt.
    Ok(match listing {
        Some(list) => {
            builder.fragment(Fragment::<Session>::new(Layer::Session, "skills", Value::session(list))?)
        }
        None => builder,
    })
}

/// What the model is told of its workspace. A session keeps it, like all of its system prompt.
fn place(workspace: &Path) -> String {
    format!("{PLACE}{}{PLACE_END}", workspace.display())
}

/// Refuses to go on with a session in another directory than it began in: its paths and what it read would be wrong.
pub(crate) async fn check_workspace(args: &AgentArgs, id: &SessionId) -> Result<(), CliError> {
    let Some(store) = stored(&env::data_dir(args.data.data_dir.clone())?)? else { return Ok(()) };
    // Not the session: whoever takes it up is counted before it is loaded.
    let Some(meta) = store.meta(id).await? else { return Ok(()) };
    let now = place(LocalSandbox::open(&args.cwd)?.path());
    let began = meta.system.iter().map(|block| block.text()).find(|text| text.starts_with(PLACE));
    let began = began.unwrap_or_default();
    if began == now {
        return Ok(());
    }
    let began =
        began.strip_prefix(PLACE).and_then(|rest| rest.strip_suffix(PLACE_END)).unwrap_or("another program");
    Err(CliError::OtherWorkspace { session: id.clone(), began: began.to_owned() })
}

/// How the model is reached.
fn model(args: &AgentArgs, data: &Path, key: Option<String>) -> Result<HttpConfig, CliError> {
    let (vendor, model) = args.chosen().ok_or_else(|| CliError::Model { given: args.model.clone() })?;
    let custom = if vendor.name == "anthropic" { env::var("ANTHROPIC_BASE_URL") } else { None };
    let base_url = args.base_url.clone().or(custom);
    let catalog = models::of_run(data, args.known.file.as_deref())?;
    let mut config = HttpConfig { vendor, model, base_url, catalog, ..HttpConfig::default() };
    config.api_key = match key {
        Some(key) => ApiKey::new(key),
        None if is_loopback(config.base_url()) => ApiKey::new(LOCAL_KEY),
        None if config.vendor.key_env.is_empty() => ApiKey::default(),
        None => {
            let names = config.vendor.key_env.clone();
            // An address that is none is the first thing to mend: the right one may need no key.
            HttpModel::new(config)?;
            return Err(CliError::NoKey { names });
        }
    };
    Ok(config)
}

/// What happens when somebody is needed.
pub(crate) fn ask_mode(given: Option<AskMode>) -> Result<AskMode, CliError> {
    let terminal = is_on_terminal();
    match given {
        Some(AskMode::Prompt) if !terminal => Err(CliError::NoTerminal),
        Some(mode) => Ok(mode),
        None if terminal => Ok(AskMode::Prompt),
        None => Ok(AskMode::Deny),
    }
}

/// Whether somebody can answer.
pub(crate) fn is_on_terminal() -> bool {
    std::io::stdin().is_terminal()
}

/// The store of a command that only looks; `None` where nothing was ever stored, and nothing is created.
pub(crate) fn stored(data: &Path) -> Result<Option<SqliteStore>, CliError> {
    if !data.join(DATABASE).exists() {
        return Ok(None);
    }
    Ok(Some(SqliteStore::open(data)?))
}
