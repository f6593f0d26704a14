//! How a turn ends or parks: the events that close it, and what the caller is told.

use agent_core::{AssistantPart, Entry, EventBody, TerminalReason};
use agent_turn::Want;

use super::Drive;
use crate::run::TurnEnd;

impl Drive {
    /// Adds the closing events when the turn is over or waits.
    pub(super) fn tell_end(&mut self) {
        let reason = match self.turn.poll() {
            Want::Park(on) => {
                self.out.stage(EventBody::TurnWaiting { on });
                return;
            }
            Want::End(reason) => reason.clone(),
            Want::Prepare(_) | Want::Model | Want::Tools(_) => return,
        };
        self.out.step = None;
        let (steps, usage) = (self.turn.steps(), self.spent.clone());
        match &self.error {
            Some(error) if reason != TerminalReason::Aborted => {
                let message = error.message.clone();
                self.out.stage(EventBody::TurnFailed { reason, message, steps, usage });
            }
            _ => self.out.stage(EventBody::TurnCompleted { reason, steps, usage }),
        }
        self.out.turn = None;
        self.out.stage(EventBody::SessionWaiting {});
    }

    /// What the caller is told.
    pub(super) fn ended(&self, reason: TerminalReason) -> TurnEnd {
        let span = tracing::Span::current();
        span.record("reason", tracing::field::display(&reason));
        span.record("steps", self.turn.steps());
        TurnEnd {
            text: self.last_words(),
            steps: self.turn.steps(),
            usage: self.spent.clone(),
            error: self.error.clone(),
            ..TurnEnd::new(self.turn.id(), reason)
        }
    }

    /// The text of the last step, when it belongs to this turn.
    fn last_words(&self) -> String {
        let Some(Entry::Step(step)) = self.live.history.entries().last() else { return String::new() };
        let texts = step.parts().iter().filter_map(|part| {
            if let AssistantPart::Text(text) = part { Some(text.text.as_str()) } else { None }
        });
        texts.collect::<Vec<_>>().join("")
    }
}
