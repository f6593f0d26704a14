//! The want to prepare: what the user said since joins the history, and the request is ready to be put together.

use agent_core::{Entry, EventBody};
use agent_turn::Report;

use super::Drive;
use crate::HarnessError;

impl Drive {
    pub(super) async fn prepare(&mut self) -> Result<(), HarnessError> {
        self.step_span = tracing::info_span!("step", step = self.turn.step().number());
        self.join().await?;
        self.report(Report::Prepared).await
    }

    /// Lets a waiting message, and a day that has begun, join the turn before its next model call.
    async fn join(&mut self) -> Result<(), HarnessError> {
        let joins = if self.waiting.is_some() {
            self.push_waiting()?;
            true
        } else {
            self.note_date()?
        };
        if joins { self.write().await } else { Ok(()) }
    }

    pub(super) fn push_waiting(&mut self) -> Result<(), HarnessError> {
        let Some(message) = self.waiting.take() else { return Ok(()) };
        let text = message.plain();
        let message = self.date_message(message)?;
        let entry = self.live.push(Entry::User(message))?;
        self.out.stage(EventBody::MessageReceived { entry, text });
        Ok(())
    }
}
