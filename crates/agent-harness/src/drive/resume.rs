//! A session that is taken up again begins from what was said of its older turns (requirement D5).

use agent_prepare::{CompactCx, resumed};

use super::Drive;
use crate::HarnessError;

impl Drive {
    /// Lets the words of older turns stand for them, once, before the first request of a session whose prompt no provider
    /// has cached any more: nothing is lost by another beginning then.
    pub(super) async fn begin_from_rounds(&mut self) -> Result<(), HarnessError> {
        let rounds = std::mem::take(&mut self.rounds);
        let now = self.config.clock.now_ms();
        let Some(keep) = self.config.raw_rounds.filter(|_| !rounds.is_empty()) else { return Ok(()) };
        if !self.live.cache.is_cold(now) {
            return Ok(());
        }
        let (config, live) = (self.config.clone(), &self.live);
        let profile = self.room_for(&*config.model);
        let compacted = live.slots.read(|slots| {
            let cx = CompactCx {
                history: &live.history,
                accountant: &live.accountant,
                model: &profile,
                apart: None,
                cached: false,
                slots,
                state: live.compaction,
                turn_from: self.turn_from,
            };
            resumed(&rounds, keep, &cx)
        });
        let Some(compacted) = compacted else { return Ok(()) };
        let (_, since) = self.tell_begun(None, compacted.tier, now);
        if let Some(error) = Box::pin(self.rewrite(compacted, since)).await? {
            tracing::warn!(%error, "the session could not begin from what was said of its turns");
        }
        Ok(())
    }
}
