//! What an agent keeps beyond its window: memories of a project, their index, the notes of a session, and when they are
//! written.
//!
//! **This crate knows** the four types of memories and their files ([`Memory`]), the directory that holds them and its
//! index ([`MemoryDir`], [`IndexView`]), where it lies ([`MemoryPlace`]), the notes of a session ([`NotesFile`]), the paths
//! under which a model sees all that ([`MemoryPath`], [`MemoryFiles`]), what models are told ([`instructions`] and the other
//! texts), and when notes and memories are written ([`NotesKeeper`], [`AutoMemory`]): state and facts in, a decision out.
//!
//! **It never knows** a model, a tool, a runtime or a clock. Its file system is its own: names in one opened directory,
//! and no link is followed. Calls block, so an async program makes them on a thread that may.
//!
//! ```
//! use agent_memory::{Memory, MemoryDir, MemoryName, MemoryType, instructions};
//!
//! let place = tempfile::tempdir()?;
//! let memories = MemoryDir::open(&place.path().join("memory"))?;
//! let name = MemoryName::new("feedback_short_answers")?;
//! let body = "Answer in a few words.\n\n**Why:** \"I can read the diff.\"\n\n**How to apply:** No summary after a change.";
//! memories.add(&Memory::new(name, MemoryType::Feedback, "Wants short answers", body)?)?;
//!
//! // A later session, or another process at the same time.
//! let index = MemoryDir::open(memories.path())?.index()?;
//! assert_eq!(index.text, "- [feedback_short_answers](feedback_short_answers.md): Wants short answers\n");
//! assert!(index.is_whole() && instructions(&index).ends_with(&index.text));
//! assert_eq!(memories.find("how long should answers be?", 3)?[0].kind(), MemoryType::Feedback);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod auto;
mod auto_file;
mod beside;
mod dir;
mod error;
mod files;
mod folder;
mod front;
mod index;
mod kind;
mod memory;
mod name;
mod notes;
mod notes_file;
mod place;
mod relevant;
mod words;

pub use auto::{AutoDecision, AutoMemory, AutoSkip, AutoState, EXTRACTION_STEPS, Extraction, TurnFacts};
pub use auto_file::{AutoFile, AutoRecord};
pub use beside::RunClaim;
pub use dir::{Listing, MemoryDir, StoredMemory, Written};
pub use error::MemoryError;
pub use files::{MEMORIES, MEMORY_TOOL, MemoryFiles, MemoryPath, NOTES_PATH, PathError, is_memory_write};
pub use front::{FrontMatter, NoFrontMatter, front_matter, one_line};
pub use index::{INDEX_BYTES, INDEX_FILE, INDEX_LINES, IndexView, LeftOut, StrangeFile};
pub use kind::{MemoryType, NoSuchType};
pub use memory::{DESCRIPTION_CHARS, MEMORY_BYTES, Memory, MemoryFault};
pub use name::{MemoryName, NAME_CHARS, NameError};
pub use notes::{
    NotesDecision, NotesFacts, NotesKeeper, NotesPolicy, NotesRun, NotesState, NotesTrigger, NotesWait,
};
pub use notes_file::{NOTES_BYTES, NotesFile};
pub use place::{MemoryPlace, PlaceError, TrustedSource, project_root, project_slug, session_dir};
pub use relevant::Ranking;
pub use words::{
    are_notes_empty, extraction_denial, extraction_prompt, instructions, notes_denial, notes_outline,
    notes_prompt,
};
