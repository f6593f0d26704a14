//! The tier that needs no model: the session's own notes stand for what they cover.

use agent_core::{EntryId, Rewrite, Text};

use super::summarise::composed;
use super::{Tier, TierCx, TierVerdict};

/// Puts the session's notes in place of what they cover (requirement P5). It has nothing to offer when there are none,
/// when they are blank, or when it is not known up to where they go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Notes;

impl Tier for Notes {
    fn name(&self) -> &'static str {
        "session_notes"
    }

    fn run(&self, cx: &TierCx<'_>) -> TierVerdict {
        let Some(notes) = &cx.of.slots.notes else { return TierVerdict::Pass };
        let (Some(to), Some(words)) = (notes.covers_to, Text::new(notes.text.clone())) else {
            return TierVerdict::Pass;
        };
        let kept_from = to.min(EntryId::at(cx.of.history.len()));
        let Some(rewrite) = composed(cx, &words, kept_from) else { return TierVerdict::Pass };
        let after = cx.of.accountant.would_be(cx.of.history, &rewrite);
        if after <= cx.target { TierVerdict::Rewrite(rewrite) } else { TierVerdict::Pass }
    }
}

/// A summary boundary, where it is allowed.
pub(super) fn boundary(cx: &TierCx<'_>, text: Text, kept_from: EntryId) -> Rewrite {
    Rewrite::Summary { text, kept_from, strip_reasoning: cx.of.model.binds_thinking_to_prefix }
}
