//! The source of each text.

use std::fmt;

use agent_core::Layer;
use serde::{Deserialize, Serialize};

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
