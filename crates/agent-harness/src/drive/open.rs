//! How a run begins: a new turn for a message, or an open one taken up with its journal.

use std::collections::BTreeSet;

use agent_core::{
    Diagnostic, Entry, EntryId, EventBody, HeldRequest, JournalRecord, Repair, Retried, Spent, StepNo,
};
use agent_turn::{Report, Turn, Want};

use super::show::denied_in;
use super::{Drive, Recovered};
use crate::HarnessError;
use crate::live::Open;
use crate::retry::RetryBudget;

impl Drive {
    /// What a watcher must know before anything else.
    pub(super) fn tell_opening(
        &mut self,
        repairs: Vec<(EntryId, Repair)>,
        changes: Vec<Diagnostic>,
        created: bool,
    ) {
        if created {
            self.out.stage(EventBody::SessionStarted { model: self.live.meta.model.clone() });
        }
        for (entry, repair) in repairs {
            tracing::warn!(%entry, ?repair, "the stored history was mended in the view");
            self.out.stage(EventBody::HistoryRepaired { entry, repair });
        }
        for change in changes {
            self.out.stage(EventBody::RequestDiagnostic(change));
        }
    }

    /// Opens the turn with the waiting message; the caller writes.
    pub(super) fn open_turn(&mut self) -> Result<(), HarnessError> {
        (self.prepared, self.call) = Default::default();
        self.config = self.agent.clone();
        self.denied = 0;
        self.turn_from = EntryId::at(self.live.history.len());
        self.live.last_turn = self.turn.id().number();
        self.live.retried = Retried::default();
        self.live.children.turn = Spent::default();
        self.out.turn = Some(self.turn.id());
        self.out.step = None;
        self.out.stage(EventBody::TurnStarted {});
        self.push_waiting()?;
        self.tell_step(self.turn.step());
        Ok(())
    }

    /// A step begins, and so does its request.
    pub(super) fn tell_step(&mut self, step: StepNo) {
        self.out.step = Some(step);
        self.out.stage(EventBody::StepStarted {});
        let begins = self.live.cache.begins();
        self.out.stage(begins);
    }

    /// Takes up a turn that a crash or a park left open, with what was journaled of its last step.
    ///
    /// Finished calls keep their results; nothing that finished runs again (requirement D4).
    pub(super) fn take_up(&mut self, open: Open) -> Result<(), HarnessError> {
        let session = self.session();
        self.turn = Turn::restore(&open.turn).map_err(|cause| HarnessError::Turn { session, cause })?;
        self.retries = RetryBudget::without(&self.config.retry, self.live.retried.turn);
        self.turn_from = open.turn_from.unwrap_or_else(|| self.began_at());
        self.prepared.active = open.active;
        self.denied = self.denied_before();
        self.out.turn = Some(self.turn.id());
        self.out.step = Some(self.turn.step());
        self.step_span = tracing::info_span!("step", step = self.turn.step().number());
        if self.waiting.front().is_some_and(|(_, said)| self.live.has_heard(said)) {
            // The same command run again after a crash: go on instead of saying it twice.
            self.waiting.pop_front();
        }
        let was_parked = matches!(self.turn.poll(), Want::Park(_));
        self.is_waiting_told = was_parked;
        let mut recovered = Recovered {
            // A parked turn holds its response itself.
            has_response: was_parked,
            reports: Vec::new(),
            lost: BTreeSet::new(),
        };
        let is_answered =
            was_parked || open.journal.iter().any(|it| matches!(it, JournalRecord::Response(_)));
        if !is_answered {
            // The step is asked for anew, perhaps with another prompt.
            let begins = self.live.cache.begins();
            self.out.stage(begins);
        }
        for record in open.journal {
            match record {
                JournalRecord::Response(pending) => {
                    // It was paid for in the other process, and no commit has counted it yet.
                    let usage = &pending.response().usage;
                    self.pay(usage);
                    self.live.cache.recover(usage, &self.live.history);
                    let is_prepared = matches!(self.turn.poll(), Want::Model);
                    recovered.reports.extend((!is_prepared).then_some(Report::Prepared));
                    recovered.reports.push(Report::Response(pending));
                    recovered.has_response = true;
                }
                JournalRecord::Active(names) => self.prepared.active = Some(names),
                JournalRecord::Started(call) => {
                    recovered.lost.insert(call);
                }
                JournalRecord::Sent(child) => {
                    self.live.sent.insert(child);
                }
                // No commit has counted it yet: this one's empties the journal.
                JournalRecord::Returned(spent) => self.live.children.add(&spent),
                JournalRecord::Waits(request) => {
                    recovered.lost.remove(&request.call);
                    self.live.requests.push(HeldRequest { request, reply: None });
                }
                JournalRecord::Finished { result, slots } => {
                    recovered.lost.remove(&result.call);
                    self.live.close_task(&result.call, &result.output);
                    if let Some(slots) = slots {
                        self.live.slots.update(|now| *now = slots);
                    }
                    recovered.reports.push(Report::Result(result));
                }
            }
        }
        if was_parked && self.live.requests.is_empty() {
            // Parked by an older release, which did not say what for.
            recovered.reports.push(Report::Resume);
        }
        self.recovered = recovered;
        Ok(())
    }

    /// Where a turn that was taken up begins when that is not stored: behind the last step of the turn before it.
    fn began_at(&self) -> EntryId {
        let mut own = self.turn.steps();
        let entries = self.live.history.entries().iter().enumerate().rev();
        for (at, entry) in entries {
            match entry {
                Entry::Step(_) if own == 0 => return EntryId::at(at + 1),
                Entry::Step(_) => own -= 1,
                Entry::User(_) | Entry::Note(_) | Entry::Boundary(_) => {}
            }
        }
        EntryId::at(0)
    }

    /// Calls that were refused in the steps of a turn that is taken up.
    fn denied_before(&self) -> u32 {
        let entries = self.live.history.entries().get(self.turn_from.position()..).unwrap_or_default();
        let denied = entries.iter().filter_map(Entry::as_step).map(denied_in);
        denied.fold(0, u32::saturating_add)
    }

    /// Where the user last said something.
    pub(super) fn last_asked(&self) -> EntryId {
        let entries = self.live.history.entries();
        let asked = entries.iter().rposition(|entry| matches!(entry, Entry::User(_)));
        EntryId::at(asked.unwrap_or(entries.len()))
    }
}
