//! A tool that looks like another one and does nothing.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use agent_core::{RawJson, ToolCard, ToolOutput};
use agent_tools::{Permit, Subject, Tool, ToolCx, ToolEnd, ToolError, ToolSet, ToolSetError, ToolTraits};
use async_trait::async_trait;

/// What all stand-ins of a set answer, and which of them ran. Clones share it.
#[derive(Clone)]
pub(crate) struct StandIns {
    answer: Arc<dyn Fn(&ToolTraits) -> String + Send + Sync>,
    ran: Arc<Mutex<Vec<String>>>,
}

/// The card and the traits of a tool, with nothing behind them.
#[derive(Debug)]
struct StandIn {
    tool: Arc<dyn Tool>,
    stand_ins: StandIns,
}

impl StandIns {
    pub(crate) fn new(answer: impl Fn(&ToolTraits) -> String + Send + Sync + 'static) -> Self {
        Self { answer: Arc::new(answer), ran: Arc::default() }
    }

    /// The set with a stand-in for each of its tools.
    pub(crate) fn of(&self, tools: &ToolSet) -> Result<ToolSet, ToolSetError> {
        let stand_ins = tools
            .iter()
            .map(|tool| Arc::new(StandIn { tool: tool.clone(), stand_ins: self.clone() }) as Arc<dyn Tool>);
        ToolSet::builder().extend(stand_ins).freeze()
    }

    /// The tools that ran, in order.
    pub(crate) fn ran(&self) -> Vec<String> {
        self.ran.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for StandIns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StandIns").field("ran", &self.ran).finish_non_exhaustive()
    }
}

#[async_trait]
impl Tool for StandIn {
    fn card(&self) -> &ToolCard {
        self.tool.card()
    }

    fn traits(&self) -> &ToolTraits {
        self.tool.traits()
    }

    async fn subject(&self, input: &RawJson) -> Option<Subject> {
        self.tool.subject(input).await
    }

    async fn run(&self, _cx: &ToolCx, permit: Permit, input: &RawJson) -> Result<ToolEnd, ToolError> {
        permit.covers(self.card().name(), input)?;
        let name = self.card().name().to_owned();
        self.stand_ins.ran.lock().unwrap_or_else(PoisonError::into_inner).push(name);
        Ok(ToolOutput::text((self.stand_ins.answer)(self.traits())).into())
    }
}
