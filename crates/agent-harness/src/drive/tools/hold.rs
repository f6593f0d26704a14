//! Calls that wait for somebody outside: their requests are stored before they are shown, and a reply takes the place of
//! what it answers (requirement L7).

use std::sync::Arc;

use agent_core::{
    AGENT_ACTION, ActionOutcome, Approval, EventBody, HeldRequest, InputRequest, JournalRecord, ParkKind,
    RawJson, Reply, RequestId, ToolCall, ToolOutput, Wait,
};
use agent_tools::{AskRequest, Tool};
use sha2::{Digest, Sha256};

use super::desk::Desk;
use super::{Admitted, Done, Said, Site, Waiting};
use crate::Answer;

/// What is known of a call that may have waited.
pub(super) enum Replied {
    /// It did not wait.
    Nothing,
    /// What it waited for is there: it is checked and runs as any other.
    RunsNow,
    /// It still waits.
    Held(ParkKind),
    /// The reply, or that there was none in time, is its result.
    Answered(Box<Done>),
}

/// Whether calls behind one that waits for this do not run before it: it may yet have an effect itself.
pub(in crate::drive) fn blocks(kind: ParkKind) -> bool {
    match kind {
        ParkKind::Approval | ParkKind::Authorization => true,
        ParkKind::Question | ParkKind::Action | ParkKind::ClientTool => false,
    }
}

/// Whether a call waits for a sub-agent.
pub(super) fn is_task(wait: &Wait) -> bool {
    matches!(wait, Wait::Action(action) if action.kind == AGENT_ACTION)
}

/// What came of a call's request.
pub(super) fn reply(site: &Site<'_>, call: &ToolCall, tool: &Arc<dyn Tool>, input: &RawJson) -> Replied {
    let Some(HeldRequest { request, reply }) = site.last_held(call) else { return Replied::Nothing };
    let answered = |outcome, output| {
        Replied::Answered(Box::new(Done {
            call: call.clone(),
            input: Some(input.clone()),
            said: Said::default(),
            outcome,
            output,
            ran: true,
            made_by: Some(tool.clone()),
        }))
    };
    match (reply, &request.wait) {
        (None, _) if request.is_expired(site.config.clock.now_ms()) => {
            answered(ActionOutcome::Failed, ToolOutput::error(EXPIRED))
        }
        // What a sub-agent does is looked at there.
        (None, wait) if is_task(wait) && site.config.children.is_some() => Replied::RunsNow,
        (None, wait) => Replied::Held(wait.kind()),
        (Some(Reply::Answer(said)), _) => {
            answered(ActionOutcome::Completed, ToolOutput::text(said.join("\n")))
        }
        (Some(Reply::Output(output)), _) => {
            let outcome = if output.is_error() { ActionOutcome::Failed } else { ActionOutcome::Completed };
            answered(outcome, output.clone())
        }
        (Some(Reply::Decline(words)), Wait::Authorization(_)) => {
            answered(ActionOutcome::Denied, ToolOutput::denied(declined(SIGN_IN, words.as_deref())))
        }
        (Some(Reply::Decline(words)), Wait::Question(_) | Wait::Action(_) | Wait::ClientTool { .. }) => {
            answered(ActionOutcome::Failed, ToolOutput::error(declined(NO_ANSWER, words.as_deref())))
        }
        // What may run now is looked at as any other call is.
        (Some(Reply::Decline(_)), Wait::Approval(_))
        | (Some(Reply::Allow | Reply::Always(_) | Reply::Edit(_) | Reply::SignedIn), _) => Replied::RunsNow,
    }
}

/// The reply to the question whether exactly this may run.
pub(super) fn approval(site: &Site<'_>, admitted: &Admitted) -> Option<Answer> {
    let HeldRequest { request, reply } = site.last_held(&admitted.call)?;
    let Wait::Approval(approval) = &request.wait else { return None };
    if approval.input != admitted.input {
        return None;
    }
    match reply.clone()? {
        Reply::Allow => Some(Answer::Allow),
        Reply::Always(layer) => Some(Answer::Always(layer)),
        Reply::Edit(input) => Some(Answer::Edit(input)),
        Reply::Decline(words) => Some(Answer::Deny(words)),
        Reply::Answer(_) | Reply::SignedIn | Reply::Output(_) => None,
    }
}

