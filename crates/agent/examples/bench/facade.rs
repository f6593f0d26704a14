//! The client on the facade: a builder, one tool, and a run whose events are read as they come.

use std::path::Path;
use std::sync::Arc;

use agent::{
    Access, Agent, ApiKey, EventBody, HttpConfig, HttpModel, SessionId, SqliteStore, ToolConfig, ToolSet,
    step_count,
};

use super::{ECHO_ABOUT, Fault, Job, MODEL, Measured, Outcome, SYSTEM};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    text: String,
    seq: i64,
}

pub(super) fn measure(job: &Arc<Job>, store: Option<&Path>) -> Result<Measured, Fault> {
    let agent = agent(job, store)?;
    let name = if store.is_some() { "agent-sqlite" } else { "agent-memory" };
    super::measure(name, job, |number| session(agent.clone(), Arc::clone(job), number))
}

fn agent(job: &Job, store: Option<&Path>) -> Result<Agent, Fault> {
    let model = HttpModel::new(HttpConfig {
        model: MODEL.to_owned(),
        api_key: ApiKey::new("none"),
        base_url: Some(job.base_url.clone()),
        ..HttpConfig::default()
    })?;
    let echo = ToolConfig::new("echo", ECHO_ABOUT, Access::Read, |_, input: Echo| async move {
        // What arrives is what the model wrote; the answer does not depend on it.
        let _ = (input.text, input.seq);
        Ok(super::echo())
    });
    let builder = Agent::builder()
        .model(model)
        .system(SYSTEM)
        .tools(ToolSet::builder().with(echo).freeze()?)
        // One more than there are, because the last of a limit is announced.
        .stop(step_count(u32::try_from(job.steps)?.saturating_add(1)));
    Ok(match store {
        Some(folder) => builder.store(SqliteStore::open(folder)?).build()?,
        None => builder.build()?,
    })
}

async fn session(agent: Agent, job: Arc<Job>, number: usize) -> Result<Outcome, Fault> {
    let session = agent.session(SessionId::new(job.session_name(number))?);
    let mut run = session.send(job.prompt(number)).await?;
    let mut outcome = Outcome::default();
    while let Some(event) = run.next().await {
        if let EventBody::TextDelta { text, .. } = &event.body {
            outcome.heard += text.len();
        } else if let EventBody::ActionResult { .. } = &event.body {
            outcome.calls += 1;
        }
    }
    let end = run.finish().await?;
    if !end.reason.is_success() {
        return Err(format!("session {number} ended as {:?}: {:?}", end.reason, end.error).into());
    }
    outcome.last = end.text.len();
    outcome.kept = Some(Box::new(session));
    Ok(outcome)
}
