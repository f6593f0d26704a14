//! Which places of a request are marked, and which give way when there are too many.

use agent_core::{Mark, MarkPoint};

use crate::ends::{End, Ends};
use crate::planner::{Lifetimes, Opening};

/// How many markers a service takes, and how far it looks back from one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) max_marks: u8,
    pub(crate) lookback: u8,
}

/// A place for a marker.
#[derive(Debug, Clone, Copy)]
struct Point {
    at: MarkPoint,
    /// In the order of the prompt.
    order: u32,
    stable: bool,
}

/// The breakpoints of a request, in the order of the prompt; see [`crate::Planner::plan`].
pub(crate) fn marks(limits: Limits, lifetimes: Lifetimes, opening: Opening, ends: &Ends) -> Vec<Mark> {
    let system = opening.system.map(|block| Point { at: MarkPoint::System(block), order: 1, stable: true });
    let tools = opening.tools.then_some(Point { at: MarkPoint::Tools, order: 0, stable: true });
    let tail = ends.tail().map(Point::of);
    let bridge = bridge(ends, limits.lookback).map(Point::of);
    let compacted = ends.compacted().map(Point::of);
    let wanted = [tail, bridge, system.or(tools), compacted, tools];
    let mut chosen: Vec<Point> = Vec::new();
    for point in wanted.into_iter().flatten() {
        if chosen.len() < usize::from(limits.max_marks) && chosen.iter().all(|known| known.at != point.at) {
            chosen.push(point);
        }
    }
    // A summary is a younger entry than those it keeps, and stands ahead of them: ids are no order.
    chosen.sort_by_key(|point| point.order);
    let Lifetimes { stable, tail } = lifetimes;
    // What lies ahead of something stable lives as long.
    let reach = chosen.iter().filter(|point| point.stable).map(|point| point.order).max();
    let ttl = |point: &Point| if Some(point.order) <= reach { stable.max(tail) } else { tail };
    chosen.iter().map(|point| Mark { at: point.at, ttl: ttl(point) }).collect()
}

/// Where the newest answered request wrote, when the marker at the tail may not see it.
fn bridge(ends: &Ends, lookback: u8) -> Option<End> {
    let (tail, answered) = (ends.tail()?, ends.answered()?);
    let positions = tail.furthest.saturating_sub(answered.position);
    (positions >= u32::from(lookback)).then_some(answered)
}

impl Point {
    fn of(end: End) -> Self {
        // Two orders are taken by what stands ahead of the conversation.
        let order = end.position.saturating_add(2);
        Self { at: MarkPoint::Entry(end.entry), order, stable: end.compacted }
    }
}

#[cfg(test)]
mod tests {
    use agent_core::{EntryId, Ttl};

    use super::*;
    use crate::ends::Counted;

    const SHORT: Lifetimes = Lifetimes { stable: Ttl::FiveMinutes, tail: Ttl::FiveMinutes };

    /// `T`, `S` and entries: `c25*` is compacted, of 25 positions, and ended a request that was answered; `-3` cannot
    /// be marked. Entries are named by their position in the list.
    fn check(shape: &str, expect: &str) {
        check_with(4, SHORT, shape, expect);
    }

    fn check_with(max_marks: u8, lifetimes: Lifetimes, shape: &str, expect: &str) {
        let mut ends = Ends::default();
        for (at, word) in shape.split(' ').filter(|word| !["T", "S"].contains(word)).enumerate() {
            let count = word.trim_matches(['c', '*', '-']).parse().unwrap();
            let markable = if word.contains('-') { 0 } else { count };
            let counted = Counted { markable, furthest: markable, all: count };
            ends.add(EntryId::at(at), counted, word.contains('c'));
            if word.contains('*') {
                ends.answer();
            }
        }
        let opening = Opening { tools: shape.contains('T'), system: shape.contains('S').then_some(1) };
        let marks = marks(Limits { max_marks, lookback: 20 }, lifetimes, opening, &ends);
        let marks = marks.into_iter().map(|mark| {
            let at = match mark.at {
                MarkPoint::Tools => "T".to_owned(),
                MarkPoint::System(1) => "S".to_owned(),
                MarkPoint::Entry(id) => id.position().to_string(),
                MarkPoint::System(_) | _ => "?".to_owned(),
            };
            if mark.ttl == Ttl::OneHour { format!("{at}h") } else { at }
        });
        assert_eq!(marks.collect::<Vec<_>>().join(" "), expect, "{shape}");
    }

    #[test]
    fn the_tail_rolls_and_a_bridge_is_set_where_it_is_needed() {
        check("T S 1", "T S 0");
        check("S 1", "S 0");
        check("T 1", "T 0");
        check("1", "0");
        check("T S 1 2 3", "T S 2");
        check("T S 1* 19", "T S 1");
        check("T S 1* 20", "T S 0 1");
        check("T S 1* 5 14", "T S 2");
        check("T S 1* 5 15", "T S 0 2");
        check("T S 1* 30* 3", "T S 2");
        check("T S 1 -4", "T S 0");
        check("T S 1* -19 1", "T S 0 2");
        check("T S -3* 40", "T S 1");
        check("-4", "");
    }

    #[test]
    fn the_compacted_prefix_is_marked_and_is_a_bridge_itself() {
        check("T S c1 2", "T S 0 1");
        check("T S c1 c2 3", "T S 1 2");
        check("T S c1*", "T S 0");
        check("T S c1 2 3* 40", "S 0 2 3");
        check("T S c1* 40", "T S 0 1");
        // Nothing else sees what the request before wrote, so that it goes ahead of the system text.
        check_with(2, SHORT, "S c1* 40", "0 1");
    }

    #[test]
    fn fewer_marks_give_way_in_one_order() {
        for (max, expect) in [(0, ""), (1, "3"), (2, "2 3"), (3, "S 2 3"), (4, "S 0 2 3"), (5, "T S 0 2 3")] {
            check_with(max, SHORT, "T S c1 2 3* 40", expect);
        }
        check_with(2, SHORT, "T c1 2", "T 1");
    }

    #[test]
    fn long_ones_come_first() {
        let long = Lifetimes { stable: Ttl::OneHour, tail: Ttl::FiveMinutes };
        check_with(4, long, "T S c1 2", "Th Sh 0h 1");
        check_with(4, long, "T S 1* c2 30", "Sh 0h 1h 2");
        check_with(4, long, "T S c1 2* c30", "Th Sh 1h 2h");
        check_with(4, long, "1* 30", "0 1");
        let odd = Lifetimes { stable: Ttl::FiveMinutes, tail: Ttl::OneHour };
        check_with(4, odd, "T S c1 2", "Th Sh 0h 1h");
    }
}
