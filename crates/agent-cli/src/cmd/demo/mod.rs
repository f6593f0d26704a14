//! `agent demo`: a whole run, offline. The model is a script behind a simulated provider; everything else is real: HTTP,
//! the wire format, files, processes, the store.

mod memory;

use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use agent::{
    AgentBuilder, ApiKey, Event, EventBody, History, HttpConfig, HttpModel, PermissionMode, Permissions,
    SessionId, Skills, SqliteStore, Store, TerminalReason, TurnEnd, WithModel,
};
use agent_core::{Entry, StepRecord, ToolResult};
use agent_testkit::{Script, SimProvider};
use serde::Serialize;

use super::run;
use crate::agents::Agents;
use crate::args::{DemoArgs, DemoOf, ReachArgs};
use crate::assemble::{self, Base};
use crate::error::CliError;
use crate::show::{JsonScreen, TextScreen};

const SCRIPT: &str = include_str!("../../../demo/script.json");
const PROMPT: &str = "The discount in this project is wrong at the border. Find the cause, fix it, and show that the tests pass.";
const SESSION: &str = "demo";
const MAX_STEPS: u32 = 20;
const PROJECT: [(&str, &str); 3] = [
    ("README.txt", include_str!("../../../demo/README.txt")),
    ("price.sh", include_str!("../../../demo/price.sh")),
    ("test.sh", include_str!("../../../demo/test.sh")),
];

/// Where the demo works; a temporary place goes when it is dropped.
struct Place {
    workspace: PathBuf,
    data: PathBuf,
    temporary: Option<tempfile::TempDir>,
}

/// One thing the report states, and whether it is so.
#[derive(Debug, Serialize)]
struct Claim {
    holds: bool,
    text: String,
}

/// A scripted model behind a simulated provider, and a project to work on.
struct Stage {
    place: Place,
    sim: SimProvider,
    /// How many answers the script has.
    replies: usize,
}

pub(crate) async fn demo(args: DemoArgs) -> Result<ExitCode, CliError> {
    match args.of {
        Some(DemoOf::Memory) => memory::demo(args).await,
        None => whole_run(args).await,
    }
}

