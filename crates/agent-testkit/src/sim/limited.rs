//! Refusals for now, with the time to come back in each form that providers use.

use std::time::{Duration, SystemTime};

use super::wire::Wire;
use crate::fault::{RawReply, RetryHint};
use crate::sim::api_error::ApiError;

/// A refusal in the shape of the service, or an answer in the shape of another one.
pub(super) enum Limited {
    Error(ApiError),
    Raw(RawReply),
}

pub(super) fn limited(wire: &dyn Wire, status: u16, wait_ms: u64, told: RetryHint) -> Limited {
    let error = wire.usual_error(status);
    let seconds = wait_ms.div_ceil(1000);
    Limited::Error(match told {
        RetryHint::RetryAfter => error.with("retry-after", seconds.to_string()),
        RetryHint::RetryAfterMs => error.with("retry-after-ms", wait_ms.to_string()),
        RetryHint::HttpDate => error.with("retry-after", http_date(wait_ms)),
        RetryHint::Reset => {
            let headers = wire.used_up(&http_date(wait_ms), &span(wait_ms));
            ApiError { headers: headers.into(), ..error }
        }
        RetryHint::Words => {
            let message = format!("{} Please try again in {}.", error.message, span(wait_ms));
            ApiError { message, ..error }
        }
        RetryHint::Detail => return Limited::Raw(detail(status, wait_ms)),
    })
}

fn detail(status: u16, wait_ms: u64) -> RawReply {
    let wait = span(wait_ms);
    let body = format!(
        r#"{{"error":{{"code":{status},"message":"Resource has been exhausted.","status":"RESOURCE_EXHAUSTED","details":[{{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"{wait}"}}]}}}}"#
    );
    RawReply { status, ..RawReply::json(body) }
}

/// Seconds with what is left of them: `7s`, `7.66s`.
fn span(wait_ms: u64) -> String {
    let (seconds, rest) = (wait_ms / 1000, wait_ms % 1000);
    let rest = format!(".{rest:03}");
    format!("{seconds}{}s", rest.trim_end_matches('0').trim_end_matches('.'))
}

#[expect(clippy::disallowed_methods, reason = "a date that a client compares with its own clock")]
fn http_date(wait_ms: u64) -> String {
    // A date has whole seconds, and nobody should come early.
    let wait = Duration::from_millis(wait_ms.saturating_add(999));
    let at = SystemTime::now().checked_add(wait).map_or_else(latest, |at| at.min(latest()));
    httpdate::fmt_http_date(at)
}

/// The last second that the format can write.
fn latest() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(253_402_300_799)
}

/// An HTTP date as RFC 3339 writes it: `Fri, 15 Jan 2027 08:00:07 GMT` is `2027-01-15T08:00:07Z`.
pub(super) fn rfc3339(http_date: &str) -> String {
    let parts: Vec<&str> = http_date.split(' ').collect();
    let [_, day, month, year, time, _] = parts.as_slice() else { return http_date.to_owned() };
    let month = 1 + MONTHS.iter().position(|name| name == month).unwrap_or(0);
    format!("{year}-{month:02}-{day}T{time}Z")
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_dates() {
        assert_eq!([7_000, 7_660, 250, 0].map(span), ["7s", "7.66s", "0.25s", "0s"]);
        assert_eq!(rfc3339("Fri, 15 Jan 2027 08:00:07 GMT"), "2027-01-15T08:00:07Z");
        assert_eq!(rfc3339(&http_date(0)).len(), 20);
        assert_eq!(rfc3339(&http_date(u64::MAX)), "9999-12-31T23:59:59Z");
    }
}
