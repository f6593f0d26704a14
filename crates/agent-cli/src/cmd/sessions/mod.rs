//! `agent sessions`: what is stored.

mod keep;
mod show;

use std::io::{Write, stderr, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use agent::{InputRequest, SessionId, SqliteStore, Store, StoreError, TerminalReason};
use agent_core::SessionSummary;
use serde::Serialize;

pub(crate) use keep::{delete, export, fork, import};
pub(crate) use show::show;

use crate::args::ListArgs;
use crate::error::CliError;
use crate::show::plain;
use crate::{assemble, env, parked};

/// A line of the list as JSON.
#[derive(Serialize)]
struct Listed<'a> {
    #[serde(flatten)]
    summary: &'a SessionSummary,
    /// The session that it is a sub-agent of.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<&'a str>,
    /// What its open turn waits for.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    requests: &'a [InputRequest],
}

pub(crate) async fn list(args: ListArgs) -> Result<ExitCode, CliError> {
    let data = env::data_dir(args.data.data_dir.clone())?;
    let mut out = stdout();
    let Some(store) = assemble::stored(&data)? else { return nothing(&args, &data) };
    let sessions = store.sessions().await?;
    if sessions.is_empty() {
        return nothing(&args, &data);
    }
    for line in &sessions {
        let session = match line {
            Ok(session) => session,
            Err(error) => {
                writeln!(stderr(), "agent: {}", plain(&error.to_string()))?;
                continue;
            }
        };
        let requests = waits_for(&store, session).await?;
        if args.json {
            let listed = Listed { summary: session, parent: session.id.parent(), requests: &requests };
            writeln!(out, "{}", serde_json::to_string(&listed)?)?;
            continue;
        }
        writeln!(out, "{}", line_of(session, &requests))?;
        let answers = answers_at(&sessions, &session.id);
        for request in &requests {
            for line in parked::lines(answers, request, &args.data.flags()) {
                writeln!(out, "  {line}")?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn nothing(args: &ListArgs, data: &std::path::Path) -> Result<ExitCode, CliError> {
    if !args.json {
        writeln!(stdout(), "No sessions in {} yet. `agent run \"…\"` begins one.", data.display())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What an open turn waits for; a state that cannot be read hides no other session.
async fn waits_for(store: &SqliteStore, session: &SessionSummary) -> Result<Vec<InputRequest>, CliError> {
    if session.terminal.as_ref().is_some_and(|reason| super::run::parked_on(reason).is_none()) {
        return Ok(Vec::new());
    }
    match store.state(&session.id).await {
        Ok(state) => Ok(state.map(|state| state.open_requests()).unwrap_or_default()),
        Err(error) => {
            writeln!(stderr(), "agent: {}", plain(&error.to_string()))?;
            Ok(Vec::new())
        }
    }
}

/// The session at which requests of this one are answered: the one that all of its parents work for.
fn answers_at<'a>(sessions: &'a [Result<SessionSummary, StoreError>], id: &'a SessionId) -> &'a SessionId {
    let named = |name| sessions.iter().flatten().map(|line| &line.id).find(|id| id.as_str() == name);
    let mut id = id;
    while let Some(parent) = id.parent().and_then(named) {
        id = parent;
    }
    id
}

fn line_of(session: &SessionSummary, requests: &[InputRequest]) -> String {
    let state = match (&session.terminal, requests.first()) {
        (_, Some(request)) => TerminalReason::Parked(request.wait.kind()).to_string(),
        (Some(reason), None) => reason.to_string(),
        // A fork has no turn of its own yet.
        (None, None) if session.turns == 0 => "new".to_owned(),
        (None, None) => "open".to_owned(),
    };
    let of = session.id.parent().map_or_else(String::new, |parent| format!(", sub-agent of {parent}"));
    format!(
        "{}  {}  {}, {}, {state}, {} tokens in, {} out{of}",
        session.id,
        session.model,
        counted(session.turns, "turn", "turns"),
        counted(session.entries, "entry", "entries"),
        session.usage.total_input(),
        session.usage.output
    )
}

fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// The store of a session that must be there.
async fn found(data_dir: Option<PathBuf>, id: &SessionId) -> Result<SqliteStore, CliError> {
    let data = env::data_dir(data_dir)?;
    let missing = || CliError::NoSession { session: id.clone(), data: data.clone() };
    let store = assemble::stored(&data)?.ok_or_else(missing)?;
    // Its blobs can be named whatever else of it is damaged.
    match store.blobs(id).await {
        Ok(_) => Ok(store),
        Err(StoreError::Missing(_)) => Err(missing()),
        Err(error) => Err(error.into()),
    }
}
