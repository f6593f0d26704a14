//! The four types of memories.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a memory is about (requirement C1). There are four, on purpose: more of them confuse more than they sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "the four types of requirement C1")]
pub enum MemoryType {
    /// Who the user is: role, goals, what they know.
    User,
    /// How to work: a correction, or a way that was confirmed. Its body says **Why:** and **How to apply:**.
    Feedback,
    /// What goes on in the project that the repository does not show: decisions, dates, who does what.
    Project,
    /// Where something is kept outside: a tracker, a dashboard, a channel.
    Reference,
}

/// A word that is none of the types.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no type of a memory: it is `user`, `feedback`, `project` or `reference`")]
#[expect(clippy::exhaustive_structs, reason = "the word that was given, and nothing else")]
pub struct NoSuchType(pub String);

impl MemoryType {
    /// All of them, in the order in which they are explained.
    pub const ALL: [Self; 4] = [Self::User, Self::Feedback, Self::Project, Self::Reference];

    /// The word for it in files: `user`, `feedback`, `project` or `reference`.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Feedback => "feedback",
            Self::Project => "project",
            Self::Reference => "reference",
        }
    }
}

impl fmt::Display for MemoryType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for MemoryType {
    type Err = NoSuchType;

    fn from_str(word: &str) -> Result<Self, NoSuchType> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == word);
        found.ok_or_else(|| NoSuchType(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for kind in MemoryType::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert_eq!("User".parse::<MemoryType>(), Err(NoSuchType("User".to_owned())));
    }
}
