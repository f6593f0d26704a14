//! The one place that counts cache markers (case C03).

use agent_core::{CacheProfile, Diagnostic, Mark, MarkPoint, Ttl};

/// The markers that are sent, in the order in which the provider reads what they stand on.
#[derive(Debug)]
pub(super) struct Marks(Vec<(Spot, Ttl)>);

/// Where a marker stands; the provider reads tools, then system, then messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Spot {
    Tools,
    System,
    Messages(Splice),
}

/// A place inside a buffer of the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Splice {
    pub(super) buffer: usize,
    /// Bytes of the buffer before the marker.
    pub(super) at: usize,
}

/// Why a marker cannot be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unmarkable {
    /// The list is empty, or the entry is not shown.
    Nothing,
    /// All blocks of the entry are of kinds that may not carry one.
    NoBlock,
}

impl Marks {
    /// One marker a place, as many as the provider takes, the first ones given; `find` says where, or why not.
    pub(super) fn of(
        given: &[Mark],
        cache: &CacheProfile,
        find: impl Fn(MarkPoint) -> Result<Spot, Unmarkable>,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Self {
        let mut note = |why: String| diagnostics.push(Diagnostic { what: "marks".into(), why });
        let mut marks: Vec<(Spot, Ttl)> = Vec::new();
        for mark in given {
            match find(mark.at) {
                Ok(spot) => match marks.iter_mut().find(|(known, _)| *known == spot) {
                    Some((_, ttl)) => *ttl = mark.ttl.max(*ttl),
                    None => marks.push((spot, mark.ttl)),
                },
                Err(Unmarkable::Nothing) => {
                    note(format!("nothing to mark at {:?}; the marker was dropped", mark.at));
                }
                // Some formats mark no tools. A marker further on covers them as well.
                Err(Unmarkable::NoBlock) if mark.at == MarkPoint::Tools && given.len() > 1 => {}
                Err(Unmarkable::NoBlock) => {
                    note(format!("no block of {:?} can carry a marker; it was dropped", mark.at));
                }
            }
        }
        let most = most_of(cache);
        if marks.len() > most {
            let dropped = marks.len() - most;
            note(format!("{most} cache markers are taken; the last {dropped} were dropped"));
            marks.truncate(most);
        }
        marks.sort_unstable();
        let mut short = false;
        for (_, ttl) in &mut marks {
            if short && *ttl == Ttl::OneHour {
                *ttl = Ttl::FiveMinutes;
                note("an hour cannot follow five minutes; five minutes were sent".into());
            }
            short |= *ttl == Ttl::FiveMinutes;
        }
        Self(marks)
    }

    /// The marker at the head of the request.
    pub(super) fn at(&self, spot: Spot) -> Option<Ttl> {
        self.0.iter().find(|(known, _)| *known == spot).map(|(_, ttl)| *ttl)
    }

    /// The markers inside the messages.
    pub(super) fn in_messages(&self) -> Vec<(Splice, Ttl)> {
        let splices = self.0.iter().filter_map(|(spot, ttl)| match spot {
            Spot::Messages(splice) => Some((*splice, *ttl)),
            Spot::Tools | Spot::System => None,
        });
        splices.collect()
    }
}

fn most_of(cache: &CacheProfile) -> usize {
    match cache {
        CacheProfile::Marked { max_marks, .. } => usize::from(*max_marks).min(MOST_MARKS),
        CacheProfile::None | CacheProfile::Automatic | _ => 0,
    }
}

const MOST_MARKS: usize = 4;
