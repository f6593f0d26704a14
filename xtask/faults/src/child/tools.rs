//! The real tools, each with a note and a point before and after its effect.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use agent::{LocalSandbox, Sandbox, ToolSet, builtins};
use agent_core::{RawJson, SessionId, ToolCard, ToolOutput};
use agent_tools::{Permit, StandsFor, Subject, Tool, ToolCx, ToolEnd, ToolError, ToolTraits};
use async_trait::async_trait;

use super::notes::Notes;
use super::trip::Trip;
use crate::Fault;
use crate::place::Place;

/// The built-in tools over a folder, and the one that asks.
fn real(work: &Path) -> Result<Vec<Arc<dyn Tool>>, Fault> {
    let sandbox: Arc<dyn Sandbox> = Arc::new(LocalSandbox::open(work)?);
    let mut tools = builtins::all(sandbox);
    tools.push(builtins::ask_question());
    Ok(tools)
}

/// Tools that may be run again when their end is not known.
pub(crate) fn idempotent(work: &Path) -> Result<Vec<String>, Fault> {
    let tools = real(work)?.into_iter().filter(|tool| tool.traits().idempotent);
    Ok(tools.map(|tool| tool.card().name().to_owned()).collect())
}

pub(super) fn set(work: &Path, trip: &Arc<Trip>, notes: &Notes) -> Result<ToolSet, Fault> {
    let marked =
        |inner| -> Arc<dyn Tool> { Arc::new(Marked { inner, trip: trip.clone(), notes: notes.clone() }) };
    Ok(ToolSet::builder().extend(real(work)?.into_iter().map(marked)).freeze()?)
}

#[derive(Debug)]
struct Marked {
    inner: Arc<dyn Tool>,
    trip: Arc<Trip>,
    notes: Notes,
}

impl Marked {
    fn note(&self, what: &str, cx: &ToolCx) -> Result<(), ToolError> {
        self.notes.add(what, cx.call.as_str()).map_err(|error| ToolError::failed(error.to_string()))
    }
}

#[async_trait]
impl Tool for Marked {
    fn card(&self) -> &ToolCard {
        self.inner.card()
    }

    fn traits(&self) -> &ToolTraits {
        self.inner.traits()
    }

    fn state_key(&self) -> Cow<'_, str> {
        self.inner.state_key()
    }

    async fn subject(&self, input: &RawJson) -> Option<Subject> {
        self.inner.subject(input).await
    }

    fn validate(&self, input: &RawJson) -> Result<(), ToolError> {
        self.inner.validate(input)
    }

    fn stands_for(&self, input: &RawJson) -> Result<Option<StandsFor>, ToolError> {
        self.inner.stands_for(input)
    }

    fn compact(&self, input: &RawJson, output: &ToolOutput) -> Option<String> {
        self.inner.compact(input, output)
    }

    async fn run(&self, cx: &ToolCx, permit: Permit, input: &RawJson) -> Result<ToolEnd, ToolError> {
        self.trip.pass(Place::BeforeTool);
        self.note("begin", cx)?;
        let end = self.inner.run(cx, permit, input).await?;
        self.note("end", cx)?;
        self.trip.pass(Place::AfterTool);
        Ok(end)
    }

    fn session_closed(&self, session: &SessionId) {
        self.inner.session_closed(session);
    }
}
