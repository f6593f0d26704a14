//! The time by which cached prompts run out: the machine's, or a test's own.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The clock of a simulated provider. Clones tell the same time.
///
/// ```
/// use std::time::Duration;
/// use agent_testkit::SimClock;
///
/// let clock = SimClock::manual();
/// clock.clone().advance(Duration::from_secs(301));
/// assert_eq!(clock.now(), Duration::from_secs(301));
/// ```
#[derive(Clone, Debug)]
pub struct SimClock {
    /// None for a clock that only moves when it is told to.
    started: Option<Instant>,
    moved: Arc<Mutex<Duration>>,
}

impl SimClock {
    /// The time since now; in a test with tokio's paused time, that time.
    pub fn machine() -> Self {
        Self { started: Some(Instant::now()), moved: Arc::default() }
    }

    /// A clock that stands at zero until it is advanced.
    pub fn manual() -> Self {
        Self { started: None, moved: Arc::default() }
    }

    /// Moves the clock forward, whichever it is.
    pub fn advance(&self, by: Duration) {
        let mut moved = self.moved.lock().unwrap_or_else(PoisonError::into_inner);
        *moved = moved.saturating_add(by);
    }

    /// The time since the clock was made.
    pub fn now(&self) -> Duration {
        let moved = *self.moved.lock().unwrap_or_else(PoisonError::into_inner);
        self.started.map_or(Duration::ZERO, |started| started.elapsed()).saturating_add(moved)
    }
}

impl Default for SimClock {
    fn default() -> Self {
        Self::machine()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_machine_s_clock_runs_and_can_be_moved() {
        let clock = SimClock::machine();
        tokio::time::advance(Duration::from_secs(5)).await;
        clock.advance(Duration::from_secs(60));
        assert_eq!(clock.now(), Duration::from_secs(65));
        let manual = SimClock::manual();
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(manual.now(), Duration::ZERO);
    }
}
