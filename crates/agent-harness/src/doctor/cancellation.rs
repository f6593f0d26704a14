//! Item 6: a stop reaches the model call and the tools.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agent_core::{Cancel, CardError, Context, RawJson, TerminalReason, ToolCard};
use agent_tools::{
    Access, NoBlobs, PermissionMode, Permissions, Permit, Proposal, SlotsHandle, Tool, ToolCx, ToolEnd,
    ToolError, ToolSet, ToolState, ToolTraits, Verdict,
};
use async_trait::async_trait;
use futures_util::FutureExt;

use super::Finding;
use super::rehearsal::{MESSAGE, call, calls, id, rehearsing, words};
use crate::config::{Harness, HarnessConfig};
use crate::spy::Answer;
use crate::stand_ins::StandIns;
use crate::{AllowAll, HarnessError};

/// How long a stop may take to reach a leaf: what the driver gives a tool.
const GRACE: Duration = Duration::from_secs(5);
const WAITS: &str = "waits_for_doctor";
const REPORT: &str = "This is a fault of the driver; please report it.";

pub(super) async fn examine(config: &HarnessConfig) -> Finding {
    let mut finding = Finding::new("cancellation", "cancellation reaches the leaves");
    match stop_tool(config).await {
        Ok(true) => {
            finding.saw("a run that was stopped while a tool worked told the tool and ended as aborted")
        }
        Ok(false) => finding.fail("a run was stopped while a tool worked, and the tool was not told", REPORT),
        Err(error) => {
            finding.fail(format!("no call could be rehearsed: {error}"), "Mend what the error names.")
        }
    }
    match stop_model(config).await {
        Ok(true) => finding.saw("a run that was stopped while the model answered gave the call up"),
        Ok(false) => finding.fail("a run was stopped while the model answered, and the call went on", REPORT),
        Err(error) => {
            finding.fail(format!("no call could be rehearsed: {error}"), "Mend what the error names.")
        }
    }
    judge_readers(&mut finding, &config.tools).await;
    let endless = config.tools.iter().filter(|tool| tool.traits().deadline.is_none());
    let endless: Vec<&str> = endless.map(|tool| tool.card().name()).collect();
    if !endless.is_empty() {
        finding.saw(format!(
            "without a deadline, so that they run until they end or are stopped: {}",
            endless.join(", ")
        ));
    }
    finding
}

/// Stops a run while a tool works; whether the tool saw it and the run ended.
async fn stop_tool(config: &HarnessConfig) -> Result<bool, HarnessError> {
    let probe = Waits::new().map_err(agent_tools::ToolSetError::from)?;
    let (began, told) = (probe.began.clone(), probe.told.clone());
    let answers = vec![calls([WAITS]), words("Done.")];
    let (rehearsing, _) = rehearsing(config, answers, &StandIns::new(|_| String::new()))?;
    let tools = ToolSet::builder().with(Arc::new(probe) as Arc<dyn Tool>).freeze()?;
    let permissions = Permissions { mode: PermissionMode::Bypass, ..Permissions::default() };
    let config = HarnessConfig { tools, permissions, asker: Arc::new(AllowAll), ..rehearsing };
    Ok(stopped(config, &began).await? && told.load(Ordering::SeqCst))
}

/// Stops a run while the model answers; whether the call was given up and the run ended.
async fn stop_model(config: &HarnessConfig) -> Result<bool, HarnessError> {
    let (began, given_up) = (Cancel::new(), Arc::new(AtomicBool::new(false)));
    let answers = vec![Answer::Wait { began: began.clone(), given_up: given_up.clone() }];
    let (config, _) = rehearsing(config, answers, &StandIns::new(|_| String::new()))?;
    Ok(stopped(config, &began).await? && given_up.load(Ordering::SeqCst))
}

/// Runs until something began, and stops then; whether the run ended as aborted in time.
async fn stopped(config: HarnessConfig, began: &Cancel) -> Result<bool, HarnessError> {
    let store = Arc::new(agent_store::MemoryStore::new());
    let harness = Harness::new(HarnessConfig { store, ..config });
    let run = harness.session(id()?).send(MESSAGE).await?;
    let cancel = run.cancel();
    let stop = async {
        began.cancelled().await;
        cancel.cancel();
    };
    let both = async { tokio::join!(run.finish(), stop).0 };
    match tokio::time::timeout(GRACE, both).await {
        Ok(end) => Ok(end?.reason == TerminalReason::Aborted),
        Err(_) => Ok(false),
    }
}

/// Calls each reader, which by its own word changes nothing, with a token that is cancelled already.
async fn judge_readers(finding: &mut Finding, tools: &ToolSet) {
    let mut told = 0;
    for tool in tools.iter().filter(|tool| tool.traits().access == Access::Read) {
        let name = tool.card().name();
        match tokio::time::timeout(GRACE, cancelled_call(&**tool)).await {
            Ok(true) => told += 1,
            Ok(false) => finding.warn(
                format!("{name} panics when it is called with an empty input"),
                "Answer a wrong input with an error that says what is missing.",
            ),
            Err(_) => finding.fail(
                format!("{name} was called after a stop and still ran after {} s", GRACE.as_secs()),
                "Return soon after `cx.cancel` is cancelled; wait for it beside everything that takes long.",
            ),
        }
    }
    if told > 0 {
        finding.saw(format!("{told} readers, called after a stop, ended within {} s", GRACE.as_secs()));
    }
}

/// Whether the tool answered, whatever it said.
async fn cancelled_call(tool: &dyn Tool) -> bool {
    let (Ok(session), input) = (id(), RawJson::empty_object()) else { return true };
    let call = call(0, tool.card().name());
    let permissions = Permissions { mode: PermissionMode::Bypass, ..Permissions::default() };
    let proposal = Proposal::new(tool, &call.id, &input);
    let Verdict::Allow(permit) = permissions.check(proposal).await else { return true };
    let cancel = Cancel::new();
    cancel.cancel();
    let slots = SlotsHandle::default();
    let state = ToolState::new(tool.state_key(), slots.clone());
    let context = Context::default();
    let cx = ToolCx { session, call: call.id, cancel, slots, state, blobs: Arc::new(NoBlobs), context };
    AssertUnwindSafe(tool.run(&cx, permit, &input)).catch_unwind().await.is_ok()
}

/// A tool that works until it is told to stop.
#[derive(Debug)]
struct Waits {
    card: ToolCard,
    traits: ToolTraits,
    /// Cancelled when a call begins.
    began: Cancel,
    told: Arc<AtomicBool>,
}

impl Waits {
    fn new() -> Result<Self, CardError> {
        Ok(Self {
            card: ToolCard::new(WAITS, "Waits for the end of the turn.", &RawJson::empty_object())?,
            traits: ToolTraits::of(Access::Read),
            began: Cancel::new(),
            told: Arc::default(),
        })
    }
}

#[async_trait]
impl Tool for Waits {
    fn card(&self) -> &ToolCard {
        &self.card
    }

    fn traits(&self) -> &ToolTraits {
        &self.traits
    }

    async fn run(&self, cx: &ToolCx, permit: Permit, input: &RawJson) -> Result<ToolEnd, ToolError> {
        permit.covers(WAITS, input)?;
        self.began.cancel();
        cx.cancel.cancelled().await;
        self.told.store(true, Ordering::SeqCst);
        Err(ToolError::Cancelled)
    }
}
