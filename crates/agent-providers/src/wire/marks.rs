//! The one place that counts cache markers (case C03).

use agent_core::{CacheProfile, Diagnostic, Mark, MarkPoint, Ttl};

/// The markers that are sent, in the order in which the provider reads what they stand on.
#[derive(Debug)]
pub(super) struct Marks(Vec<(Spot, Ttl)>);

/// Where a marker stands; the provider reads tools, then system, then messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Spot {
    /// Bytes of the list before the marker.
    Tools(usize),
    /// Bytes of the system prompt before the marker.
    System(usize),
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
    /// The list is empty or shorter, or the entry is not shown.
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
        let follows = given.iter().any(|mark| mark.at != MarkPoint::Tools && find(mark.at).is_ok());
        for mark in given {
            match find(mark.at) {
                Ok(spot) => match marks.iter_mut().find(|(known, _)| *known == spot) {
                    Some((_, ttl)) => *ttl = mark.ttl.max(*ttl),
                    None => marks.push((spot, mark.ttl)),
                },
                Err(Unmarkable::Nothing) => {
                    note(format!("nothing to mark at {:?}; the marker was dropped", mark.at));
                }
                // The next marker behind the tools covers them.
                Err(Unmarkable::NoBlock) if mark.at == MarkPoint::Tools && follows => {}
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

    /// The markers of one part of the request, in the order of its bytes, as `marker` writes them.
    pub(super) fn of_part<P>(
        &self,
        part: impl Fn(Spot) -> Option<P>,
        marker: impl Fn(Ttl) -> &'static [u8],
    ) -> Vec<(P, &'static [u8])> {
        self.0.iter().filter_map(|(spot, ttl)| Some((part(*spot)?, marker(*ttl)))).collect()
    }
}

impl Spot {
    pub(super) fn in_tools(self) -> Option<usize> {
        if let Self::Tools(at) = self { Some(at) } else { None }
    }

    pub(super) fn in_system(self) -> Option<usize> {
        if let Self::System(at) = self { Some(at) } else { None }
    }

    pub(super) fn in_messages(self) -> Option<Splice> {
        if let Self::Messages(splice) = self { Some(splice) } else { None }
    }
}

/// Anthropic's marker, which others take too.
pub(super) fn cache_control(ttl: Ttl) -> &'static [u8] {
    match ttl {
        Ttl::OneHour => br#","cache_control":{"type":"ephemeral","ttl":"1h"}"#,
        Ttl::FiveMinutes | _ => br#","cache_control":{"type":"ephemeral"}"#,
    }
}

fn most_of(cache: &CacheProfile) -> usize {
    match cache {
        CacheProfile::Marked { max_marks, .. } => usize::from(*max_marks).min(MOST_MARKS),
        CacheProfile::None | CacheProfile::Automatic | _ => 0,
    }
}

const MOST_MARKS: usize = 4;

/// OpenAI's marker. Without a time of its own it lives as long as the request asks, by default for half an hour.
pub(super) const BREAKPOINT: &[u8] = br#","prompt_cache_breakpoint":{"mode":"explicit"}"#;
