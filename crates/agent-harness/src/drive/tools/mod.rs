//! The tool runs of a step: plan, hooks, permission, journal, execution, and what of an output enters the history.

mod admit;
mod approve;
mod beside;
mod child;
mod classify;
mod desk;
mod execute;
mod finish;
mod hold;
mod hooks;
mod refused;
mod shorten;
mod summarise;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use agent_core::{
    ActionOutcome, CallId, Cancel, Context, Diagnostic, EntryId, HeldRequest, PendingStep, RawJson,
    SessionId, Text, ToolCall, ToolOutput, ToolResult, Usage, Wait,
};
use agent_tools::{Blobs, Permissions, Permit, SlotsHandle, Tool, ToolCx, ToolState, batches};

use crate::HarnessError;
use crate::breaker::Breaker;
use crate::children::Share;
use crate::config::HarnessConfig;
use crate::live::Live;
use crate::outbox::Outbox;
use desk::Desk;

pub(super) use hold::blocks;

/// The calls of a step and what is known about them.
pub(super) struct Work<'a> {
    pub(super) pending: PendingStep,
    /// Whether the response is stored already.
    pub(super) is_stored: bool,
    /// Calls that began in a process that died.
    pub(super) lost: &'a BTreeSet<CallId>,
    /// The only tools that may be called, when not all may.
    pub(super) active: Option<&'a BTreeSet<String>>,
    /// What the program shares with the calls.
    pub(super) context: &'a Context,
    /// Where the turn begins.
    pub(super) turn_from: EntryId,
    /// What of the turn's budget sub-agents may use.
    pub(super) share: Share,
}

/// What came of the calls.
pub(super) struct Worked {
    pub(super) results: Vec<ToolResult>,
    /// Tokens of the models that shortened outputs.
    pub(super) spent: Usage,
}

/// What every call of a step is run with.
struct Site<'a> {
    config: &'a HarnessConfig,
    /// Those of the configuration; what its classifier takes too long for is a person's.
    permissions: Cow<'a, Permissions>,
    cancel: &'a Cancel,
    lost: &'a BTreeSet<CallId>,
    active: Option<&'a BTreeSet<String>>,
    context: &'a Context,
    session: SessionId,
    /// What calls of the step were found to wait for when it was taken up.
    held: Vec<HeldRequest>,
    slots: SlotsHandle,
    blobs: Arc<dyn Blobs>,
    shortening: Arc<Breaker>,
    share: Share,
}

/// A call that can run: its tool, and the input as it would run.
struct Admitted {
    call: ToolCall,
    tool: Arc<dyn Tool>,
    input: RawJson,
    said: Said,
}

/// What hooks and people said of a call.
#[derive(Default)]
struct Said {
    /// Who put another input in place of the model's own, in order; empty when what runs is what it wrote.
    changed_by: Vec<String>,
    /// The hook that allows the call.
    allowed_by: Option<String>,
    /// The hook that wants a person to decide.
    asked_by: Option<String>,
    /// Whether a classifier had its turn.
    is_classified: bool,
    /// Words of hooks for the model.
    context: Vec<Text>,
    /// What the program and its user are told.
    told: Vec<Diagnostic>,
}

/// A call that is cleared to run.
struct Cleared {
    admitted: Admitted,
    permit: Permit,
}

/// A call that has its answer, before that is shortened and the hooks behind it have looked.
struct Done {
    call: ToolCall,
    /// The input that ran, or would have; `None` for what is no input.
    input: Option<RawJson>,
    said: Said,
    outcome: ActionOutcome,
    output: ToolOutput,
    /// Whether the tool began.
    ran: bool,
    /// The tool, when the output is what it gave.
    made_by: Option<Arc<dyn Tool>>,
}

/// A call that cannot go on without somebody outside.
#[derive(Clone)]
struct Waiting {
    call: ToolCall,
    /// The input as it would run.
    input: RawJson,
    wait: Wait,
}

/// Runs every call without a result; calls that wait are left without one, and
/// those that did not begin when the run is stopped.
pub(super) async fn run(
    config: &HarnessConfig,
    live: &mut Live,
    out: &mut Outbox,
    cancel: &Cancel,
    work: Work<'_>,
) -> Result<Worked, HarnessError> {
    let calls: Vec<ToolCall> = work.pending.unanswered().cloned().collect();
    let site = Site {
        config,
        permissions: classify::in_time(&config.permissions),
        cancel,
        lost: work.lost,
        active: work.active,
        context: work.context,
        session: live.meta.id.clone(),
        held: live.requests.clone(),
        slots: live.slots.clone(),
        blobs: live.blobs.clone(),
        shortening: live.shortening.clone(),
        share: work.share.clone(),
    };
    let mut desk = Desk::new(&site, &work, &calls, live, out);
    for batch in batches(&config.tools, &calls) {
        if cancel.is_cancelled() || desk.run_batch(batch).await?.is_stopped() {
            break;
        }
    }
    // What is not stored yet is written by the commit of the step, which follows at once.
    Ok(desk.worked)
}

impl Site<'_> {
    /// The surroundings of a call.
    fn cx(&self, call: &ToolCall, tool: &dyn Tool) -> ToolCx {
        ToolCx {
            session: self.session.clone(),
            call: call.id.clone(),
            cancel: self.cancel.child(),
            slots: self.slots.clone(),
            state: ToolState::new(tool.state_key(), self.slots.clone()),
            blobs: self.blobs.clone(),
            context: self.context.clone(),
        }
    }
}

impl Admitted {
    /// What the model wrote, when something else would run.
    fn written(&self) -> Option<&RawJson> {
        self.call.input.json().filter(|written| **written != self.input)
    }

    /// The answer to a call that does not run.
    fn answered(self, outcome: ActionOutcome, output: ToolOutput) -> Done {
        let Self { call, input, said, .. } = self;
        Done { call, input: Some(input), said, outcome, output, ran: false, made_by: None }
    }
}

impl Done {
    /// The answer to a call of which nothing more is known.
    fn at_once(call: &ToolCall, output: ToolOutput) -> Self {
        let (input, outcome) = (call.input.json().cloned(), ActionOutcome::Failed);
        Self { call: call.clone(), input, said: Said::default(), outcome, output, ran: false, made_by: None }
    }
}
