//! Layers of authority: who may outrank whom, in prompts and in permissions.

use std::fmt;

use serde::{Deserialize, Serialize};

/// On whose authority a fragment of a prompt or a rule for permissions speaks, from the least to the greatest (requirement A2).
///
/// On an equal key the higher layer wins. Prompts are rendered from the least to the greatest, so that the last word
/// is the one that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "authority is a total order that everyone may rely on")]
pub enum Layer {
    /// What the agent learned by itself.
    Auto,
    /// Given for this session.
    Session,
    /// What the user wants everywhere.
    User,
    /// The user's own rules for this project, not shared.
    Local,
    /// The project's rules, shared by everyone who works on it.
    Project,
    /// Policy of whoever runs the agent: cannot be removed, replaced, cut or outranked, and is rendered last.
    Managed,
}

impl Layer {
    /// Every layer, from the least authority to the greatest.
    pub const ALL: [Self; 6] =
        [Self::Auto, Self::Session, Self::User, Self::Local, Self::Project, Self::Managed];

    /// The name, for people and headings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Session => "session",
            Self::User => "user",
            Self::Local => "local",
            Self::Project => "project",
            Self::Managed => "managed",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authority_is_the_order_of_the_requirement() {
        let names: Vec<_> = Layer::ALL.iter().rev().map(|layer| layer.name()).collect();
        assert_eq!(names, ["managed", "project", "local", "user", "session", "auto"]);
        assert!(Layer::ALL.is_sorted(), "the constant is in the order of Ord");
    }
}
