//! SIGKILL by one's own hand, at a point that was agreed on.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::place::{PLACES, Place};

/// Counts the points that a process passes, and ends it at one of them.
#[derive(Debug, Default)]
pub(super) struct Trip {
    at: Option<(Place, u64)>,
    passed: [AtomicU64; PLACES.len()],
}

impl Trip {
    pub(super) fn new(at: Option<(Place, u64)>) -> Self {
        Self { at, ..Self::default() }
    }

    /// Passes a point, or never returns.
    pub(super) fn pass(&self, place: Place) {
        if self.is_here(place) {
            die();
        }
    }

    /// Counts a point; whether it is the one to die at.
    pub(super) fn is_here(&self, place: Place) -> bool {
        let number =
            self.passed.get(place.index()).map_or(0, |passed| passed.fetch_add(1, Ordering::SeqCst) + 1);
        self.at == Some((place, number))
    }

    /// How often each kind of point was passed.
    pub(super) fn counts(&self) -> Vec<u64> {
        self.passed.iter().map(|passed| passed.load(Ordering::SeqCst)).collect()
    }
}

/// Ends this process as the system would: nothing of it runs any more.
pub(super) fn die() -> ! {
    // Were it refused, the process would wait for ever, and whoever started it would say so.
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    loop {
        std::thread::park();
    }
}