impl Waiting {
    /// A call that a person may allow later.
    pub(super) fn for_approval(admitted: Admitted, request: &AskRequest) -> Self {
        let Admitted { call, input, .. } = admitted;
        let approval = Approval {
            input: input.clone(),
            prompt: format!("{}({}) — {}", request.tool(), request.subject(), request.reason()),
            remembers: request.remembers().iter().map(ToString::to_string).collect(),
            again: request.asked_again().map(str::to_owned),
        };
        Self { call, input, wait: Wait::Approval(approval) }
    }
}

impl Site<'_> {
    /// The newest request of a call of this step.
    fn last_held(&self, call: &ToolCall) -> Option<&HeldRequest> {
        self.held.iter().rfind(|held| held.request.call == call.id)
    }
}

impl Desk<'_> {
    /// Stages the request of a call that waits; the next write stores it, and only then is it told.
    pub(super) fn hold(&mut self, waiting: Waiting) {
        let Waiting { call, input, wait } = waiting;
        let request = self.request(&call, &input, wait);
        self.hold_on(request);
    }

    /// The request of a call that waits.
    pub(super) fn request(&self, call: &ToolCall, input: &RawJson, wait: Wait) -> InputRequest {
        let asked_ms = self.site.config.clock.now_ms();
        InputRequest {
            id: self.request_id(call, input, wait.kind()),
            call: call.id.clone(),
            tool: call.name.clone(),
            wait,
            asked_ms,
            expires_ms: self.site.config.request_lifetime.map(|lifetime| {
                asked_ms.saturating_add(i64::try_from(lifetime.as_millis()).unwrap_or(i64::MAX))
            }),
        }
    }

    /// Stages a request, unless it is held already.
    pub(super) fn hold_on(&mut self, request: InputRequest) {
        if self.live.requests.iter().any(|held| held.request.id == request.id) {
            return;
        }
        self.is_blocked |= blocks(request.wait.kind());
        self.out.stage(match &request.wait {
            Wait::Authorization(_) => EventBody::AuthorizationRequired(request.clone()),
            Wait::Approval(_) | Wait::Question(_) | Wait::Action(_) | Wait::ClientTool { .. } => {
                EventBody::InputRequested(request.clone())
            }
        });
        self.records.push(JournalRecord::Waits(request.clone()));
        self.live.requests.push(HeldRequest { request, reply: None });
    }

    /// The name of a request: the same question of the same call is the same request, in every process.
    ///
    /// Written rule: SHA-256 over session, turn, step, call, kind, input and how often the call was asked for before, each
    /// with its length before it.
    fn request_id(&self, call: &ToolCall, input: &RawJson, kind: ParkKind) -> RequestId {
        let turn = self.out.turn.map_or(0, agent_core::TurnId::number);
        let step = self.out.step.map_or(0, agent_core::StepNo::number);
        let before = self.live.requests.iter().filter(|held| held.request.call == call.id).count();
        let numbers = [turn.to_string(), step.to_string(), before.to_string()];
        let [turn, step, before] = &numbers;
        let mut digest = Sha256::new();
        for field in
            [self.site.session.as_str(), turn, step, call.id.as_str(), kind.as_str(), input.get(), before]
        {
            digest.update((field.len() as u64).to_le_bytes());
            digest.update(field);
        }
        RequestId::of_digest(&digest.finalize().into())
    }
}

fn declined(what: &str, words: Option<&str>) -> String {
    let said = words.map_or_else(String::new, |words| format!(" They say: {words:?}."));
    format!("{what}{said} Do not ask for it again; go on without it, or finish and say what is missing.")
}

const EXPIRED: &str = "Nobody replied in time, so there is no answer. Do not ask for the same again; go on as well as you can without it, or finish and say what is missing.";
const SIGN_IN: &str = "Not run: the sign-in it needs was declined.";
const NO_ANSWER: &str = "There is no answer: it was declined.";
