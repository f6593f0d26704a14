//! Compaction: the moves of the cascade, each written before the next, told, and then shown to the hooks.

use agent_core::{Entry, EventBody};
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

/// The tier at work, and since when.
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
        loop {
            if self.cancel.is_cancelled() {
                return Ok(Looked::Stopped);
            }
            let live = &self.live;
            let next = live.slots.read(|slots| {
                let cx = CompactCx {
                    history: &live.history,
                    accountant: &live.accountant,
                    model: config.model.profile(),
                    apart: config.summary_model.as_ref().map(|model| model.profile()),
                    slots,
                    state: live.compaction,
                    turn_from: self.turn_from,
                };
                machine.advance(cascade, &cx)
            });
            self.live.compaction = machine.state();
            match next {
                Move::Settled => return Ok(Looked::Fits),
                Move::Blocked(words) => return Ok(Looked::Blocked(words)),
                Move::Ask { tier, ask } => {
                    self.tell_begun(&mut begun, tier);
                    match Box::pin(self.ask(ask)).await? {
                        Some(answer) => machine.answer(answer),
                        None => return Ok(Looked::Stopped),
                    }
                }
                Move::Failed { tier, why } => {
                    tracing::warn!(tier, why, "a tier of compaction failed");
                    let failed = FailedTier { tier: tier.to_owned(), message: why.clone() };
                    self.compacted.failed.push(failed);
                    self.out.stage(EventBody::CompactionFailed { tier: tier.to_owned(), message: why });
                }
                Move::Rewrite(compacted) => {
                    let since = self.tell_begun(&mut begun, compacted.tier);
                    if let Some(error) = Box::pin(self.rewrite(compacted, since)).await? {
                        return Ok(Looked::Refused(error));
                    }
                }
            }
        }
    }

    /// Tells that a tier begins, once; since when it is at work.
    fn tell_begun(&mut self, begun: &mut Begun, tier: &'static str) -> i64 {
        if let Some((_, since)) = begun.filter(|(at_work, _)| *at_work == tier) {
            return since;
        }
        let now = self.config.clock.now_ms();
        *begun = Some((tier, now));
        let before = self.live.accountant.used();
        self.out.stage(EventBody::CompactionRequested { before, tier: tier.to_owned() });
        now
    }

    /// One write of the boundary and of what is put back behind it; then the hooks.
    async fn rewrite(
        &mut self,
        compacted: Compacted,
        since: i64,
    ) -> Result<Option<PrepareError>, HarnessError> {
        let Compacted { tier, rewrite, notes, before, .. } = compacted;
        match self.live.push(Entry::Boundary(rewrite)) {
            Ok(_) => {}
            Err(HarnessError::History(cause)) => return Ok(Some(PrepareError::Rewrite { tier, cause })),
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
            let told = tokio::select! {
                biased;
                () = self.cancel.cancelled() => return,
                told = hook.compacted(&cx) => told,
            };
            if let Err(error) = told {
                self.declare("after_compaction", error.to_string());
            }
        }
    }
}
