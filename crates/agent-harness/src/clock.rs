//! The one clock of a driver.

use std::fmt::Debug;

/// Tells the time. Everything below the driver takes the time as an input.
pub trait Clock: Debug + Send + Sync {
    /// Milliseconds since 1970 UTC.
    fn now_ms(&self) -> i64;

    /// How many minutes the user's clocks are ahead of UTC now; 0 when not said.
    fn utc_offset_minutes(&self) -> i32 {
        0
    }
}

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::exhaustive_structs, reason = "a value to write down, with nothing in it")]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the driver owns the clock; everything else is told the time"
    )]
    fn now_ms(&self) -> i64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}
