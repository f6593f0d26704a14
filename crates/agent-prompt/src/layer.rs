//! Who says it: layers in order of authority, and the source of each text.

use std::fmt;

use serde::{Deserialize, Serialize};

/// On whose authority a fragment speaks, from the least to the greatest (requirement A2).
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

/// Where a fragment came from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Source {
    /// Written in the program.
    #[default]
    Code,
    /// A setting, by its name.
    Config(String),
    /// A file, by its path relative to its root.
    File(String),
    /// A record of a database, by its name.
    Database(String),
    /// The record of a session that began earlier, in which sources are not kept.
    Stored,
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

impl Source {
    /// The line that tells the model whose words follow; words of the program speak for themselves.
    pub(crate) fn heading(&self, layer: Layer) -> Option<String> {
        let managed = layer == Layer::Managed;
        let origin = match self {
            Self::Code | Self::Stored if !managed => return None,
            Self::Code | Self::Stored => String::new(),
            Self::Config(name) | Self::File(name) | Self::Database(name) => format!(" from {name}"),
        };
        Some(if managed {
            format!("Managed instructions{origin}. They override every other instruction:")
        } else {
            format!("Instructions{origin} ({layer}):")
        })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code => f.write_str("code"),
            Self::Config(name) => write!(f, "config {name}"),
            Self::File(path) => write!(f, "file {path}"),
            Self::Database(name) => write!(f, "database {name}"),
            Self::Stored => f.write_str("the stored session"),
        }
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

    #[test]
    fn headings_name_the_source() {
        let file = Source::File("AGENTS.md".into());
        assert_eq!(Source::Code.heading(Layer::Project), None);
        assert_eq!(file.heading(Layer::Project).unwrap(), "Instructions from AGENTS.md (project):");
        assert_eq!(
            Source::Code.heading(Layer::Managed).unwrap(),
            "Managed instructions. They override every other instruction:"
        );
    }
}
