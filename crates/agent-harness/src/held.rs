//! The lease of a loaded session, with the attempt at its open turn that was counted for it (requirement D5).

use std::ops::Deref;
use std::sync::Arc;

use agent_core::SessionId;
use agent_store::{Lease, Store};
use futures_util::FutureExt;

use crate::HarnessError;
use crate::config::HarnessConfig;

/// A lease that takes its attempt back when its worker stops in order: the turn waits, the run failed or was dropped. A
/// process that dies, and a panic, do not come to that, so their attempt stays counted.
pub(crate) struct Held {
    lease: Lease,
    store: Arc<dyn Store>,
    /// Whether an attempt is counted that this worker may take back.
    is_counted: bool,
}

impl Held {
    /// Takes the session, which counts an attempt at its open turn before anything of it is read.
    ///
    /// # Errors
    /// When as many workers as there may be were lost over that turn: it is not taken up.
    pub(crate) async fn take(config: &HarnessConfig, session: &SessionId) -> Result<Self, HarnessError> {
        let lease = config.store.lease(session).await?;
        let attempts = lease.attempts();
        let held = Self { lease, store: config.store.clone(), is_counted: attempts > 0 };
        let lost = attempts.saturating_sub(1);
        if attempts > config.max_recoveries.max(1) {
            held.give_back().await?;
            return Err(HarnessError::NotTakenUp { session: session.clone(), attempts: lost });
        }
        if lost > 0 {
            tracing::warn!(%session, lost, "the open turn is taken up again; workers were lost over it");
        }
        Ok(held)
    }

    /// Takes the attempt back.
    pub(crate) async fn give_back(mut self) -> Result<(), HarnessError> {
        if self.is_counted {
            self.store.withdraw_attempt(&self.lease).await?;
            self.is_counted = false;
        }
        Ok(())
    }

    /// The turn is over, and what was counted with it.
    pub(crate) fn forget(&mut self) {
        self.is_counted = false;
    }
}

impl Deref for Held {
    type Target = Lease;

    fn deref(&self) -> &Lease {
        &self.lease
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.is_counted && !std::thread::panicking() {
            // It is begun and not waited for. Where it does not come about, an attempt is counted that was none.
            drop(self.store.withdraw_attempt(&self.lease).now_or_never());
        }
    }
}
