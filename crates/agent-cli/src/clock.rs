//! The machine's clock, with the time zone that is set when it is asked.

use agent::{Clock, SystemClock};
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Tells the time of the machine, and where its user is: `TZ`, or the zone that the system is set to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalClock;

impl Clock for LocalClock {
    fn now_ms(&self) -> i64 {
        SystemClock.now_ms()
    }

    fn utc_offset_minutes(&self) -> i32 {
        offset_minutes(&TimeZone::system(), self.now_ms())
    }
}

/// Minutes that clocks of a zone are ahead of UTC at a moment; 0 outside of the years that calendars have.
fn offset_minutes(zone: &TimeZone, unix_ms: i64) -> i32 {
    Timestamp::from_millisecond(unix_ms).map_or(0, |at| zone.to_offset(at).seconds() / 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offset_is_that_of_the_moment() {
        let check = |zone: &str, unix_ms: i64, expect: i32| {
            assert_eq!(offset_minutes(&TimeZone::posix(zone).unwrap(), unix_ms), expect, "{zone} {unix_ms}");
        };
        // 2026-01-15 and 2026-07-15.
        let (winter, summer) = (1_768_435_200_000, 1_784_073_600_000);
        check("CET-1CEST,M3.5.0,M10.5.0/3", winter, 60);
        check("CET-1CEST,M3.5.0,M10.5.0/3", summer, 120);
        check("<-0330>3:30", winter, -210);
        check("UTC0", i64::MAX, 0);
    }
}
