//! What stops attempts that keep failing.

use std::sync::atomic::{AtomicU32, Ordering};

/// Failures in a row after which nothing is tried again as long as the session is open.
pub(crate) const MOST_FAILURES: u32 = 3;

/// Counts failures in a row.
#[derive(Debug, Default)]
pub(crate) struct Breaker(AtomicU32);

impl Breaker {
    /// Whether another attempt may be made.
    pub(crate) fn allows(&self) -> bool {
        self.0.load(Ordering::Relaxed) < MOST_FAILURES
    }

    /// An attempt worked: earlier failures count no more.
    pub(crate) fn worked(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// An attempt failed; whether it was the last one.
    pub(crate) fn failed(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed) + 1 == MOST_FAILURES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_failures_in_a_row_count() {
        let breaker = Breaker::default();
        assert!(!breaker.failed() && !breaker.failed() && breaker.allows());
        breaker.worked();
        assert!(!breaker.failed() && !breaker.failed() && breaker.allows());
        assert!(breaker.failed() && !breaker.allows(), "the third in a row");
        assert!(!breaker.failed(), "it is told once");
    }
}
