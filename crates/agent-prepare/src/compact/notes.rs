//! The tier that needs no model: the session's own notes stand for what they cover.

use agent_core::{EntryId, Text};

use super::compose::boundary;
use super::summarise::summarised_to;
use super::{Tier, TierCx, TierVerdict};

/// Puts the session's notes in place of what they cover (requirement P5). It has nothing to offer when there are none,
/// when they are blank, when it is not known up to where they go, when a summary covers more than they do, or when what
/// they do not cover is too much.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "it has nothing to choose")]
pub struct Notes;

impl Tier for Notes {
    fn name(&self) -> &'static str {
        "session_notes"
    }

    fn run(&self, cx: &TierCx<'_>) -> TierVerdict {
        let Some(notes) = &cx.of.slots.notes else { return TierVerdict::Pass };
        let (Some(to), Some(words)) = (notes.covers_to, Text::new(notes.text.as_str())) else {
            return TierVerdict::Pass;
        };
        let kept_from = to.min(EntryId::at(cx.of.history.len()));
        if kept_from <= summarised_to(cx.of.history) {
            return TierVerdict::Pass;
        }
        let rewrite = boundary(cx, words.as_str(), kept_from);
        let after = cx.after(&rewrite).saturating_add(super::put_back::tokens(&cx.of));
        if after <= cx.target { TierVerdict::Rewrite(rewrite) } else { TierVerdict::Pass }
    }
}
