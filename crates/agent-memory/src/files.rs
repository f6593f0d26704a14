//! The paths under which a model sees memories and notes, and the files behind them.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use agent_core::{RawJson, SessionId};
use serde::Deserialize;

use crate::{INDEX_FILE, MemoryDir, MemoryName, NameError, NotesFile};

/// A path as the tool `memory` takes it. There are four, and each has one spelling.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the paths that exist; the tool handles each")]
pub enum MemoryPath {
    /// `/memories`, the directory.
    Directory,
    /// `/memories/MEMORY.md`, the index.
    Index,
    /// `/memories/<name>.md`.
    Memory(MemoryName),
    /// `/session/notes.md`, the notes of the session.
    Notes,
}

/// A path that is none of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// Somewhere else.
    #[error(
        "{0:?} is no path of a memory. There are: `{MEMORIES}` (the list), `{MEMORIES}/<name>.md` (a memory), `{MEMORIES}/{INDEX_FILE}` (the index) and `{NOTES_PATH}` (the notes of this session). Other files are reached with other tools"
    )]
    Elsewhere(String),
    /// A file whose name cannot be.
    #[error(transparent)]
    Name(#[from] NameError),
}

/// What stands behind the paths: one directory of memories for all sessions, and notes for each. Clones share it.
#[derive(Debug, Clone)]
pub struct MemoryFiles {
    memories: Arc<MemoryDir>,
    /// The data directory of the program, where notes are kept.
    notes_in: Option<PathBuf>,
}

/// The directory of memories, as a model sees it.
pub const MEMORIES: &str = "/memories";
/// The notes of the session, as a model sees them.
pub const NOTES_PATH: &str = "/session/notes.md";
/// The tool that reads and writes both.
pub const MEMORY_TOOL: &str = "memory";

impl MemoryFiles {
    /// Memories without session notes.
    pub fn new(memories: impl Into<Arc<MemoryDir>>) -> Self {
        Self { memories: memories.into(), notes_in: None }
    }

    /// With notes for each session, under this data directory.
    #[must_use]
    pub fn with_notes(mut self, data: impl Into<PathBuf>) -> Self {
        self.notes_in = Some(data.into());
        self
    }

    /// The memories.
    pub fn memories(&self) -> &Arc<MemoryDir> {
        &self.memories
    }

    /// The notes of a session, where notes are kept.
    pub fn notes(&self, session: &SessionId) -> Option<NotesFile> {
        self.notes_in.as_deref().map(|data| NotesFile::new(data, session))
    }
}

/// Whether a call of a tool writes a memory: who does so itself is not followed by an extraction (requirement C3).
///
/// ```
/// use agent_core::RawJson;
/// let call = |text: &str| agent_memory::is_memory_write("memory", &RawJson::parse(text).unwrap());
/// assert!(call(r#"{"command":"create","path":"/memories/user_role.md","file_text":"..."}"#));
/// assert!(!call(r#"{"command":"view","path":"/memories"}"#));
/// assert!(!call(r#"{"command":"create","path":"/session/notes.md","file_text":"..."}"#));
/// ```
pub fn is_memory_write(tool: &str, input: &RawJson) -> bool {
    #[derive(Deserialize)]
    struct Given {
        command: String,
        #[serde(default)]
        path: String,
        #[serde(default)]
        old_path: String,
    }
    let Ok(Given { command, path, old_path }) = input.to::<Given>() else { return false };
    let writes = matches!(command.as_str(), "create" | "str_replace" | "insert" | "delete" | "rename");
    let is_memory = |path: &str| matches!(path.parse(), Ok(MemoryPath::Memory(_)));
    tool == MEMORY_TOOL && writes && (is_memory(&path) || is_memory(&old_path))
}

impl FromStr for MemoryPath {
    type Err = PathError;

    fn from_str(path: &str) -> Result<Self, PathError> {
        if path == NOTES_PATH {
            return Ok(Self::Notes);
        }
        let elsewhere = || {
            let end = agent_core::floor_boundary(path, SHOWN);
            PathError::Elsewhere(path[..end].to_owned())
        };
        let rest = path.strip_prefix(MEMORIES).ok_or_else(elsewhere)?;
        if rest.is_empty() || rest == "/" {
            return Ok(Self::Directory);
        }
        let file = rest.strip_prefix('/').filter(|file| !file.contains('/')).ok_or_else(elsewhere)?;
        if file == INDEX_FILE {
            return Ok(Self::Index);
        }
        let name = file.strip_suffix(crate::name::SUFFIX).ok_or_else(elsewhere)?;
        Ok(Self::Memory(MemoryName::new(name)?))
    }
}

impl fmt::Display for MemoryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory => f.write_str(MEMORIES),
            Self::Index => write!(f, "{MEMORIES}/{INDEX_FILE}"),
            Self::Memory(name) => write!(f, "{MEMORIES}/{}", name.file()),
            Self::Notes => f.write_str(NOTES_PATH),
        }
    }
}

/// Bytes of a wrong path that an error repeats.
const SHOWN: usize = 200;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_path_has_one_spelling() {
        for path in ["/memories", "/memories/MEMORY.md", "/memories/user_role.md", "/session/notes.md"] {
            assert_eq!(path.parse::<MemoryPath>().unwrap().to_string(), path);
        }
        assert_eq!("/memories/".parse(), Ok(MemoryPath::Directory));
        for path in [
            "",
            "/",
            "memories",
            "memories/a.md",
            "/memories/../a.md",
            "/memories/a/b.md",
            "/memories//a.md",
            "/memories/a",
            "/memories/a.txt",
            "/memories/./a.md",
            "/memories/.md",
            "/memories/..",
            "/memories/memory.md",
            "/memories/A.md",
            "/memories/.lock",
            "/memoriesa.md",
            "/session",
            "/session/notes",
            "/session/../notes.md",
            "/etc/passwd",
            "/memories/a.md\0",
            "/memories/ａ.md",
            "/memories/%2e%2e/a.md",
            "/memories/a.md/",
            "/memories\\a.md",
        ] {
            assert!(path.parse::<MemoryPath>().is_err(), "{path:?}");
        }
    }

    proptest! {
        #[test]
        fn any_path_is_one_of_four_or_none(path in "(/memories|/session|memories)?(/|//|\\.\\.|a|A|\\.md|MEMORY|notes|\0|\\PC){0,6}") {
            if let Ok(read) = path.parse::<MemoryPath>() {
                prop_assert!(read.to_string() == path || path == "/memories/");
            }
        }
    }
}
