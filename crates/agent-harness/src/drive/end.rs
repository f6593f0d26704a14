//! How a turn ends or parks: the events that close it, and what the caller is told.

use std::sync::Arc;
use std::time::Duration;

use agent_core::{
    ActionOutcome, Entry, EntryId, EventBody, Excerpt, ModelProfile, RawJson, StepNo, StepRecord,
    TerminalReason, Usage,
};
use agent_turn::{Mode, Seen, Task, Todos, Want};

use super::Drive;
use crate::run::TurnEnd;
use crate::{AfterStepCx, AfterTurnCx, Harness};

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
            _ => {
                let stopped_by = self.turn.stopped_by().map(str::to_owned);
                self.out.stage(EventBody::TurnCompleted { reason, steps, usage, stopped_by });
            }
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

    /// Begins what is done behind a turn that was brought to its end; nobody waits for it (requirement L11).
    pub(super) fn begin_background(&self, reason: &TerminalReason) {
        if !reason.is_success() {
            return;
        }
        let began = self.turn_from;
        let entries = self.live.history.entries().get(began.position()..).unwrap_or_default();
        let entries: Arc<[Entry]> =
            if self.config.after_turn.is_empty() { [].into() } else { entries.into() };
        for work in &self.config.after_turn {
            let cx = AfterTurnCx {
                session: self.session(),
                turn: self.turn.id(),
                reason: reason.clone(),
                began,
                entries: entries.clone(),
                tokens: self.context().used,
                agent: Harness::of(self.config.clone()),
                cancel: self.config.background.cancel().child(),
            };
            self.config.background.after_turn(work.clone(), cx);
        }
    }

    /// Begins what is done behind a step that is stored.
    pub(super) fn begin_behind(&self, step: StepNo, calls: usize) {
        for work in &self.config.after_step {
            let cx = AfterStepCx {
                session: self.session(),
                turn: self.turn.id(),
                step,
                next: EntryId::at(self.live.history.len()),
                tokens: self.context().used,
                calls: count(calls),
                had_break: calls == 0,
                session_calls: self.live.calls,
                ends_turn: matches!(self.turn.poll(), Want::End(_)),
                agent: Harness::of(self.config.clone()),
                cancel: self.config.background.cancel().child(),
            };
            self.config.background.after_step(work.clone(), cx);
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
            children: self.live.children.turn.usage.clone(),
            requests: self.open_requests(),
            error: self.error.clone(),
            output: self.final_output(),
            stopped_by: self.turn.stopped_by().map(str::to_owned),
        }
    }

    /// What the last step of a completed task gave as its final output, as the model wrote it.
    fn final_output(&self) -> Option<RawJson> {
        let Mode::Task(Task { output_tool: Some(tool), .. }) = &self.config.mode else { return None };
        if !matches!(self.turn.poll(), Want::End(TerminalReason::Completed)) {
            return None;
        }
        let Some(Entry::Step(step)) = self.live.history.entries().last() else { return None };
        let mut pairs = step.pairs();
        let (call, _) = pairs.find(|(call, result)| call.name == *tool && !result.output.is_error())?;
        call.input.json().cloned()
    }

    /// Tells the turn what was spent since it was last told, and how the todo list stands.
    pub(super) fn tell_seen(&mut self) {
        let now_ms = self.config.clock.now_ms();
        let millis = u64::try_from(now_ms.saturating_sub(self.seen_ms)).unwrap_or(0);
        self.seen_ms = now_ms;
        self.live.elapsed_ms = self.live.elapsed_ms.saturating_add(millis);
        let todos = self
            .live
            .slots
            .read(|slots| Todos { open: count(slots.open_todos().count()), all: count(slots.todos.len()) });
        let seen = std::mem::take(&mut self.seen);
        self.turn.see(&Seen { elapsed: Duration::from_millis(millis), todos, ..seen });
    }

    /// Counts a call beside the conversation: no step has its tokens.
    pub(super) fn pay_beside(&mut self, model: &ModelProfile, usage: &Usage) {
        self.pay_at(model, usage);
        self.seen.beside += usage;
    }

    /// The text of the last step, when it belongs to this turn.
    fn last_words(&self) -> String {
        let Some(Entry::Step(step)) = self.live.history.entries().last() else { return String::new() };
        step.text()
    }
}

fn count(items: usize) -> u32 {
    u32::try_from(items).unwrap_or(u32::MAX)
}
