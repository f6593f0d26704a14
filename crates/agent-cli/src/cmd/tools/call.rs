//! `agent tools call`: one call through the harness, as if a model had made it in a session that begins.

use std::io::{self, Write, stdout};
use std::process::ExitCode;
use std::sync::Arc;

use agent::{
    Agent, AllowAll, Event, EventBody, History, MemoryStore, NobodyToAsk, SessionId, Store, TerminalReason,
    TurnEnd, step_count,
};
use agent_core::{ActionOutcome, BlobHash, Entry, ToolOutput};
use agent_testkit::{Reply, ScriptedModel};
use serde::Serialize;
use serde_json::json;

use super::on;
use crate::args::CallArgs;
use crate::ask::TerminalAsker;
use crate::cmd::run;
use crate::error::CliError;
use crate::settings::{self, Settings};
use crate::show::{Screen, plain};
use crate::{assemble, skills, tell};

const SESSION: &str = "tools-call";
/// What the user of that session said.
const PROMPT: &str = "Call the tool.";
/// What the model is told helps nobody who sits before it.
const DENIED: &str = "`--yes` answers a question with yes, `--allow RULE` lets such calls run without one; `agent permissions check` says what decided";

/// A result as JSON.
#[derive(Serialize)]
struct Shown<'r> {
    tool: &'r str,
    outcome: ActionOutcome,
    is_error: bool,
    /// As the model sees it.
    text: String,
    /// Of the whole output, before it was shortened.
    bytes: u64,
    /// The handle of the whole output, when it was shortened.
    #[serde(skip_serializing_if = "Option::is_none")]
    blob: Option<String>,
}

/// Keeps how the call ended, and shows nothing.
#[derive(Default)]
struct Outcome(Option<(ActionOutcome, u64)>);

pub(crate) async fn call(args: CallArgs) -> Result<ExitCode, CliError> {
    let settings = settings::load(&args.cwd, &args.rules.given())?;
    tell::withheld(&settings)?;
    let store = Arc::new(MemoryStore::new());
    let agent = agent(&args, settings, store.clone())?;
    let id = SessionId::new(SESSION)?;
    let mut outcome = Outcome::default();
    let Some(end) = run::watch(&agent, &id, PROMPT, &mut outcome).await? else { return Ok(run::stopped()) };
    let output = result(&*store, &id).await?;
    let (Some(output), Some((outcome, bytes))) = (output, outcome.0) else {
        return Err(CliError::NoResult { reason: end.reason });
    };
    show(&args, &Shown::of(&args.name, outcome, bytes, &output))?;
    if outcome == ActionOutcome::Denied && !args.yes && !args.json {
        tell::note(DENIED)?;
    }
    if end.reason == TerminalReason::Aborted {
        return Ok(run::stopped());
    }
    Ok(if output.is_error() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// An agent whose model makes this one call.
fn agent(args: &CallArgs, settings: Settings, store: Arc<MemoryStore>) -> Result<Agent, CliError> {
    let script = script(args);
    let steps = u32::try_from(script.len()).unwrap_or(u32::MAX);
    let model = ScriptedModel::new(script);
    let Settings { workspace, permissions, hooks, keeper, .. } = settings;
    let skills = skills::find(&args.cwd, &args.skills, false)?;
    tell::skipped(&skills)?;
    let builder = Agent::builder()
        .model(model)
        .store(store)
        .tools(on(&args.cwd, &args.reach, &skills)?)
        .permissions(permissions);
    let builder = assemble::with_hooks(builder.stop(step_count(steps)), hooks, &workspace);
    let builder = match assemble::is_on_terminal() {
        _ if args.yes => builder.asker(AllowAll),
        // Nothing else is called in this session, so that only what is kept in settings is worth remembering.
        true => builder.asker(TerminalAsker { layers: keeper.layers().collect() }),
        false => builder.asker(NobodyToAsk),
    };
    Ok(builder.rule_sink(keeper).build()?)
}

/// What the model says: the files it looks at, each in a step of its own, then the call.
fn script(args: &CallArgs) -> Vec<Reply> {
    let read = |path: &String| Reply::tool("read_file", json!({ "path": path }).to_string());
    let mut script: Vec<Reply> = args.read.iter().map(read).collect();
    script.push(Reply::tool(args.name.as_str(), args.input.as_str()));
    script
}

/// The result that entered the history.
async fn result(store: &dyn Store, id: &SessionId) -> Result<Option<ToolOutput>, CliError> {
    let Some(record) = store.load(id).await? else { return Ok(None) };
    let (history, _) = History::load(&record.entries)?;
    Ok(history.entries().iter().rev().find_map(|entry| match entry {
        Entry::Step(step) => step.results().first().map(|result| result.output.clone()),
        Entry::User(_) | Entry::Note(_) | Entry::Boundary(_) => None,
    }))
}

fn show(args: &CallArgs, shown: &Shown<'_>) -> Result<(), CliError> {
    let mut out = stdout();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(shown)?)?;
        return Ok(());
    }
    let gap = if shown.text.ends_with('\n') { "" } else { "\n" };
    write!(out, "{}{gap}", plain(&shown.text))?;
    Ok(())
}

impl<'r> Shown<'r> {
    fn of(tool: &'r str, outcome: ActionOutcome, bytes: u64, output: &ToolOutput) -> Self {
        let text = output.plain();
        let is_whole = text.len() as u64 == bytes;
        let blob = if is_whole {
            None
        } else {
            BlobHash::handles_in(&text).next().map(|(_, handle)| handle.to_owned())
        };
        Self { tool, outcome, is_error: output.is_error(), text, bytes, blob }
    }
}

impl Screen for Outcome {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        if let EventBody::ActionResult { outcome, bytes, .. } = &event.body {
            self.0 = Some((*outcome, *bytes));
        }
        Ok(())
    }

    fn end(&mut self, _end: &TurnEnd, _session: &str) -> io::Result<()> {
        Ok(())
    }
}
