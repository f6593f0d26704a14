//! Names of sessions, turns, steps, entries and calls.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

use crate::RequestId;

/// A session's name: 1 to 128 of `A-Z a-z 0-9 . _ -`, not beginning with a dot, so that it is safe as a file name.
/// Every event carries it, so clones share it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct SessionId(Arc<str>);

/// A call's name as the model gave it, or as renamed to be unique in its history. Never empty; clones share it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct CallId(Arc<str>);

/// A turn of a session, counted from 1; written `turn_1` (requirement L9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TurnId(u64);

/// A step of a turn, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StepNo(u32);

/// Position of an entry in its history, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EntryId(u64);

/// A name that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdError {
    /// Not a usable session name.
    #[error(
        "{0:?} is not a session id: use 1 to 128 letters, digits, '.', '_' or '-', not beginning with a dot"
    )]
    Session(String),
    /// A call without a name.
    #[error("a tool call has an empty id; give every call an id of its own")]
    Call,
    /// Not of the form `turn_N`.
    #[error("{0:?} is not a turn id: it is written turn_N with N from 1")]
    Turn(String),
}

impl SessionId {
    /// Checks the rule of the type.
    pub fn new(id: impl Into<String>) -> Result<Self, IdError> {
        let id = id.into();
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if id.is_empty() || id.len() > MOST_BYTES || id.starts_with('.') || !id.chars().all(good) {
            return Err(IdError::Session(id));
        }
        Ok(Self(id.into()))
    }

    /// The session of a sub-agent that a request of this session is a task for: this name, `.sub-` and 16 hexadecimal
    /// digits of the request's. A name that would be too long is cut.
    #[must_use]
    pub fn child(&self, request: &RequestId) -> Self {
        let digits = request.as_str().trim_start_matches("req_");
        let digits: String = digits.chars().filter(char::is_ascii_hexdigit).take(CHILD_DIGITS).collect();
        // The digits are of a digest of the whole name, so that a cut one is still its own. A name is ASCII.
        let room = MOST_BYTES - CHILD_MARK.len() - CHILD_DIGITS;
        let head = self.0.get(..room).unwrap_or(&self.0);
        Self(format!("{head}{CHILD_MARK}{digits}").into())
    }

    /// The session that this one is a sub-agent of, as its name says; the beginning of that name where it was cut.
    pub fn parent(&self) -> Option<&str> {
        let (parent, digits) = self.0.rsplit_once(CHILD_MARK)?;
        let is_digest = digits.len() == CHILD_DIGITS && digits.chars().all(|c| c.is_ascii_hexdigit());
        (is_digest && !parent.is_empty()).then_some(parent)
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

const MOST_BYTES: usize = 128;
const CHILD_MARK: &str = ".sub-";
const CHILD_DIGITS: usize = 16;

impl CallId {
    /// Refuses only the empty name; every provider has its own grammar.
    pub fn new(id: impl Into<String>) -> Result<Self, IdError> {
        let id = id.into();
        if id.is_empty() { Err(IdError::Call) } else { Ok(Self(id.into())) }
    }

    /// The name for the call at this position of a response that gave none.
    pub fn positional(position: usize) -> Self {
        Self(format!("call_{position}").into())
    }

    /// The `n`-th variant of a name that is taken: `X~2`. The same history gives the same variant.
    #[must_use]
    pub fn variant(&self, n: usize) -> Self {
        Self(format!("{}~{n}", self.0).into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TurnId {
    /// The first turn of a session.
    pub const FIRST: Self = Self(1);

    /// The turn to open when `last` turns were opened before.
    pub fn after(last: u64) -> Self {
        Self(last + 1)
    }

    /// The turn after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The number, from 1.
    pub fn number(self) -> u64 {
        self.0
    }
}

impl StepNo {
    /// The first step of a turn.
    pub const FIRST: Self = Self(0);

    /// The step after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// The number, from 0.
    pub fn number(self) -> u32 {
        self.0
    }
}

impl EntryId {
    /// The entry at a position.
    pub fn at(position: usize) -> Self {
        Self(position as u64)
    }

    /// The position.
    pub fn position(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl TryFrom<String> for SessionId {
    type Error = IdError;
    fn try_from(id: String) -> Result<Self, IdError> {
        Self::new(id)
    }
}

impl TryFrom<String> for CallId {
    type Error = IdError;
    fn try_from(id: String) -> Result<Self, IdError> {
        Self::new(id)
    }
}

impl TryFrom<String> for TurnId {
    type Error = IdError;
    fn try_from(id: String) -> Result<Self, IdError> {
        let number = id.strip_prefix("turn_").and_then(|n| n.parse::<u64>().ok()).filter(|n| *n > 0);
        number.map(Self).ok_or(IdError::Turn(id))
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> Self {
        id.0.as_ref().to_owned()
    }
}

impl From<CallId> for String {
    fn from(id: CallId) -> Self {
        id.0.as_ref().to_owned()
    }
}

impl From<TurnId> for String {
    fn from(id: TurnId) -> Self {
        id.to_string()
    }
}

impl Serialize for SessionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl Serialize for CallId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for TurnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "turn_{}", self.0)
    }
}

impl fmt::Display for StepNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_ids_are_safe_file_names() {
        for good in ["a", "2026-11-30.run_1", &"x".repeat(128)] {
            assert!(SessionId::new(good).is_ok(), "{good}");
        }
        for bad in ["", ".hidden", "..", "a/b", "a b", "ä", &"x".repeat(129)] {
            assert!(SessionId::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn turn_ids_round_trip() {
        let turn = TurnId::FIRST.next();
        let text = serde_json::to_string(&turn).unwrap();
        assert_eq!(text, r#""turn_2""#);
        assert_eq!(serde_json::from_str::<TurnId>(&text).unwrap(), turn);
        assert!(serde_json::from_str::<TurnId>(r#""turn_0""#).is_err());
    }
}
