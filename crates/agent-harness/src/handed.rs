//! What is said to a session from anywhere: by this worker or another, while a turn runs or waits (requirement L7).

use std::time::Duration;

use agent_core::{
    Heard, HeldRequest, Input, InputId, InputRequest, Reply, RequestId, SessionState, UserMessage,
};
use agent_store::StoreError;

use crate::drive::{Incoming, fits};
use crate::{HarnessError, RequestError, Run, Session, kin};

/// Who hears what was said.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "a caller handles both")]
pub enum Handed {
    /// This run: it goes on only while it is awaited.
    Run(Run),
    /// The worker that has the session: it hears it at its next commit.
    Elsewhere,
}

impl Session {
    /// Replies to a request of the open turn. The first reply to a request stands; it is stored before this returns. A turn
    /// that waits is taken up: calls whose replies are there run, and it parks again while others are missing. A request of a
    /// sub-agent is answered here as well: the reply goes to it, and the turn that waits for it is taken up.
    ///
    /// # Errors
    /// When there is no such request, it was answered or has lapsed, or the reply is none to it. Nothing has changed then,
    /// no model was asked, and the request is as open as before.
    pub async fn respond(&self, request: &RequestId, reply: Reply) -> Result<Handed, HarnessError> {
        let state = self.config.store.state(&self.id).await?;
        let held = state.as_ref().map(SessionState::held).unwrap_or_default();
        if held.iter().all(|held| held.request.id != *request)
            && kin::reply(&self.config, &self.id, &held, (request, &reply)).await?
        {
            return self.hand(Left::WithChildren(&held)).await;
        }
        let id = self.leave(&held, request, reply).await?;
        self.hand(Left::Input(id)).await
    }

    /// Leaves a reply in the inbox of the session, when it is one to these requests.
    pub(crate) async fn leave(
        &self,
        held: &[HeldRequest],
        request: &RequestId,
        reply: Reply,
    ) -> Result<InputId, HarnessError> {
        let refused = |cause| HarnessError::Request { session: self.id.clone(), cause };
        fits(held, &self.config, request, &reply).map_err(refused)?;
        let input = Input::Reply { request: request.clone(), reply };
        match self.config.store.put_input(&self.id, &input).await {
            Ok(id) => Ok(id),
            Err(StoreError::Repeated { .. }) => Err(refused(RequestError::Answered(request.clone()))),
            Err(StoreError::NoTurn(_)) => Err(refused(RequestError::Unknown(request.clone()))),
            Err(error) => Err(error.into()),
        }
    }

    /// Says something for the next step of the open turn, whoever drives it; sends it where no turn is open.
    pub async fn steer(&self, text: impl Into<String>) -> Result<Handed, HarnessError> {
        self.say(UserMessage::text(text)?, Heard::NextStep).await
    }

    /// Says something for a turn of its own behind the open one, whoever drives it; sends it where no turn is open.
    pub async fn follow_up(&self, text: impl Into<String>) -> Result<Handed, HarnessError> {
        self.say(UserMessage::text(text)?, Heard::After).await
    }

    /// Says something while a turn may be open. It is stored before this returns.
    pub async fn say(&self, message: UserMessage, heard: Heard) -> Result<Handed, HarnessError> {
        let input = Input::Message { message: message.clone(), heard };
        match self.config.store.put_input(&self.id, &input).await {
            Ok(id) => self.hand(Left::Input(id)).await,
            Err(StoreError::NoTurn(_) | StoreError::Missing(_)) => {
                self.send_message(message).await.map(Handed::Run)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// What the open turn waits for, and behind that what its sub-agents wait for; nothing when it does not wait.
    pub async fn requests(&self) -> Result<Vec<InputRequest>, HarnessError> {
        let state = self.config.store.state(&self.id).await?;
        let held = state.as_ref().map(SessionState::held).unwrap_or_default();
        let of_children = kin::requests(&self.config, &self.id, &held).await?;
        let own = state.map(|state| state.open_requests()).unwrap_or_default();
        Ok(own.into_iter().chain(of_children).collect())
    }

    /// Takes the session up for what was left to be heard, or leaves it to the worker that has it.
    ///
    /// Whoever has it commits once more before it gives the session back, and hears the input then; the one that has made
    /// its last commit gives it back at once.
    async fn hand(&self, left: Left<'_>) -> Result<Handed, HarnessError> {
        for _ in 0..TRIES {
            match self.start(Incoming::Nothing).await {
                Ok(run) => return Ok(Handed::Run(run)),
                Err(HarnessError::AtWork(_) | HarnessError::Store(StoreError::Busy { .. })) => {}
                // It was heard, and the turn is over.
                Err(HarnessError::NothingToResume(_)) => return Ok(Handed::Elsewhere),
                Err(error) => return Err(error),
            }
            if !self.is_unheard(&left).await? {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(Handed::Elsewhere)
    }

    async fn is_unheard(&self, left: &Left<'_>) -> Result<bool, HarnessError> {
        match left {
            Left::Input(id) => {
                let inputs = self.config.store.inputs(&self.id).await?;
                Ok(inputs.iter().any(|input| input.id == *id))
            }
            Left::WithChildren(waits) => Ok(kin::can_go_on(&self.config, &self.id, waits).await?),
        }
    }
}

/// What somebody left for a session.
enum Left<'a> {
    /// In its own inbox.
    Input(InputId),
    /// With a sub-agent, which these requests wait for.
    WithChildren(&'a [HeldRequest]),
}

impl Handed {
    /// The run, when it is this worker that hears it.
    pub fn run(self) -> Option<Run> {
        match self {
            Self::Run(run) => Some(run),
            Self::Elsewhere => None,
        }
    }
}

/// How long a worker that has made its last commit may take to give the session back.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(10);