async fn whole_run(args: DemoArgs) -> Result<ExitCode, CliError> {
    let stage = Stage::set(Place::make(args.keep)?, script("demo/script.json", SCRIPT)?)?;
    let agent = stage.agent()?.build()?;
    let Stage { place, sim, replies } = stage;
    let id = SessionId::new(SESSION)?;

    let mut text = TextScreen::new(stdout());
    if !args.json {
        text.line(&format!(
            "A scripted model behind a simulated provider at {}; the rest is real.",
            sim.base_url()
        ))?;
        text.line(&format!("Workspace: {}", place.workspace.display()))?;
        text.line(&format!("> {PROMPT}\n"))?;
    }
    let end = if args.json {
        run::watch(&agent, &id, PROMPT, &mut JsonScreen(stdout())).await?
    } else {
        run::watch(&agent, &id, PROMPT, &mut text).await?
    };
    let Some(end) = end else { return Ok(run::stopped()) };
    // Given back, so that the session is loaded as another process would load it.
    drop(agent);
    let claims = claims(&place, &sim, replies, &end).await?;
    report(&claims, args.json)?;
    if !args.json && place.temporary.is_none() {
        text.line(&format!("Kept: {} and {}", place.workspace.display(), place.data.display()))?;
    }
    let held = claims.iter().all(|claim| claim.holds);
    Ok(if held { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Stage {
    fn set(place: Place, script: Script) -> Result<Self, CliError> {
        let replies = script.len();
        Ok(Self { place, sim: SimProvider::start(script)?, replies })
    }

    fn agent(&self) -> Result<AgentBuilder<WithModel>, CliError> {
        let model = HttpModel::new(HttpConfig {
            base_url: Some(self.sim.base_url()),
            api_key: ApiKey::new("demo"),
            model: "claude-opus-5-5".into(),
            ..HttpConfig::default()
        })?;
        assemble::builder(Base {
            model,
            workspace: &self.place.workspace,
            reach: &ReachArgs::usual(),
            skills: Skills::default(),
            agents: Agents::default(),
            models: None,
            store: Arc::new(SqliteStore::open(&self.place.data)?),
            permissions: Permissions { mode: PermissionMode::Bypass, ..Permissions::default() },
            max_steps: MAX_STEPS,
            answers: false,
        })
    }
}

impl Place {
    /// Writes the project into a new directory.
    #[expect(
        clippy::disallowed_methods,
        reason = "the demo makes the workspace that the sandbox is then opened on"
    )]
    fn make(keep: Option<PathBuf>) -> Result<Self, CliError> {
        let (root, temporary) = match keep {
            Some(dir) => (dir, None),
            None => {
                let dir =
                    tempfile::Builder::new().prefix("agent-demo-").tempdir().map_err(CliError::Runtime)?;
                (dir.path().to_owned(), Some(dir))
            }
        };
        let file = |path: &Path| {
            let path = path.to_owned();
            move |cause| CliError::File { path, cause }
        };
        let (workspace, data) = (root.join("workspace"), root.join("data"));
        std::fs::create_dir_all(&root).map_err(file(&root))?;
        if root.read_dir().map_err(file(&root))?.next().is_some() {
            return Err(CliError::KeepNotEmpty(root));
        }
        std::fs::create_dir_all(&workspace).map_err(file(&workspace))?;
        for (name, text) in PROJECT {
            let path = workspace.join(name);
            std::fs::write(&path, text).map_err(file(&path))?;
        }
        Ok(Self { workspace, data, temporary })
    }
}

fn script(name: &str, text: &str) -> Result<Script, CliError> {
    let failed = |error| CliError::File { path: PathBuf::from(name), cause: std::io::Error::other(error) };
    Script::parse(text).map_err(failed)
}

/// What the report states, each checked on what is really there.
async fn claims(
    place: &Place,
    sim: &SimProvider,
    replies: usize,
    end: &TurnEnd,
) -> Result<Vec<Claim>, CliError> {
    let id = SessionId::new(SESSION)?;
    let missing = || CliError::NoSession { session: id.clone(), data: place.data.clone() };
    let store = assemble::stored(&place.data)?.ok_or_else(missing)?;
    let record = store.load(&id).await?.ok_or_else(missing)?;
    let (history, repairs) = History::load(&record.entries)?;
    let steps: Vec<&StepRecord> = history.entries().iter().filter_map(Entry::as_step).collect();
    let tests: Vec<bool> = steps.iter().flat_map(|step| step.pairs()).filter_map(test_run).collect();
    let todos = &record.checkpoint.slots.todos;
    let open = record.checkpoint.slots.open_todos().count();
    let requests = sim.requests();
    let kept = requests.windows(2).filter(|pair| extends(&pair[0].body, &pair[1].body)).count();
    let events = store.events(&id, 0).await?;
    let claim = |holds, text: String| Claim { holds, text };
    Ok(vec![
        claim(
            tests == [false, true],
            format!("the project's tests failed before the edit and pass after it: {tests:?}"),
        ),
        claim(
            end.reason == TerminalReason::Completed,
            format!("the turn ended as {}, after {} steps", end.reason, end.steps),
        ),
        claim(
            !todos.is_empty() && open == 0,
            format!("the todo list is done: {} of {}", todos.len() - open, todos.len()),
        ),
        claim(
            requests.len() == replies && sim.refusals().is_empty(),
            format!("{} model calls went over HTTP, {} were refused", requests.len(), sim.refusals().len()),
        ),
        claim(
            kept + 1 == requests.len(),
            format!(
                "{kept} of {} later requests begin with the very bytes of the one before",
                requests.len() - 1
            ),
        ),
        claim(
            repairs.is_empty() && events.last().is_some_and(is_waiting),
            format!(
                "the session loads from disk: {} entries, {} events, waiting for a message",
                history.len(),
                events.len()
            ),
        ),
    ])
}

fn is_waiting(event: &Event) -> bool {
    matches!(event.body, EventBody::SessionWaiting {})
}

/// Whether a run of the project's tests passed; `None` for another call.
fn test_run((call, result): (&agent_core::ToolCall, &ToolResult)) -> Option<bool> {
    let is_test = call.name == "bash" && call.input.as_str().contains("test.sh");
    is_test.then(|| !result.output.plain().contains("FAIL"))
}

/// Whether the second request's conversation begins with the bytes of the first one's, cache markers aside.
fn extends(first: &[u8], second: &[u8]) -> bool {
    let (first, second) = (unmarked(first), unmarked(second));
    let end = first.rfind("],\"max_tokens\"").unwrap_or(first.len());
    second.starts_with(&first[..end])
}

fn unmarked(body: &[u8]) -> String {
    String::from_utf8_lossy(body).replace(",\"cache_control\":{\"type\":\"ephemeral\"}", "")
}

fn report(claims: &[Claim], json: bool) -> Result<(), CliError> {
    let mut out = stdout();
    if json {
        let report = serde_json::json!({"type": "demo.report", "data": {"claims": claims}});
        writeln!(out, "{report}")?;
        return Ok(());
    }
    writeln!(out, "\nReport")?;
    for claim in claims {
        writeln!(out, "  {} {}", if claim.holds { "✓" } else { "✗" }, claim.text)?;
    }
    Ok(())
}
