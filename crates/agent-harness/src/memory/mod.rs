//! What an agent keeps beyond its window, written beside its turns by runs that read their cached prefix.

mod auto;
mod choice;
mod index;
mod notes;
mod notes_sessions;
mod notes_view;
mod status;

use agent_memory::MemoryError;

use crate::SourceError;

pub use auto::MemoryExtractor;
pub use choice::{ChoiceReason, ModelChoice};
pub use index::MemoryIndex;
pub use notes::NotesWriter;
pub use notes_view::{NotesOutcome, NotesReport, NotesStatus, NotesView};
pub use status::{
    Extracted, ExtractionOutcome, ExtractionSkip, ExtractionStatus, RunningExtraction, SkippedTurn,
};

/// Does what blocks on a thread that may; a failure is told as one of `what`.
async fn on_disk<T: Send + 'static>(
    what: &'static str,
    work: impl FnOnce() -> Result<T, MemoryError> + Send + 'static,
) -> Result<T, SourceError> {
    let worked = tokio::task::spawn_blocking(work).await;
    worked.map_err(|error| SourceError::new(what, error))?.map_err(|error| SourceError::new(what, error))
}
