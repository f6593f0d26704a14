//! A turn that waits: what it waits for, and the replies that let it go on (requirement L7).

use agent_core::{
    Closed, EventBody, HeldRequest, InputRequest, ParkKind, PendingStep, Reply, RequestId, ToolCall, Wait,
};
use agent_turn::Turn;

use super::Drive;
use super::tools::blocks;
use crate::config::HarnessConfig;
use crate::error::RequestError;
use crate::{HarnessError, kin};

/// Whether a reply can be taken by one of these requests.
pub(crate) fn fits(
    held: &[HeldRequest],
    config: &HarnessConfig,
    id: &RequestId,
    reply: &Reply,
) -> Result<(), RequestError> {
    let held = held.iter().find(|held| held.request.id == *id);
    let HeldRequest { request, reply: earlier } = held.ok_or_else(|| RequestError::Unknown(id.clone()))?;
    if earlier.is_some() {
        return Err(RequestError::Answered(id.clone()));
    }
    if request.is_expired(config.clock.now_ms()) {
        return Err(RequestError::Expired(id.clone()));
    }
    request.takes(reply)?;
    if let (Reply::Edit(input), Wait::Approval(_)) = (reply, &request.wait)
        && let Some(tool) = config.tools.get(&request.tool)
    {
        let misfit = |cause| RequestError::Edit { request: id.clone(), cause };
        tool.validate(input).map_err(misfit)?;
    }
    Ok(())
}

/// Whether a call of a turn has what it waits for, or waited too long.
pub(crate) fn is_ready(turn: &Turn, held: &[HeldRequest], now_ms: i64) -> bool {
    let mut is_blocked = false;
    for call in turn.pending().into_iter().flat_map(PendingStep::unanswered) {
        let newest = held.iter().rfind(|held| held.request.call == call.id);
        let Some(HeldRequest { request, reply }) = newest else {
            // It stood behind one that waited, and was not looked at yet.
            if is_blocked {
                continue;
            }
            return true;
        };
        let blocks = blocks(request.wait.kind());
        match reply {
            // It runs when what is before it ran: to take it up before would change nothing, for ever.
            Some(_) if blocks && is_blocked => {}
            Some(_) => return true,
            None if request.is_expired(now_ms) => return true,
            None => is_blocked |= blocks,
        }
    }
    false
}

impl Drive {
    /// What the calls of a step wait for that have no result, as the first of them says; `None` when none waits.
    pub(super) fn waits_for(&self, pending: &PendingStep) -> Option<ParkKind> {
        pending.unanswered().find_map(|call| self.open_request(call)).map(|request| request.wait.kind())
    }

    /// Takes a reply; the next write stores it. The first one stands.
    pub(super) fn reply(&mut self, id: &RequestId, reply: Reply) -> Result<(), RequestError> {
        fits(&self.live.requests, &self.config, id, &reply)?;
        if let Some(held) = self.live.requests.iter_mut().find(|held| held.request.id == *id) {
            let call = held.request.call.clone();
            held.reply = Some(reply);
            self.out.stage(EventBody::InputClosed { request: id.clone(), call, how: Closed::Answered });
        }
        Ok(())
    }

    /// Whether a parked turn has something to do: a call that waits has its reply, or waited too long.
    pub(super) fn can_resume(&self) -> bool {
        is_ready(&self.turn, &self.live.requests, self.config.clock.now_ms())
    }

    /// What the turn's sub-agents wait for, beside what it waits for itself.
    pub(super) async fn requests_of_children(&self) -> Result<Vec<InputRequest>, HarnessError> {
        Ok(kin::requests(&self.config, &self.live.meta.id, &self.live.requests).await?)
    }

    /// Ends the sub-agents that these requests are for and nobody waits for any more. It comes before the write that says so:
    /// after a crash in between the turn is as it was, and finds that they ended.
    pub(super) async fn close_children(&self, is_closed: impl Fn(&HeldRequest) -> bool) {
        let held = self.live.requests.iter().filter(|held| held.request.agent_task().is_some());
        for held in held.filter(|held| is_closed(held)) {
            kin::close(&self.config, &self.live.meta.id, &held.request).await;
        }
    }

    /// The requests that are open.
    pub(super) fn open_requests(&self) -> Vec<InputRequest> {
        let open = self.live.requests.iter().filter(|held| held.reply.is_none());
        open.map(|held| held.request.clone()).collect()
    }

    /// The step is complete: nothing of it waits any more.
    pub(super) fn close_requests(&mut self) {
        let now = self.config.clock.now_ms();
        for held in std::mem::take(&mut self.live.requests) {
            if held.reply.is_some() {
                continue;
            }
            let how = if held.request.is_expired(now) { Closed::Expired } else { Closed::Withdrawn };
            let (request, call) = (held.request.id, held.request.call);
            self.out.stage(EventBody::InputClosed { request, call, how });
        }
    }

    fn open_request(&self, call: &ToolCall) -> Option<&InputRequest> {
        let open = self.live.requests.iter().filter(|held| held.reply.is_none());
        open.map(|held| &held.request).find(|request| request.call == call.id)
    }
}
