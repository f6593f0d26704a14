//! Breakpoints for the requests of one session, worked out from what is new.

use agent_core::{CacheProfile, Entry, HistoryView, Mark, Rendered, Ttl};

use crate::ends::Ends;
use crate::plan::{Limits, marks};

/// Plans the breakpoints of one session's requests, one after the other (requirement A5).
///
/// What it says follows from the history alone, so that a process that takes a session up plans what the one before
/// planned. A call looks only at the entries that were added since the one before; all are looked at again after a
/// boundary, and when the history is another one.
///
/// ```
/// use agent_cache::{Lifetimes, Opening, Planner};
/// use agent_core::{CacheProfile, Entry, History, MarkPoint, Ttl, UserMessage};
///
/// let profile = CacheProfile::Marked { max_marks: 4, min_tokens: 1024, lookback: 20, collapse_runs: true };
/// let mut planner = Planner::new(Lifetimes { stable: Ttl::OneHour, tail: Ttl::FiveMinutes });
/// let mut history = History::new();
/// let asked = history.push(Entry::User(UserMessage::text("Repair the build.")?))?;
/// let marks = planner.plan(&profile, Opening { tools: true, system: Some(0) }, history.view());
/// let at: Vec<_> = marks.iter().map(|mark| mark.at).collect();
/// assert_eq!(at, [MarkPoint::Tools, MarkPoint::System(0), MarkPoint::Entry(asked)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Planner {
    lifetimes: Lifetimes,
    collapse_runs: bool,
    /// How many entries of the history are taken in.
    entries: usize,
    /// The last of them, by which a history that goes on is known.
    last: Option<Entry>,
    ends: Ends,
}

/// How long marked prefixes shall live. A stable prefix never lives shorter than the tail behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "two choices, written as a literal")]
pub struct Lifetimes {
    /// Tools, system text and the compacted prefix.
    pub stable: Ttl,
    /// The conversation.
    pub tail: Ttl,
}

/// What of a request lies before its conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "an argument record, written as a literal by drivers")]
pub struct Opening {
    /// Whether it has tools.
    pub tools: bool,
    /// The system block behind which a breakpoint goes: the last one that stays the same in other sessions too.
    pub system: Option<usize>,
}

impl Planner {
    /// A planner for a session that was not looked at yet.
    pub fn new(lifetimes: Lifetimes) -> Self {
        Self { lifetimes, collapse_runs: false, entries: 0, last: None, ends: Ends::default() }
    }

    /// The breakpoints of the next request, in the order of the prompt; none for a model that is not marked.
    ///
    /// At most `max_marks`: at the rolling tail; where the newest answered request wrote, when the step since then
    /// added more positions than a lookback sees (the bridge); behind the system text, or the tools without one; at
    /// the end of the compacted prefix; behind the tools. When there are more than allowed, the later of these give
    /// way. Never on something that cannot carry a marker, and long-lived ones never behind short-lived ones.
    pub fn plan(&mut self, profile: &CacheProfile, opening: Opening, view: HistoryView<'_>) -> Vec<Mark> {
        let CacheProfile::Marked { max_marks, lookback, collapse_runs, .. } = *profile else {
            return Vec::new();
        };
        self.follow(view, collapse_runs);
        marks(Limits { max_marks, lookback }, self.lifetimes, opening, &self.ends)
    }

    /// Takes in what the view shows that it did not show before.
    ///
    /// As long as no boundary was added, that is the new entries, none of which is trimmed: a boundary reaches back
    /// only.
    fn follow(&mut self, view: HistoryView<'_>, collapse_runs: bool) {
        let all = view.entries();
        let unseen = self.unseen(all, collapse_runs);
        if unseen.is_none_or(|new| !new.is_empty()) {
            self.last = all.last().cloned();
        }
        if let Some(added) = unseen.and_then(|_| view.added(self.entries)) {
            added.for_each(|piece| self.ends.take(piece, true, collapse_runs));
        } else {
            self.ends = Ends::default();
            // What was sent before a boundary reads otherwise now.
            let boundary = all.iter().rposition(is_boundary);
            for piece in view.settled() {
                let is_fresh = match piece {
                    Rendered::Entry { id, .. } => boundary.is_none_or(|at| id.position() > at),
                    Rendered::Summary { .. } | Rendered::Continue => false,
                };
                self.ends.take(piece, is_fresh, collapse_runs);
            }
        }
        (self.entries, self.collapse_runs) = (all.len(), collapse_runs);
    }

