//! `agent compact` and `agent context`: how full a session's context is, and making it smaller by hand.

use std::io::{Write, stdout};
use std::process::ExitCode;
use std::sync::Arc;

use agent::prepare::ContextState;
use agent::{CompactedTier, Compaction, FailedTier, SessionId, Store};
use serde::Serialize;

use crate::args::StoredArgs;
use crate::error::CliError;
use crate::show::plain;
use crate::{assemble, env};

/// A context as JSON.
#[derive(Serialize)]
struct Shown {
    level: &'static str,
    used: u64,
    fixed: u64,
    percent: u64,
    window: u64,
    warning: u64,
    error: u64,
    autocompact: u64,
    blocking: u64,
}

/// A compaction as JSON.
#[derive(Serialize)]
struct ShownCompaction {
    before: Shown,
    after: Shown,
    tiers: Vec<CompactedTier>,
    failed: Vec<FailedTier>,
}

pub(crate) async fn compact(args: StoredArgs, key: Option<String>) -> Result<ExitCode, CliError> {
    let id = SessionId::new(args.id)?;
    // A store is created by messages only.
    drop(stored(&args.agent.data.data_dir, &id).await?);
    let (agent, _) = assemble::agent(&args.agent, key)?;
    let Compaction { before, after, tiers, failed, .. } = agent.session(id).compact().await?;
    let code = if tiers.is_empty() && !failed.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    let mut out = stdout();
    if args.json {
        let shown = ShownCompaction { before: before.into(), after: after.into(), tiers, failed };
        writeln!(out, "{}", serde_json::to_string(&shown)?)?;
        return Ok(code);
    }
    for FailedTier { tier, message, .. } in &failed {
        writeln!(out, "{tier} failed: {}", plain(message))?;
    }
    for CompactedTier { tier, before, after, .. } in &tiers {
        writeln!(out, "{tier}: {before} -> {after} tokens")?;
    }
    if tiers.is_empty() {
        writeln!(out, "Nothing of the conversation was made smaller.")?;
    }
    writeln!(out, "{}", line(&after))?;
    Ok(code)
}

pub(crate) async fn context(args: StoredArgs) -> Result<ExitCode, CliError> {
    let id = SessionId::new(args.id)?;
    let store = stored(&args.agent.data.data_dir, &id).await?;
    let state = assemble::keyless(&args.agent, store)?.session(id).context().await?;
    let mut out = stdout();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&Shown::from(state))?)?;
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(out, "{}", line(&state))?;
    let marks = state.thresholds;
    writeln!(out, "fixed {} (system prompt and tools)", state.fixed)?;
    writeln!(
        out,
        "warning {} · error {} · compaction {} · blocking {}",
        marks.warning, marks.error, marks.autocompact, marks.blocking
    )?;
    Ok(ExitCode::SUCCESS)
}

/// The store that has the session.
async fn stored(data_dir: &Option<std::path::PathBuf>, id: &SessionId) -> Result<Arc<dyn Store>, CliError> {
    let data = env::data_dir(data_dir.clone())?;
    let missing = || CliError::NoSession { session: id.clone(), data: data.clone() };
    let store = assemble::stored(&data)?.ok_or_else(missing)?;
    store.load(id).await?.ok_or_else(missing)?;
    Ok(Arc::new(store))
}

fn line(state: &ContextState) -> String {
    let window = state.thresholds.window;
    format!("context: {} of {window} tokens ({} %), {}", state.used, state.percent(), state.level().as_str())
}

impl From<ContextState> for Shown {
    fn from(state: ContextState) -> Self {
        let marks = state.thresholds;
        Self {
            level: state.level().as_str(),
            used: state.used,
            fixed: state.fixed,
            percent: state.percent(),
            window: marks.window,
            warning: marks.warning,
            error: marks.error,
            autocompact: marks.autocompact,
            blocking: marks.blocking,
        }
    }
}
