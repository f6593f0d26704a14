//! What an agent keeps beyond its window, written beside its turns by runs that read their cached prefix.

mod auto;
mod choice;
mod index;
mod notes;
mod notes_sessions;
mod notes_view;
mod status;

pub use auto::MemoryExtractor;
pub use choice::{ChoiceReason, ModelChoice};
pub use index::MemoryIndex;
pub use notes::NotesWriter;
pub use notes_view::{NotesOutcome, NotesReport, NotesStatus, NotesView};
pub use status::{
    Extracted, ExtractionOutcome, ExtractionSkip, ExtractionStatus, RunningExtraction, SkippedTurn,
};
