//! The one writer: a step, a park or an end is one atomic write, with the events that follow from it.

use agent_core::{Entry, EventBody, ModelProfile, RawJson, Spent, StepNo, StepRecord, Usage};
use agent_turn::Want;

use super::Drive;
use crate::HarnessError;
use crate::changes::model_name;
use crate::live::Write;

impl Drive {
    pub(super) async fn commit_step(&mut self, at: StepNo, step: StepRecord) -> Result<(), HarnessError> {
        let (finish, usage) = (step.finish().clone(), step.usage().clone());
        let calls = step.pairs().count();
        self.count_denied(&step);
        self.out.step = Some(at);
        self.tell_unrun(&step);
        self.close_requests();
        let entry = self.live.push(Entry::Step(step))?;
        // An answer that a journal or a parked turn held was not heard of in this process.
        self.live.accountant.report(crate::gauge::size(&usage), entry.position());
        // Who looks between two messages sees the answer counted; that a threshold was crossed is told with the next step.
        self.show_context();
        let voided = std::mem::take(&mut self.voided);
        let model = Some(model_name(self.model().profile()));
        self.out.stage(EventBody::StepCompleted { entry, finish, usage, voided, model });
        if let Want::Prepare(next) = self.turn.poll() {
            self.tell_step(next);
        }
        self.recovered.lost.clear();
        self.write().await?;
        self.begin_behind(at, calls);
        Ok(())
    }

    /// Counts a call of the step's model, whatever came of it (requirement M6).
    pub(super) fn pay(&mut self, usage: &Usage) {
        let model = self.model().clone();
        self.pay_at(model.profile(), usage);
    }

    /// Counts a call of a model at its prices.
    pub(super) fn pay_at(&mut self, model: &ModelProfile, usage: &Usage) {
        let cost_usd = model.prices.as_ref().map_or(0.0, |prices| prices.cost(usage));
        self.seen.cost_usd += cost_usd;
        self.live.nano_usd = self.live.nano_usd.saturating_add(Spent::nanos(cost_usd));
        self.spent += usage;
        self.live.usage += usage;
        if *usage == Usage::default() {
            return;
        }
        match &mut self.unrecorded {
            Some(sum) => *sum += usage,
            None => self.unrecorded = Some(usage.clone()),
        }
    }

    /// The turn as another process would take it up: a model call under way is prepared anew.
    fn saved_turn(&self) -> Result<RawJson, HarnessError> {
        match (self.turn.poll(), &self.saved) {
            (Want::Model, Some(saved)) => Ok(saved.clone()),
            _ => Ok(self.turn.save()?),
        }
    }

    /// One atomic write of everything new, with the events that follow from what the turn wants now.
    pub(super) async fn write(&mut self) -> Result<(), HarnessError> {
        self.tell_end();
        let terminal = match self.turn.poll() {
            Want::End(reason) => Some(reason.clone()),
            Want::Prepare(_) | Want::Model | Want::Tools(_) | Want::Park(_) => None,
        };
        let turn = if terminal.is_some() || self.is_idle { None } else { Some(self.saved_turn()?) };
        self.saved.clone_from(&turn);
        let usage = self.unrecorded.take();
        let is_parked = matches!(self.turn.poll(), Want::Park(_));
        let write = Write {
            turn_from: turn.is_some().then_some(self.turn_from),
            // Before a response there is nothing to be held to, and the journal has it while its calls run.
            active: self.prepared.active.as_ref().filter(|_| is_parked),
            turn,
            usage: usage.as_ref(),
            terminal: terminal.as_ref(),
        };
        self.live.commit(&self.config, &mut self.out, write).await?;
        self.show();
        Ok(())
    }
}
