//! What can go wrong before or beside a run, in words that say what to do.

use std::io;
use std::path::PathBuf;

use agent::{HarnessError, SandboxError, StoreError, TerminalReason, ToolSetError, Vendor};
use agent_core::{IdError, SessionId};
use agent_memory::MemoryError;

use crate::args::AgentArgs;
use crate::parked::quoted;

#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    #[error("the async runtime cannot be started")]
    Runtime(#[source] io::Error),
    #[error("{path}: {cause}")]
    File { path: PathBuf, cause: io::Error },
    #[error("{}: {cause}; give {give}", path.display())]
    Given { path: PathBuf, cause: io::Error, give: &'static str },
    #[error(
        "no cache rules of {given:?} are known; known: {known}, and none for a provider that keeps nothing; leave --provider out for the rules of the format's inventor"
    )]
    CacheProvider { given: String, known: String },
    #[error("cannot write to standard output")]
    Output(#[from] io::Error),
    #[error("cannot read standard input")]
    Input(#[source] io::Error),
    #[error("no data directory: set AGENT_DATA_DIR or pass --data-dir DIR")]
    NoDataDir,
    #[error(
        "no API key: looked for {} in the environment. Set it, or run `agent demo`, which needs no key and \
         no network, or use a local server: `agent run --model ollama/NAME \"…\"`, with \
         llamacpp, vllm or lmstudio in place of ollama for those",
        names.join(" and ")
    )]
    NoKey { names: Vec<String> },
    #[error(
        "{given:?} names no model of a provider that is known: write it as PROVIDER/NAME, for example anthropic/claude-opus-5-5; providers: {}",
        Vendor::names().collect::<Vec<_>>().join(", ")
    )]
    Model { given: String },
    #[error("{}: {cause}; give a file like {{\"models\":[{{\"model\":\"NAME\",\"context_window\":200000}}]}}", path.display())]
    ModelsFile { path: PathBuf, cause: io::Error },
    #[error("{}: {cause}; nothing was run, because what these settings forbid is not known", path.display())]
    SettingsFile { path: PathBuf, cause: io::Error },
    #[error("{}: {cause}. Nothing was run, because what these settings forbid is not known", path.display())]
    Settings { path: PathBuf, cause: agent::SettingsError },
    #[error("there is no tool called {given:?}; there are: {known}")]
    NoTool { given: String, known: String },
    #[error("the call has no result; the run ended as {reason}")]
    NoResult { reason: TerminalReason },
    #[error(
        "the input is not JSON ({cause}); write one JSON object in quotes, for example '{{\"command\":\"ls\"}}'"
    )]
    ToolInput { cause: serde_json::Error },
    #[error("{}: {cause}", path.display())]
    Models { path: PathBuf, cause: agent_providers::CatalogError },
    #[error(
        "the prices of {model} are not known, so --max-cost cannot hold; give them in models.json or with --models, or limit the turn with --max-tokens-total"
    )]
    NoPrices { model: String },
    #[error(transparent)]
    Memory(#[from] MemoryError),
    #[error(transparent)]
    MemoryPlace(#[from] agent_memory::PlaceError),
    #[error(transparent)]
    Provider(#[from] agent_providers::ConfigError),
    #[error(transparent)]
    Id(#[from] IdError),
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    #[error(transparent)]
    Tools(#[from] ToolSetError),
    #[error(transparent)]
    Build(#[from] agent::BuildError),
    #[error(transparent)]
    Prompt(#[from] agent::prompt::FragmentError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Harness(#[from] HarnessError),
    #[error(
        "session {session} has an open turn that was taken up {attempts} times, and each time the program was lost before the turn ended. Nothing of the session is lost, and it is not taken up by itself any more.\n    see what it was at: agent events {of}{data}\n    take it up once more: agent resume {of}{flags} --again\n    end the turn: agent resume {of}{flags} --abandon",
        of = quoted(session.as_str())
    )]
    NotTakenUp { session: SessionId, attempts: u32, data: String, flags: String },
    #[error("the message is blank; say what the agent is to do")]
    BlankPrompt,
    #[error("there is no session {session} in {}; `agent sessions list` shows those there are, --data-dir looks elsewhere", data.display())]
    NoSession { session: SessionId, data: PathBuf },
    #[error("session {session} has no entries yet, so there is nothing to fork; send it a message first")]
    NothingToFork { session: SessionId },
    #[error(transparent)]
    Jsonl(#[from] agent::JsonlError),
    #[error(transparent)]
    History(#[from] agent_core::UnreadableEntry),
    #[error(
        "session {session} began in {began}; go on there with --cwd, or begin another session for this directory"
    )]
    OtherWorkspace { session: SessionId, began: String },
    #[error("--ask prompt needs a terminal on standard input; use --ask later, --ask deny or --ask allow")]
    NoTerminal,
    #[error("format {given:?} is not known; known: {known}")]
    Format { given: String, known: String },
    #[error("the input names no model, and its format has no place for one; pass --model NAME")]
    NoModel,
    #[error(
        "{}:{line}: {cause}; a line is the body of a request, or {{\"request\": BODY, \"at\": SECONDS, \"usage\": {{…}}}}, or a recorded exchange",
        path.display()
    )]
    Audit { path: PathBuf, line: usize, cause: String },
    #[error("{} holds no request; give a file with the body of a request a line", path.display())]
    NothingToAudit { path: PathBuf },
    #[error("{}: {cause}; docs/guides/cache-scenarios.md shows a scenario and its fields", path.display())]
    Scenario { path: PathBuf, cause: String },
    #[error(
        "no scenario in {}; give files or folders of scenarios, as docs/guides/cache-scenarios.md shows them",
        paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    NoScenario { paths: Vec<PathBuf> },
    #[error("request {number} of a scenario: {cause}")]
    Body { number: usize, cause: agent_cache::RequestError },
    #[error(transparent)]
    BookOfRules(#[from] agent_cache::RulesError),
    #[error(transparent)]
    Transcript(#[from] agent_providers::TranscriptError),
    #[error(transparent)]
    Import(#[from] agent_providers::ImportError),
    #[error("header {given:?} has no colon; write it as 'name: value'")]
    Header { given: String },
    #[error("standard input is not {{\"chunks_hex\": [\"…\"], \"end\": \"eof\"}}: {cause}")]
    Chunks { cause: serde_json::Error },
    #[error("chunk {position} is not hexadecimal; write two digits for each byte")]
    Hex { position: usize },
    #[error(transparent)]
    Corpus(#[from] agent_testkit::CorpusError),
    #[error("cannot write JSON")]
    Json(#[from] serde_json::Error),
    #[error("{0} is not empty; --keep needs a new or an empty directory")]
    KeepNotEmpty(PathBuf),
    #[error("{}: {cause}", path.display())]
    Script { path: PathBuf, cause: agent_testkit::ScriptError },
    #[error("{}: {cause}", path.display())]
    Rules { path: PathBuf, cause: agent_cache::RulesError },
    #[error("the simulated provider cannot be started")]
    Sim(#[from] agent_testkit::SimError),
}

impl CliError {
    /// A failure of a run, with the commands that go on from it.
    pub(crate) fn of_run(error: HarnessError, args: &AgentArgs) -> Self {
        if let HarnessError::NotTakenUp { session, attempts } = error {
            let (data, flags) = (args.data.flags(), args.flags());
            return Self::NotTakenUp { session, attempts, data, flags };
        }
        Self::Harness(error)
    }

    /// Whether standard output was closed by its reader.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// The exit status: 2 for a command that cannot be carried out as given, 1 for a failure on the way.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Memory(MemoryError::Open { .. } | MemoryError::Io { .. } | MemoryError::Busy { .. }) => 1,
            Self::Memory(_)
            | Self::MemoryPlace(_)
            | Self::NoPrices { .. }
            | Self::NoKey { .. }
            | Self::Model { .. }
            | Self::Given { .. }
            | Self::Sandbox(_)
            | Self::CacheProvider { .. }
            | Self::ModelsFile { .. }
            | Self::SettingsFile { .. }
            | Self::Settings { .. }
            | Self::NoTool { .. }
            | Self::ToolInput { .. }
            | Self::Models { .. }
            | Self::Id(_)
            | Self::BlankPrompt
            | Self::NoTerminal
            | Self::OtherWorkspace { .. }
            | Self::Format { .. }
            | Self::NoModel
            | Self::Audit { .. }
            | Self::NothingToAudit { .. }
            | Self::Scenario { .. }
            | Self::NoScenario { .. }
            | Self::BookOfRules(_)
            | Self::Script { .. }
            | Self::Rules { .. }
            | Self::Transcript(_)
            | Self::Import(_)
            | Self::Header { .. }
            | Self::KeepNotEmpty(_)
            | Self::Provider(_)
            | Self::NoSession { .. }
            | Self::NothingToFork { .. }
            | Self::Chunks { .. }
            | Self::Hex { .. }
            | Self::NoDataDir => 2,
            Self::Runtime(_)
            | Self::File { .. }
            | Self::Output(_)
            | Self::Input(_)
            | Self::Tools(_)
            | Self::Build(_)
            | Self::Prompt(_)
            | Self::Store(_)
            | Self::Harness(_)
            | Self::NotTakenUp { .. }
            | Self::Jsonl(_)
            | Self::History(_)
            | Self::Corpus(_)
            | Self::Body { .. }
            | Self::Json(_)
            | Self::NoResult { .. }
            | Self::Sim(_) => 1,
        }
    }
}
