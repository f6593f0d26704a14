//! Down to where a compaction must come, and how its room is shared out (requirement P8).

use agent_core::{Accountant, Entry, EntryId, History, Rewrite};

use super::{Cause, CompactCx};
use crate::{ContextState, Thresholds};

/// Tokens that the parts of a summary may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// The model's words.
    pub(super) summary: u64,
    /// Evidence of finished work.
    pub(super) evidence: u64,
    /// The user's first and last request, word for word, both together.
    pub(super) request: u64,
}

/// What a user asked for: what it began with, and what it came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Requests {
    /// The first message of the session, unless it is the last one as well.
    pub(super) first: Option<EntryId>,
    /// The last message.
    pub(super) last: EntryId,
}

/// What was counted against what is estimated. A provider's count can be larger than the estimate, and a compaction that
/// lands under its target by the estimate alone would begin again at the next count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scale {
    used: u64,
    estimated: u64,
}

/// Steps for which there shall be room after a compaction.
const STEPS: u64 = 10;
/// Steps over which growth is averaged.
const RECENT: usize = 8;
/// Tokens of the words around the parts of a summary.
const FRAME: u64 = 190;

impl Room {
    pub(super) fn of(thresholds: &Thresholds) -> Self {
        let summary = (thresholds.window / 8).clamp(64, 2_048);
        Self { summary, evidence: summary / 4, request: thresholds.window / 16 }
    }
}

impl Scale {
    pub(super) fn of(used: u64, estimated: u64) -> Self {
        Self { used: used.max(estimated), estimated: estimated.max(1) }
    }

    /// What an estimate will be counted as.
    pub(super) fn apply(self, estimate: u64) -> u64 {
        let scaled = u128::from(estimate) * u128::from(self.used) / u128::from(self.estimated);
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

/// The low-water mark: room for ten more steps as large as the recent ones, and never more than half of where
/// compaction begins; but not less than what stays in any case. In the measure of [`ContextState::used`], as all that is
/// held against it.
pub(super) fn low_water(cx: &CompactCx<'_>, tokens: &ContextState, cause: Cause, scale: Scale) -> u64 {
    let begins = tokens.thresholds.autocompact;
    let growth = scale.apply(cx.accountant.growth(cx.history, RECENT));
    let wanted = begins.saturating_sub(growth.saturating_mul(STEPS)).min(begins / 2);
    let least = least(cx, tokens, scale);
    match cause {
        Cause::First | Cause::Continuation => wanted.max(least),
        // Whatever was counted, the conversation is too long: by half, since by how much is not known.
        Cause::Overflow | Cause::Manual => {
            let fixed = scale.apply(tokens.fixed);
            let half = fixed.saturating_add(tokens.used.saturating_sub(fixed) / 2);
            wanted.min(half).max(least)
        }
    }
}

/// What stays in any case: what lies before the conversation, a summary with the user's requests, and what the model has
/// not seen yet.
fn least(cx: &CompactCx<'_>, tokens: &ContextState, scale: Scale) -> u64 {
    let room = Room::of(&tokens.thresholds);
    let unseen = unseen(cx.history);
    let new: u64 = unseen.iter().map(|id| cx.accountant.entry_tokens(*id)).sum();
    let request = |before: usize| {
        let found = Requests::before(cx.history, EntryId::at(before));
        found.map_or(0, |requests| requests.tokens(cx.accountant).min(room.request))
    };
    let put_back = super::put_back::tokens(cx);
    let words = tokens.fixed + room.summary + room.evidence + put_back + FRAME;
    let from = unseen.first().map_or(cx.history.len(), |id| id.position());
    let with_new = words.saturating_add(request(from)).saturating_add(new);
    // A message that cannot be kept whole stands in the summary, shortened.
    let with_new = scale.apply(with_new);
    if with_new <= tokens.thresholds.autocompact {
        with_new
    } else {
        scale.apply(words.saturating_add(request(cx.history.len())))
    }
}

/// Entries behind the last step: the model has not seen them. Boundaries are none.
pub(super) fn unseen(history: &History) -> Vec<EntryId> {
    let tail = history.entries().iter().enumerate().rev();
    let tail = tail.take_while(|(_, entry)| !matches!(entry, Entry::Step(_)));
    let shown = tail.filter(|(_, entry)| !matches!(entry, Entry::Boundary(_)));
    let mut ids: Vec<EntryId> = shown.map(|(position, _)| EntryId::at(position)).collect();
    ids.reverse();
    ids
}

impl Requests {
    /// Those before an entry.
    pub(super) fn before(history: &History, before: EntryId) -> Option<Self> {
        let entries = history.entries().get(..before.position()).unwrap_or(history.entries());
        let is_request = |entry: &Entry| matches!(entry, Entry::User(_));
        let last = EntryId::at(entries.iter().rposition(is_request)?);
        let first = entries.iter().position(is_request).map(EntryId::at).filter(|first| *first != last);
        Some(Self { first, last })
    }

    /// Tokens of both.
    fn tokens(self, accountant: &Accountant) -> u64 {
        let first = self.first.map_or(0, |id| accountant.entry_tokens(id));
        accountant.entry_tokens(self.last).saturating_add(first)
    }
}

/// How far boundaries of one kind reach already: a new one may not reach less far.
pub(super) fn reach(history: &History, is_kind: impl Fn(&Rewrite) -> bool) -> EntryId {
    let reaches = history.entries().iter().enumerate().filter_map(|(position, entry)| match entry {
        // One that reaches past itself was mended away and does not count.
        Entry::Boundary(rewrite) if is_kind(rewrite) && rewrite.reach() <= EntryId::at(position) => {
            Some(rewrite.reach())
        }
        Entry::Boundary(_) | Entry::User(_) | Entry::Note(_) | Entry::Step(_) => None,
    });
    reaches.max().unwrap_or(EntryId::at(0))
}

/// How many tokens a context would have with this boundary, and what they will be counted as.
pub(super) fn after(accountant: &Accountant, history: &History, used: u64, rewrite: &Rewrite) -> u64 {
    Scale::of(used, accountant.estimated(history)).apply(accountant.would_be(history, rewrite))
}