    /// The entries that were added, if they are all there is to look at.
    fn unseen<'h>(&self, all: &'h [Entry], collapse_runs: bool) -> Option<&'h [Entry]> {
        let (known, new) = all.split_at_checked(self.entries)?;
        let goes_on = known.last() == self.last.as_ref() && self.collapse_runs == collapse_runs;
        let is_start = self.entries == 0;
        ((goes_on || is_start) && !new.iter().any(is_boundary)).then_some(new)
    }
}

fn is_boundary(entry: &Entry) -> bool {
    matches!(entry, Entry::Boundary(_))
}

#[cfg(test)]
mod tests {
    use agent_core::{AssistantPart, EntryId, History, Response, Rewrite, StepRecord, Text, UserMessage};

    use super::*;

    const PROFILE: CacheProfile =
        CacheProfile::Marked { max_marks: 4, min_tokens: 1024, lookback: 20, collapse_runs: true };
    const OPENING: Opening = Opening { tools: true, system: Some(0) };

    fn planner() -> Planner {
        Planner::new(Lifetimes { stable: Ttl::FiveMinutes, tail: Ttl::FiveMinutes })
    }

    fn user(at: usize) -> Entry {
        Entry::User(UserMessage::text(format!("u{at}")).unwrap())
    }

    fn said(at: usize) -> Entry {
        let part = AssistantPart::text(format!("a{at}")).unwrap();
        Entry::Step(StepRecord::new(Response::of(vec![part]), vec![]).unwrap())
    }

    #[test]
    fn a_step_costs_what_it_adds_however_long_the_session_is() {
        let (mut planner, mut history) = (planner(), History::new());
        let mut looked_at = Vec::new();
        for step in 0..500 {
            history.push(user(step)).unwrap();
            history.push(said(step)).unwrap();
            if step == 300 {
                let text = Text::new("s").unwrap();
                let kept_from = EntryId::at(history.len());
                let rewrite = Rewrite::Summary { text, kept_from, strip_reasoning: true };
                history.push(Entry::Boundary(rewrite)).unwrap();
            }
            looked_at.push(planner.unseen(history.entries(), true).map(<[Entry]>::len));
            planner.plan(&PROFILE, OPENING, history.view());
            assert_eq!(planner.unseen(history.entries(), true).map(<[Entry]>::len), Some(0));
        }
        let anew: Vec<usize> = (0..500).filter(|step| looked_at[*step].is_none()).collect();
        assert_eq!(anew, [300], "all is looked at only where a boundary was added");
        assert!(looked_at.iter().flatten().all(|entries| *entries == 2), "{looked_at:?}");
    }

    #[test]
    fn another_history_is_planned_anew() {
        let (mut one, mut other) = (History::new(), History::new());
        for at in 0..40 {
            one.push(if at % 2 == 0 { user(at) } else { said(at) }).unwrap();
            other.push(user(at + 100)).unwrap();
        }
        let mut short = History::new();
        short.push(user(0)).unwrap();
        let mut used = planner();
        let counted =
            CacheProfile::Marked { max_marks: 4, min_tokens: 1024, lookback: 20, collapse_runs: false };
        for history in [&one, &other, &short, &one, &History::new(), &one] {
            for profile in [&PROFILE, &counted, &CacheProfile::Automatic] {
                let fresh = planner().plan(profile, OPENING, history.view());
                assert_eq!(used.plan(profile, OPENING, history.view()), fresh);
                assert_eq!(fresh.is_empty(), *profile == CacheProfile::Automatic);
            }
        }
    }

    #[test]
    fn what_a_boundary_rewrote_is_no_place_to_bridge_to() {
        let mut history = History::new();
        history.push(user(0)).unwrap();
        history.push(said(1)).unwrap();
        let mut planner = planner();
        planner.plan(&PROFILE, OPENING, history.view());
        let answered = planner.ends.answered().map(|end| end.entry);
        assert_eq!(answered, Some(EntryId::at(0)));
        history
            .push(Entry::Boundary(Rewrite::Cleared {
                results_to: EntryId::at(1),
                keep_bytes: 9,
                strip_reasoning: false,
                offloaded: false,
            }))
            .unwrap();
        planner.plan(&PROFILE, OPENING, history.view());
        assert_eq!(planner.ends.answered(), None);
        history.push(user(3)).unwrap();
        history.push(said(4)).unwrap();
        planner.plan(&PROFILE, OPENING, history.view());
        assert_eq!(planner.ends.answered().map(|end| end.entry), Some(EntryId::at(3)));
    }
}
