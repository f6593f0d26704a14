//! What a session keeps beyond its window, and when it is written.

mod auto;
mod choice;
mod index;
mod status;

pub use auto::MemoryExtractor;
pub use choice::{ChoiceReason, ModelChoice};
pub use index::MemoryIndex;
pub use status::{
    Extracted, ExtractionOutcome, ExtractionSkip, ExtractionStatus, RunningExtraction, SkippedTurn,
};
