//! Compaction: the moves of the cascade, each written before the next, told, and then shown to the hooks.

use agent_core::{Diagnostic, Entry, EventBody};
use agent_prepare::{Cause, CompactCx, Compacted, ContextState, Move, PrepareError, Synthesised};

use super::Drive;
use crate::HarnessError;
use crate::compaction::{CompactedTier, FailedTier};
use crate::hooks::PostCompactCx;

/// What came of looking at the context.
pub(super) enum Looked {
    /// A request may be sent.
    Fits,
    /// None may be sent; these words end the turn.
    Blocked(Synthesised),
    /// The run was stopped.
    Stopped,
    /// A tier gave what cannot be.
    Refused(PrepareError),
}

/// The tier that was told to be at work, and since when. Each is told to be done, or to have failed, once.
type Begun = Option<(&'static str, i64)>;

impl Drive {
    /// How full the context is.
    pub(super) fn context(&self) -> ContextState {
        self.config.pipeline.cascade().measure(&self.live.accountant, self.config.model.profile())
    }

    /// Shows how full the context is, and tells it when it crossed a threshold.
    pub(super) fn tell_level(&mut self) {
        let state = self.context();
        self.live.gauge.set(state);
        let level = state.level();
        if std::mem::replace(&mut self.live.level, level) != level {
            let (level, window) = (level.as_str().to_owned(), state.thresholds.window);
            self.out.stage(EventBody::ContextLevel { level, used: state.used, window });
        }
    }

    /// Runs the cascade until the context is settled. Nothing that it asks or writes comes back here.
    pub(super) async fn compact(&mut self, cause: Cause) -> Result<Looked, HarnessError> {
        let config = self.config.clone();
        let cascade = config.pipeline.cascade();
        let mut machine = cascade.begin(cause);
        let mut begun = None;
        // What the provider refused was sent to the step's model; otherwise the step has none yet.
        let model = match cause {
            Cause::Overflow => self.model().clone(),
            Cause::First | Cause::Continuation | Cause::Manual => config.model.clone(),
        };
        loop {
            if self.cancel.is_cancelled() {
                return Ok(self.stopped(begun));
            }
            let live = &self.live;
            // A tier that asks nobody begins and ends in this move.
            let now = config.clock.now_ms();
            let next = live.slots.read(|slots| {
                let cx = CompactCx {
                    history: &live.history,
                    accountant: &live.accountant,
                    model: model.profile(),
                    apart: config.summary_model.as_ref().map(|model| model.profile()),
                    slots,
                    state: live.compaction,
                    turn_from: self.turn_from,
                };
                machine.advance(cascade, &cx)
            });
            self.live.compaction = machine.state();
            let tier = match &next {
                Move::Ask { tier, .. } | Move::Failed { tier, .. } => Some(*tier),
                Move::Rewrite(compacted) => Some(compacted.tier),
                Move::Settled | Move::Blocked(_) => None,
            };
            self.tell_begun(&mut begun, tier, now);
            match next {
                Move::Settled => return Ok(Looked::Fits),
                Move::Blocked(words) => return Ok(Looked::Blocked(words)),
                Move::Ask { ask, .. } => match Box::pin(self.ask(ask)).await? {
                    Some(answer) => machine.answer(answer),
                    None => return Ok(self.stopped(begun)),
                },
                Move::Failed { tier, why } => {
                    begun = None;
                    self.tell_failed(tier, why);
                }
                Move::Rewrite(compacted) => {
                    let since = begun.take().map_or(now, |(_, since)| since);
                    if let Some(error) = Box::pin(self.rewrite(compacted, since)).await? {
                        return Ok(Looked::Refused(error));
                    }
                }
            }
        }
    }

    /// Tells that another tier is at work, and what became of the one before it.
    fn tell_begun(&mut self, begun: &mut Begun, tier: Option<&'static str>, now: i64) {
        let at_work = begun.map(|(tier, _)| tier);
        if at_work == tier {
            return;
        }
        if let Some(before) = at_work {
            self.tell_failed(before, "it asked a model, and had nothing to offer then".to_owned());
        }
        *begun = tier.map(|tier| (tier, now));
        if let Some(tier) = tier {
            let before = self.live.accountant.used();
            self.out.stage(EventBody::CompactionRequested { before, tier: tier.to_owned() });
        }
    }

    fn tell_failed(&mut self, tier: &'static str, why: String) {
        tracing::warn!(tier, why, "a tier of compaction failed");
        self.compacted.failed.push(FailedTier { tier: tier.to_owned(), message: why.clone() });
        self.out.stage(EventBody::CompactionFailed { tier: tier.to_owned(), message: why });
    }

    /// The run was stopped, and so was the tier at work.
    fn stopped(&mut self, begun: Begun) -> Looked {
        if let Some((tier, _)) = begun {
            self.tell_failed(tier, "the run was stopped before its question was answered".to_owned());
        }
        Looked::Stopped
    }

    /// What the boundary clips is stored first; then one write of the boundary and of what is put back behind it; then
    /// the hooks.
    async fn rewrite(
        &mut self,
        compacted: Compacted,
        since: i64,
    ) -> Result<Option<PrepareError>, HarnessError> {
        let Compacted { tier, rewrite, notes, before, .. } = compacted;
        let rewrite = self.offload(rewrite).await?;
        match self.live.push(Entry::Boundary(rewrite)) {
            Ok(_) => {}
            Err(HarnessError::History(cause)) => {
                let error = PrepareError::Rewrite { tier, cause };
                self.tell_failed(tier, error.to_string());
                return Ok(Some(error));
            }
            Err(error) => return Err(error),
        }
        for note in notes {
            self.live.push(Entry::Note(note))?;
        }
        // It may have covered where the day was told.
        self.note_date()?;
        // What was read of files is not shown any more.
        self.live.slots.update(|slots| slots.reads.clear());
        let after = self.live.accountant.used();
        let millis = self.config.clock.now_ms().saturating_sub(since);
        let millis = u64::try_from(millis).unwrap_or(0);
        let name = tier.to_owned();
        self.compacted.tiers.push(CompactedTier { tier: name.clone(), before, after });
        self.out.stage(EventBody::CompactionCompleted { before, after, tier: name, millis });
        self.tell_level();
        self.write().await?;
        self.tell_hooks(tier, before, after).await;
        Ok(None)
    }

    async fn tell_hooks(&mut self, tier: &'static str, before: u64, after: u64) {
        for hook in self.config.after_compaction.clone() {
            let cx = PostCompactCx {
                session: &self.live.meta.id,
                tier,
                before,
                after,
                history: self.live.history.view(),
                cancel: &self.cancel,
            };
            let deadline = hook.deadline();
            let told = tokio::select! {
                biased;
                () = self.cancel.cancelled() => return,
                told = tokio::time::timeout(deadline, hook.compacted(&cx)) => told,
            };
            let why = match told {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!(
                    "{hook:?} was still busy after {} ms and was dropped; let it hand on what takes longer, or give it a longer `deadline`",
                    deadline.as_millis()
                ),
            };
            // Told of each compaction: a log that lacks one is another loss than a log that lacks two.
            let what = "after_compaction".to_owned();
            self.out.stage(EventBody::RequestDiagnostic(Diagnostic { what, why }));
        }
    }
}
