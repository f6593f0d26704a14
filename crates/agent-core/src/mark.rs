//! Where cache breakpoints go, and for how long.

use serde::{Deserialize, Serialize};

use crate::EntryId;

/// A cache breakpoint at the end of something. Markers change no byte but their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a record of a place and a time")]
pub struct Mark {
    /// Where it is set.
    pub at: MarkPoint,
    /// How long the provider keeps what lies before it.
    pub ttl: Ttl,
}

/// What a breakpoint ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MarkPoint {
    /// The last tool.
    Tools,
    /// The system block at this position.
    System(usize),
    /// The last markable block of an entry.
    Entry(EntryId),
}

/// How long a cache entry lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Ttl {
    /// Five minutes, or the provider's shortest time.
    #[serde(rename = "5m")]
    FiveMinutes,
    /// One hour.
    #[serde(rename = "1h")]
    OneHour,
}

impl Ttl {
    /// Its name in JSON, in requests and for people: `5m` or `1h`.
    pub fn name(self) -> &'static str {
        match self {
            Self::FiveMinutes => "5m",
            Self::OneHour => "1h",
        }
    }
}
