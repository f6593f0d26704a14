//! Where an agent is killed: before, in and after a write of its store, before and after the effect of a tool.

use serde::{Deserialize, Serialize};

/// A kind of point. Each is counted from 1 in the life of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Place {
    /// A write is about to be asked for.
    BeforeWrite,
    /// The store's thread has the write, and no answer came yet.
    InWrite,
    /// The store has answered.
    AfterWrite,
    /// A call was journaled as started and is about to have its effect.
    BeforeTool,
    /// A call has had its effect, and nothing of it is journaled yet.
    AfterTool,
}

/// Every kind of point.
pub(crate) const PLACES: [Place; 5] =
    [Place::BeforeWrite, Place::InWrite, Place::AfterWrite, Place::BeforeTool, Place::AfterTool];

impl Place {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::BeforeWrite => "before a write",
            Self::InWrite => "in a write",
            Self::AfterWrite => "after a write",
            Self::BeforeTool => "before a tool's effect",
            Self::AfterTool => "after a tool's effect",
        }
    }

    /// Its position in [`PLACES`].
    pub(crate) fn index(self) -> usize {
        PLACES.iter().position(|place| *place == self).unwrap_or_default()
    }
}
