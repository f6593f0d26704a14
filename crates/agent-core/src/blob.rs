//! Names of large outputs kept outside the history.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::hex;

/// Content address of a blob: SHA-256 in lower-case hex. Written `blob:HASH` where a path may stand.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BlobHash(String);

impl BlobHash {
    /// The name of bytes with this SHA-256.
    pub fn of_digest(sha256: &[u8; 32]) -> Self {
        Self(hex(sha256))
    }

    /// `None` unless it is 64 lower-case hex digits.
    pub fn parse(hex: &str) -> Option<Self> {
        let good = hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        good.then(|| Self(hex.to_owned()))
    }

    /// The hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BlobHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "blob:{}", self.0)
    }
}
