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
        let good =
            hex.len() == HEX_DIGITS && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        good.then(|| Self(hex.to_owned()))
    }

    /// The whole handles (`blob:HASH`) in a text, each with its position in bytes.
    pub fn handles_in(text: &str) -> impl Iterator<Item = (usize, &str)> {
        text.match_indices(SCHEME).filter_map(|(at, _)| {
            let handle = text.get(at..at + SCHEME.len() + HEX_DIGITS)?;
            Self::parse(&handle[SCHEME.len()..]).map(|_| (at, handle))
        })
    }

    /// The hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BlobHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}", self.0)
    }
}

const SCHEME: &str = "blob:";
const HEX_DIGITS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_handles_are_found() {
        let check = |text: &str, expect: &[usize]| {
            let found: Vec<_> = BlobHash::handles_in(text).collect();
            assert_eq!(found.iter().map(|(at, _)| *at).collect::<Vec<_>>(), expect, "{text}");
            assert!(found.iter().all(|(at, handle)| text[*at..].starts_with(handle)));
        };
        let hash = "0a".repeat(32);
        check("", &[]);
        check("blob:", &[]);
        check(&format!("blob:{}", &hash[1..]), &[]);
        check(&format!("blob:{}", hash.to_uppercase()), &[]);
        check(&format!("é blob:{hash}, blob:{hash}blob:{hash}"), &[3, 74, 143]);
        check(&format!("blob:{}é", &hash[1..]), &[]);
    }
}
