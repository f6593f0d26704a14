//! What an agent keeps beyond its window, written beside its turns by runs that read their cached prefix.

mod notes;
mod notes_sessions;
mod notes_view;

pub use notes::NotesWriter;
pub use notes_view::{NotesOutcome, NotesReport, NotesStatus, NotesView};
