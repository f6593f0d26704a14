//! Compaction: the moves of the cascade, each written before the next, told, and then shown to the hooks.

use std::borrow::Cow;
use std::sync::Arc;

use agent_core::{Cancel, Diagnostic, Entry, EventBody, LanguageModel, ModelProfile};
use agent_prepare::{Cause, CompactCx, Compacted, ContextState, Move, PrepareError, Synthesised};

use super::Drive;
use crate::compaction::{CompactedTier, Compaction, Done, FailedTier};
use crate::config::HarnessConfig;
use crate::hooks::PostCompactCx;
use crate::live::{Live, Loaded};
use crate::outbox::Outbox;
use crate::{Connection, HarnessError};

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
    /// Compacts a session on which no turn is open, because the user asked for it.
    pub(crate) async fn compact_by_hand(
        config: Arc<HarnessConfig>,
        loaded: Loaded,
        out: Outbox,
    ) -> Result<(Compaction, Box<Live>), HarnessError> {
        let Loaded { live, repairs, changes, created, .. } = loaded;
        let mut drive = Self::of(config, live, out, Cancel::new());
        drive.is_idle = true;
        drive.turn_from = drive.last_asked();
        // What `prepare_call` gave was for a turn that is over.
        let live = &mut drive.live;
        live.accountant.set_fixed(&live.meta.system, live.tools.sent_to(drive.config.model.profile()));
        drive.tell_opening(repairs, changes, created);
        let before = drive.context();
        let looked = drive.compact(Cause::Manual).await?;
        drive.tell_level();
        // What was tried is told, also of a tier at fault.
        drive.write().await?;
        if let Looked::Refused(cause) = looked {
            return Err(HarnessError::Prepare { session: drive.session(), cause });
        }
        let (after, Done { tiers, failed }) = (drive.context(), drive.compacted);
        Ok((Compaction { before, after, tiers, failed, usage: drive.spent }, drive.live))
    }

    /// How full the context is.
    pub(super) fn context(&self) -> ContextState {
        self.config.pipeline.cascade().measure(&self.live.accountant, self.config.model.profile())
    }

    /// Shows how full the context is, and tells it when it crossed a threshold.
    pub(super) fn tell_level(&mut self) {
        let state = self.context();
        self.show_context();
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
        let profile = self.room_for(&*model);
        if config.notes.is_some()
            && self.look(&profile, config.clock.now_ms(), |cx| machine.would_begin(cascade, cx))
        {
            Box::pin(self.fetch_notes()).await;
        }
        loop {
            if self.cancel.is_cancelled() {
                return Ok(self.stopped(begun));
            }
            // A tier that asks nobody begins and ends in this move.
            let now = config.clock.now_ms();
            let next = self.look(&profile, now, |cx| machine.advance(cascade, cx));
            self.live.compaction = machine.state();
            match next {
                Move::Settled => return Ok(Looked::Fits),
                Move::Blocked(words) => return Ok(Looked::Blocked(words)),
                Move::Ask { tier, ask } => {
                    begun = Some(self.tell_begun(begun, tier, now));
                    match Box::pin(self.ask(ask)).await? {
                        Some(answer) => machine.answer(answer),
                        None => return Ok(self.stopped(begun)),
                    }
                }
                Move::Failed { tier, why } => {
                    self.tell_begun(begun.take(), tier, now);
                    self.tell_failed(tier, why);
                }
                Move::Rewrite(compacted) => {
                    let (_, since) = self.tell_begun(begun.take(), compacted.tier, now);
                    if let Some(error) = Box::pin(self.rewrite(compacted, since)).await? {
                        return Ok(Looked::Refused(error));
                    }
                }
            }
        }
    }

    /// Looks at the context as a cascade does.
    fn look<T>(&self, model: &ModelProfile, now: i64, look: impl FnOnce(&CompactCx<'_>) -> T) -> T {
        let live = &self.live;
        live.slots.read(|slots| {
            look(&CompactCx {
                history: &live.history,
                accountant: &live.accountant,
                model,
                apart: self.config.summary_model.as_ref().map(|model| model.profile()),
                cached: live.cache.may_be_read(now),
                slots,
                state: live.compaction,
                turn_from: self.turn_from,
            })
        })
    }

    /// Puts the newest notes where tiers find them; a compaction goes on without those that cannot be had.
    async fn fetch_notes(&mut self) {
        let Some(source) = self.config.notes.clone() else { return };
        let deadline = source.deadline();
        let fetched = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return,
            fetched = tokio::time::timeout(deadline, source.notes(&self.live.meta.id)) => fetched,
        };
        let why = match fetched {
            Ok(Ok(notes)) => {
                self.live.show_connection(NOTES.to_owned(), Connection::Up);
                if notes.is_some() {
                    self.live.slots.update(|slots| slots.notes = notes);
                }
                return;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!(
                "the source of notes was still busy after {} ms, and the compaction goes on without; let it answer with what it has, or give it a longer `deadline`",
                deadline.as_millis()
            ),
        };
        self.live.show_connection(NOTES.to_owned(), Connection::Failed(why.clone()));
        self.out.stage(EventBody::RequestDiagnostic(Diagnostic { what: NOTES.to_owned(), why }));
    }

    /// The model that room is made for. A boundary is one for all models of the session: where the thinking of any of them
    /// is bound to the bytes before it, what lies before the boundary loses its own.
    pub(super) fn room_for<'m>(&self, model: &'m dyn LanguageModel) -> Cow<'m, ModelProfile> {
        let profile = model.profile();
        let mut all = std::iter::once(self.config.model.profile()).chain(self.live.encoders.profiles());
        if profile.binds_thinking_to_prefix || !all.any(|other| other.binds_thinking_to_prefix) {
            return Cow::Borrowed(profile);
        }
        Cow::Owned(ModelProfile { binds_thinking_to_prefix: true, ..profile.clone() })
    }

    /// Tells that a tier is at work, once; since when it is. The machine lets one end before another begins.
    pub(super) fn tell_begun(&mut self, begun: Begun, tier: &'static str, now: i64) -> (&'static str, i64) {
        begun.unwrap_or_else(|| {
            let before = self.live.accountant.used();
            self.out.stage(EventBody::CompactionRequested { before, tier: tier.to_owned() });
            (tier, now)
        })
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
    pub(super) async fn rewrite(
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

/// What the source of notes is called where it is told of.
const NOTES: &str = "notes";
