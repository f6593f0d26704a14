//! `agent explain`: what would be sent next, without a key, a model or a write.

use std::io::{Write, stdout};
use std::process::ExitCode;
use std::sync::Arc;

use agent::{ExplainedRequest, MemoryStore, SessionId, Store, UserMessage};
use agent_core::RawJson;
use serde::Serialize;

use crate::args::ExplainArgs;
use crate::error::CliError;
use crate::show::plain;
use crate::{assemble, env};

/// The name of a session that only begins in thought.
const NEW: &str = "new";

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    request: ExplainedRequest,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<RawJson>,
}

pub(crate) async fn explain(args: ExplainArgs) -> Result<ExitCode, CliError> {
    let id = SessionId::new(args.session.clone().unwrap_or_else(|| NEW.to_owned()))?;
    let data = env::data_dir(args.agent.data.data_dir.clone())?;
    let store: Arc<dyn Store> = match assemble::stored(&data)?.filter(|_| args.session.is_some()) {
        Some(store) => Arc::new(store),
        None => Arc::new(MemoryStore::new()),
    };
    if args.session.is_some() {
        assemble::check_workspace(&args.agent, &id).await?;
    }
    let agent = assemble::keyless(&args.agent, store)?;
    let message = args.prompt.map(UserMessage::text).transpose().map_err(|_| CliError::BlankPrompt)?;
    let request = agent.session(id).explain(message).await?;
    let body = String::from_utf8_lossy(&request.body().to_vec()).into_owned();
    let mut out = stdout();
    if args.json {
        let body = if args.wire { Some(RawJson::parse(body)?) } else { None };
        writeln!(out, "{}", serde_json::to_string(&Shown { request, body })?)?;
        return Ok(ExitCode::SUCCESS);
    }
    for line in request.to_string().lines() {
        writeln!(out, "{}", plain(line))?;
    }
    if args.wire {
        writeln!(out, "body:\n{body}")?;
    }
    Ok(ExitCode::SUCCESS)
}
