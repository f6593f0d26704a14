//! What is said to a session while its turn is open: replies let it go on, messages join it or come after it.

use agent_core::{Closed, Diagnostic, EventBody, Heard, Input, InputId, Reply, StoredInput, UserMessage};
use agent_turn::Report;

use super::Drive;
use crate::{HarnessError, kin};

/// A message that waits in an inbox, whenever it was to be heard.
pub(crate) fn message_of(stored: StoredInput) -> Option<(Option<InputId>, UserMessage)> {
    match stored.input {
        Input::Message { message, .. } => Some((Some(stored.id), message)),
        Input::Reply { .. } => None,
    }
}

impl Drive {
    /// Looks at what was said since the last commit told that there is something; the next commit uses it.
    pub(super) async fn hear(&mut self) -> Result<(), HarnessError> {
        if !std::mem::take(&mut self.live.has_inputs) {
            return Ok(());
        }
        for StoredInput { id, input } in self.config.store.inputs(&self.live.meta.id).await? {
            if self.knows(id) {
                continue;
            }
            match input {
                Input::Reply { request, reply } => {
                    self.live.consumed.push(id);
                    if let Err(late) = self.reply(&request, reply) {
                        // It was open when the reply was taken, and closed before it was read.
                        let (what, why) = ("requests".to_owned(), late.to_string());
                        self.out.stage(EventBody::RequestDiagnostic(Diagnostic { what, why }));
                    }
                }
                Input::Message { message, heard: Heard::NextStep } => {
                    self.waiting.push_back((Some(id), message))
                }
                Input::Message { message, heard: Heard::Instead } => {
                    self.supersede();
                    self.waiting.push_back((Some(id), message));
                }
                // It stays in the inbox until the turn is over.
                Input::Message { heard: Heard::After, .. } => {}
            }
        }
        Ok(())
    }

    /// Lets a parked turn go on when there is something for it to do; whether it does.
    pub(super) async fn hear_replies(&mut self) -> Result<bool, HarnessError> {
        let open = self.open_requests().len();
        self.hear().await?;
        if !self.live.consumed.is_empty() || self.open_requests().len() < open {
            // What was taken, or closed by a message that still waits, is a fact before anything follows from it, and is
            // told once.
            self.write().await?;
        }
        let resumes = self.can_resume()
            || kin::can_go_on(&self.config, &self.live.meta.id, &self.live.requests).await?;
        if resumes {
            self.is_waiting_told = false;
            self.report(Report::Resume).await?;
        }
        Ok(resumes)
    }

    /// After a turn: the first message that was to be heard then.
    pub(super) async fn next_message(&mut self) -> Result<(), HarnessError> {
        if !self.waiting.is_empty() || !self.live.has_inputs {
            return Ok(());
        }
        let inputs = self.config.store.inputs(&self.live.meta.id).await?;
        self.waiting.extend(inputs.into_iter().find_map(message_of));
        Ok(())
    }

    /// Closes what the turn waits for, because the user said something else instead.
    fn supersede(&mut self) {
        for held in self.live.requests.iter_mut().filter(|held| held.reply.is_none()) {
            held.reply = Some(Reply::Decline(Some(SUPERSEDED.to_owned())));
            let (request, call) = (held.request.id.clone(), held.request.call.clone());
            self.out.stage(EventBody::InputClosed { request, call, how: Closed::Superseded });
        }
    }

    fn knows(&self, id: InputId) -> bool {
        self.live.consumed.contains(&id) || self.waiting.iter().any(|(input, _)| *input == Some(id))
    }
}

const SUPERSEDED: &str = "I said something else instead; read it below.";
