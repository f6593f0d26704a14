//! When to come back, in every form in which providers say it.

use std::time::{Duration, SystemTime};

use super::ResponseHead;
use super::said::Said;

/// How long the provider asks to wait, in milliseconds: milliseconds, seconds or a date in a header, a detail of the
/// body, or its words.
pub(super) fn asked(head: &ResponseHead<'_>, said: &Said) -> Option<u64> {
    in_headers(head).or(said.retry_ms).or_else(|| in_words(&said.message))
}

/// How long until the limits that are used up are filled again, in milliseconds.
///
/// A reset counts only where its own `remaining` is 0: the others tell nothing about this refusal.
pub(super) fn reset(head: &ResponseHead<'_>, said: &Said) -> Option<u64> {
    let used_up = |(name, value): &(String, String)| {
        let name = name.to_ascii_lowercase();
        let remaining = if let Some(limit) = name.strip_prefix("x-ratelimit-reset") {
            format!("x-ratelimit-remaining{limit}")
        } else {
            let limit = name.strip_prefix("anthropic-ratelimit-")?.strip_suffix("-reset")?;
            format!("anthropic-ratelimit-{limit}-remaining")
        };
        let is_zero = head.header(&remaining)?.parse::<f64>().is_ok_and(|left| left <= 0.0);
        if is_zero { moment(value, head.now) } else { None }
    };
    let of_headers = head.headers.iter().filter_map(used_up).max();
    of_headers.or_else(|| moment(said.reset_at.as_deref()?, head.now))
}

fn in_headers(head: &ResponseHead<'_>) -> Option<u64> {
    if let Some(ms) = head.header("retry-after-ms").and_then(|value| value.parse::<f64>().ok()) {
        return millis(ms / 1000.0);
    }
    let value = head.header("retry-after")?;
    if let Ok(seconds) = value.parse::<f64>() {
        return millis(seconds);
    }
    until(httpdate::parse_http_date(value).ok()?, head.now)
}

/// "Please try again in 7.66s", "retry after 6 seconds".
fn in_words(message: &str) -> Option<u64> {
    let words = message.to_ascii_lowercase();
    LEADS.iter().find_map(|lead| {
        let (_, after) = words.split_once(lead)?;
        span(after)
    })
}

/// A span of time with units: `34.4s`, `6m0s`, `1h2m3.5s`, `120ms`, `6 seconds`. A bare number means nothing certain.
pub(super) fn span(text: &str) -> Option<u64> {
    let mut rest = text.trim_start();
    let mut total = None;
    while let Some((seconds, after)) = part(rest) {
        total = Some(total.unwrap_or(0.0) + seconds);
        rest = after;
    }
    millis(total?)
}

/// One number with its unit, in seconds, and what follows.
fn part(text: &str) -> Option<(f64, &str)> {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, after) = text.split_at(end);
    let after = after.trim_start();
    let (unit, after) = after.split_at(after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len()));
    let (_, seconds) = UNITS.iter().find(|(names, _)| names.contains(&unit))?;
    Some((number.parse::<f64>().ok()? * seconds, after))
}

/// A moment or a span: `6m0s`, an RFC 3339 time, or seconds or milliseconds since 1970. Smaller bare numbers may be
/// either, so they count as nothing.
fn moment(value: &str, now: SystemTime) -> Option<u64> {
    let value = value.trim();
    if let Ok(number) = value.parse::<f64>() {
        let seconds = if number >= 1e12 { number / 1000.0 } else { number };
        let since = Duration::try_from_secs_f64(seconds).ok().filter(|_| seconds >= 1e9)?;
        return until(SystemTime::UNIX_EPOCH.checked_add(since)?, now);
    }
    match rfc3339(value) {
        Some(at) => until(at, now),
        None => span(value),
    }
}

/// The wait until a time; `None` when the time of arrival is not known.
fn until(at: SystemTime, now: SystemTime) -> Option<u64> {
    if now == SystemTime::UNIX_EPOCH {
        return None;
    }
    u64::try_from(at.duration_since(now).unwrap_or_default().as_millis()).ok()
}

/// `2026-11-30T09:00:00Z`, with a fraction and with an offset.
fn rfc3339(text: &str) -> Option<SystemTime> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u32>().ok();
    let sign = |at: usize| text.as_bytes().get(at).copied();
    if (sign(4), sign(7), sign(13), sign(16)) != (Some(b'-'), Some(b'-'), Some(b':'), Some(b':')) {
        return None;
    }
    let days = days_since_1970(i64::from(number(0, 4)?), i64::from(number(5, 7)?), i64::from(number(8, 10)?));
    let clock = number(11, 13)? * 3600 + number(14, 16)? * 60 + number(17, 19)?;
    let zone = text.get(19..)?.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    let seconds = days * 86_400 + i64::from(clock) - offset(zone)?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(u64::try_from(seconds).ok()?))
}

/// Seconds of `Z`, `+02:00` or `-05:30`.
fn offset(zone: &str) -> Option<i64> {
    let sign = match zone.as_bytes().first()? {
        b'Z' | b'z' => return Some(0),
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let hours = zone.get(1..3)?.parse::<i64>().ok()?;
    let minutes = zone.get(4..6)?.parse::<i64>().ok()?;
    Some(sign * (hours * 3600 + minutes * 60))
}

/// Days of the civil calendar; the year is counted from March, so that a leap day is its last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn millis(seconds: f64) -> Option<u64> {
    let wait = Duration::try_from_secs_f64(seconds).ok()?;
    u64::try_from(wait.as_micros().div_ceil(1000)).ok()
}

const LEADS: &[&str] = &["try again in ", "retry in ", "retry after ", "try again after ", "please wait "];
const UNITS: &[(&[&str], f64)] = &[
    (&["ms", "millisecond", "milliseconds"], 0.001),
    (&["s", "sec", "secs", "second", "seconds"], 1.0),
    (&["m", "min", "mins", "minute", "minutes"], 60.0),
    (&["h", "hr", "hour", "hours"], 3600.0),
    (&["d", "day", "days"], 86_400.0),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_units() {
        let check = |text: &str, expect: Option<u64>| assert_eq!(span(text), expect, "{text}");
        check("34.4s", Some(34_400));
        check("7.66s. Visit", Some(7_660));
        check("6m0s", Some(360_000));
        check("1h2m3.5s", Some(3_723_500));
        check("120ms", Some(120));
        check("6 seconds.", Some(6_000));
        check("2 days", Some(172_800_000));
        check("6", None);
        check("6 tokens", None);
        check("soon", None);
        check("99999999999999999999999999s", None);
    }

    #[test]
    fn moments_are_certain_or_nothing() {
        // Sun, 06 Nov 1994 08:49:37 GMT.
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let check = |value: &str, expect: Option<u64>| assert_eq!(moment(value, now), expect, "{value}");
        check("1994-11-06T08:49:47Z", Some(10_000));
        check("1994-11-06T08:49:47.250Z", Some(10_000));
        check("1994-11-06T10:49:47+02:00", Some(10_000));
        check("1994-11-06T03:19:47-05:30", Some(10_000));
        check("1994-11-06T08:00:00Z", Some(0));
        check("6m0s", Some(360_000));
        check("60", None);
        check("784111787", None);
        check("1994-11-06", None);
        check("tomorrow", None);
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        assert_eq!(moment("1800000007", now), Some(7_000));
        assert_eq!(moment("1800000007500", now), Some(7_500));
        assert_eq!(moment("2027-01-15T08:00:09Z", now), Some(9_000));
        assert_eq!(moment("1800000007", SystemTime::UNIX_EPOCH), None, "the arrival is not known");
    }
}
