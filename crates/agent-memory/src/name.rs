//! Names of memories: a slug that is one file name on every disk.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The name of a memory, for example `user_role`; its file is `user_role.md`.
///
/// Invariant: 1 to 64 lower-case ASCII letters, digits, `_` and `-`, beginning with a letter or a digit; neither `memory`,
/// which is the index where case does not count, nor a name that some system keeps for a device. So it is no path, has one
/// spelling, and no two of them clash on a disk without case (requirement C4).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MemoryName(String);

/// Why a text is no name of a memory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// Other characters, or too many of them.
    #[error(
        "{0:?} is no name of a memory: use 1 to {NAME_CHARS} lower-case letters (a-z), digits, `_` and `-`, beginning with a letter or a digit, for example `feedback_short_answers`"
    )]
    Slug(String),
    /// A name that means something else.
    #[error(
        "`{0}` cannot name a memory, because the index or a device has this name on some systems; put a word before it, for example `project_{0}`"
    )]
    Taken(String),
}

/// Most characters of a name.
pub const NAME_CHARS: usize = 64;

impl MemoryName {
    /// Checks a name.
    ///
    /// # Errors
    /// When it is not such a name; the words say what is.
    pub fn new(name: impl Into<String>) -> Result<Self, NameError> {
        let name = name.into();
        let fits =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
        let begins = name.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric());
        if !begins || name.len() > NAME_CHARS || !name.bytes().all(fits) {
            return Err(NameError::Slug(shortened(&name)));
        }
        if is_taken(&name) { Err(NameError::Taken(name)) } else { Ok(Self(name)) }
    }

    /// The name of the memory in this file, for example in `user_role.md`.
    pub(crate) fn of_file(file: &str) -> Result<Self, NameError> {
        file.strip_suffix(SUFFIX).map_or_else(|| Err(NameError::Slug(shortened(file))), Self::new)
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of its file in the directory, for example `user_role.md`.
    pub fn file(&self) -> String {
        format!("{}{SUFFIX}", self.0)
    }
}

/// Errors are read by models, and a name of a megabyte teaches nobody.
fn shortened(name: &str) -> String {
    let end = agent_core::floor_boundary(name, 2 * NAME_CHARS);
    if end < name.len() { format!("{}…", &name[..end]) } else { name.to_owned() }
}

fn is_taken(name: &str) -> bool {
    let numbered = |word: &str| {
        let rest = name.strip_prefix(word);
        rest.is_some_and(|rest| rest.len() == 1 && rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    matches!(name, "memory" | "con" | "prn" | "aux" | "nul") || numbered("com") || numbered("lpt")
}

impl fmt::Display for MemoryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for MemoryName {
    type Err = NameError;

    fn from_str(name: &str) -> Result<Self, NameError> {
        Self::new(name)
    }
}

impl TryFrom<String> for MemoryName {
    type Error = NameError;

    fn try_from(name: String) -> Result<Self, NameError> {
        Self::new(name)
    }
}

impl From<MemoryName> for String {
    fn from(name: MemoryName) -> Self {
        name.0
    }
}

pub(crate) const SUFFIX: &str = ".md";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_is_one_file_on_every_disk() {
        for name in ["user_role", "a", "7-days", "memory_2", "con_man", "com10", &"x".repeat(64)] {
            assert_eq!(MemoryName::new(name).unwrap().file(), format!("{name}.md"));
        }
        for name in ["memory", "con", "prn", "aux", "nul", "com1", "lpt9"] {
            assert_eq!(MemoryName::new(name), Err(NameError::Taken(name.to_owned())));
        }
        let far = "x".repeat(65);
        for name in [
            "",
            ".",
            "..",
            "../a",
            "/a",
            "a/b",
            "a\\b",
            "a.md",
            ".a",
            "_a",
            "-a",
            "A",
            "MEMORY",
            "é",
            "a b",
            "a\0",
            "a\n",
            "ａ",
            "a\u{202e}",
            far.as_str(),
        ] {
            assert_eq!(MemoryName::new(name), Err(NameError::Slug(name.to_owned())), "{name:?}");
        }
    }

    proptest! {
        #[test]
        fn any_name_stays_in_its_directory(name in "[a-zA-Z0-9./_~\\\\ \0é-]{0,8}") {
            if let Ok(name) = MemoryName::new(name) {
                let file = name.file();
                let parts: Vec<_> = std::path::Path::new(&file).components().collect();
                prop_assert!(matches!(parts.as_slice(), [std::path::Component::Normal(_)]));
                prop_assert_eq!(MemoryName::of_file(&file), Ok(name));
            }
        }
    }
}
