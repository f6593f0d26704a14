//! The time of a scenario, as its agent sees it: it moves when a step is over, and at no other time.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use agent::Clock;

use super::{Told, World};

/// A clock that stands still between steps. Clones tell the same time.
#[derive(Debug, Clone)]
pub(super) struct StepClock {
    now_ms: Arc<AtomicI64>,
    utc_offset_minutes: i32,
}

impl StepClock {
    pub(super) fn new(now_ms: i64, utc_offset_minutes: i32) -> Self {
        Self { now_ms: Arc::new(AtomicI64::new(now_ms)), utc_offset_minutes }
    }

    /// Lets time pass, here and at the provider.
    pub(super) fn pass(&self, told: Told) -> io::Result<()> {
        if let Told::Answered(ms) | Told::Passed(ms) = told {
            self.now_ms.fetch_add(i64::try_from(ms).unwrap_or(i64::MAX), Ordering::SeqCst);
        }
        World.tell(&told)
    }
}

impl Clock for StepClock {
    fn now_ms(&self) -> i64 {
        self.now_ms.load(Ordering::SeqCst)
    }

    fn utc_offset_minutes(&self) -> i32 {
        self.utc_offset_minutes
    }
}
