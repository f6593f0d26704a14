//! The right to write to a session.

use std::any::Any;
use std::fmt;

use agent_core::SessionId;

/// One worker's right to write to a session, until it is dropped (requirement D3).
///
/// It cannot be copied: a worker has it or has it not.
///
/// ```compile_fail
/// # use agent_store::Lease;
/// fn share(lease: &Lease) -> (Lease, Lease) {
///     (lease.clone(), lease.clone())
/// }
/// ```
#[must_use = "a lease that is dropped is given back at once"]
pub struct Lease {
    session: SessionId,
    /// Invariant: grows with every lease of the session, so that an older one is known to be lost.
    epoch: u64,
    attempts: u32,
    /// Gives the session back when it is dropped.
    #[cfg_attr(
        not(feature = "sqlite"),
        expect(dead_code, reason = "held for its drop; only SQLite looks into it")
    )]
    guard: Box<dyn Any + Send + Sync>,
}

impl Lease {
    /// For stores: a lease whose guard gives the session back on drop.
    pub fn new(session: SessionId, epoch: u64, guard: impl Any + Send + Sync) -> Self {
        Self { session, epoch, attempts: 0, guard: Box::new(guard) }
    }

    /// For stores: the same, with how many workers took the open turn up.
    pub fn of_attempt(self, attempts: u32) -> Self {
        Self { attempts, ..self }
    }

    /// How many workers took up the turn that is open and are not known to have stopped in order, this one included
    /// (requirement D5); 0 where no turn is open.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// The session that is held.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// The guard, when it is of this type: a store finds there what it put into its own leases.
    #[cfg(feature = "sqlite")]
    pub(crate) fn guard<T: Any>(&self) -> Option<&T> {
        self.guard.downcast_ref()
    }

    /// How many leases of the session there were, this one included.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("session", &self.session)
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}
