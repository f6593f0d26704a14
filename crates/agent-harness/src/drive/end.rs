//! How a turn ends or parks: the events that close it, and what the caller is told.

use agent_core::{ActionOutcome, Entry, EventBody, Excerpt, StepRecord, TerminalReason};
use agent_turn::Want;

use super::Drive;
use crate::run::TurnEnd;

impl Drive {
    /// Adds the closing events when the turn is over or waits.
    pub(super) fn tell_end(&mut self) {
        let reason = match self.turn.poll() {
            Want::Park(on) => {
                if !std::mem::replace(&mut self.is_waiting_told, true) {
                    self.out.stage(EventBody::TurnWaiting { on });
                }
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

    /// Gives the calls that never ran their event: every requested call has a result event (requirement L9).
    pub(super) fn tell_unrun(&mut self, step: &StepRecord) {
        let unrun = std::mem::take(&mut self.unrun);
        for (call, result) in step.pairs().filter(|(call, _)| unrun.contains(&call.id)) {
            let words = result.output.shared();
            let (call, tool, bytes) = (call.id.clone(), call.name.clone(), words.len() as u64);
            let preview = Excerpt::of(&words, words.len());
            self.out.stage(EventBody::ActionResult {
                call,
                tool,
                outcome: ActionOutcome::Cancelled,
                preview,
                bytes,
            });
        }
    }

    /// What the caller is told.
    pub(super) fn ended(&self, reason: TerminalReason) -> TurnEnd {
        let span = tracing::Span::current();
        span.record("reason", tracing::field::display(&reason));
        span.record("steps", self.turn.steps());
        TurnEnd {
            turn: self.turn.id(),
            reason,
            text: self.last_words(),
            steps: self.turn.steps(),
            usage: self.spent.clone(),
            children: self.children.clone(),
            requests: self.open_requests(),
            error: self.error.clone(),
        }
    }

    /// The text of the last step, when it belongs to this turn.
    fn last_words(&self) -> String {
        let Some(Entry::Step(step)) = self.live.history.entries().last() else { return String::new() };
        step.text()
    }
}
