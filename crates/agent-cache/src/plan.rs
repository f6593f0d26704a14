//! Where breakpoints go: planned from what a request is made of, not sprinkled (requirement A5).

use agent_core::{
    AssistantPart, CacheProfile, Entry, EntryId, HistoryView, Mark, MarkPoint, Message, Rendered, Ttl,
};

/// What is known of a request before it is encoded.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_structs, reason = "the input of a pure function, written as a literal")]
pub struct Shape<'a> {
    /// Whether it has tools.
    pub tools: bool,
    /// The system block behind which a breakpoint goes: the last one that stays the same in other sessions too.
    pub system: Option<usize>,
    /// The conversation as it is rendered, piece by piece; see [`pieces`].
    pub pieces: &'a [Piece],
    /// Entries at which earlier requests of the conversation set marks; see [`last_mark`].
    pub written: &'a [EntryId],
    /// How long what is marked shall live.
    pub lifetimes: Lifetimes,
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

/// One entry of the conversation, as far as breakpoints see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a record of counts, written as a literal in tests and drivers"
)]
pub struct Piece {
    /// The entry.
    pub entry: EntryId,
    /// Positions up to and including the last block that can carry a marker; 0 when none can.
    pub positions: u32,
    /// Positions behind that block.
    pub behind: u32,
    /// Whether it stands for, or was shortened by, a compaction.
    pub compacted: bool,
}

/// The breakpoints of a request, in the order of the prompt.
///
/// At most `max_marks`: at the rolling tail; where an earlier request wrote, when the step since then added more
/// positions than a lookback sees (the bridge); behind the system text, or the tools without one; at the end of the
/// compacted prefix; behind the tools. When there are more than allowed, the later of these give way. Never on
/// something that cannot carry a marker, and long-lived ones never behind short-lived ones.
///
/// ```
/// use agent_cache::{Lifetimes, Piece, Shape, plan};
/// use agent_core::{CacheProfile, EntryId, MarkPoint, Ttl};
///
/// let piece = |at, positions| Piece { entry: EntryId::at(at), positions, behind: 0, compacted: false };
/// let profile = CacheProfile::Marked { max_marks: 4, min_tokens: 1024, lookback: 20, collapse_runs: true };
/// let marks = plan(&profile, &Shape {
///     tools: true,
///     system: Some(0),
///     pieces: &[piece(0, 1), piece(1, 25)],
///     written: &[EntryId::at(0)],
///     lifetimes: Lifetimes { stable: Ttl::OneHour, tail: Ttl::FiveMinutes },
/// });
/// let at: Vec<_> = marks.iter().map(|mark| mark.at).collect();
/// let entry = |at| MarkPoint::Entry(EntryId::at(at));
/// assert_eq!(at, [MarkPoint::Tools, MarkPoint::System(0), entry(0), entry(1)]);
/// ```
pub fn plan(profile: &CacheProfile, shape: &Shape<'_>) -> Vec<Mark> {
    let CacheProfile::Marked { max_marks, lookback, .. } = profile else { return Vec::new() };
    let ends = ends(shape.pieces);
    let tail = ends.last().copied();
    let compacted = ends.iter().rfind(|end| end.compacted).copied();
    let bridge = bridge(shape, &ends, compacted, u32::from(*lookback));
    let entry =
        |end: End| Point { at: MarkPoint::Entry(end.entry), order: end.position + 2, stable: end.compacted };
    let system = shape.system.map(|block| Point { at: MarkPoint::System(block), order: 1, stable: true });
    let tools = shape.tools.then_some(Point { at: MarkPoint::Tools, order: 0, stable: true });
    let wanted = [tail.map(entry), bridge.map(entry), system.or(tools), compacted.map(entry), tools];
    let mut chosen: Vec<Point> = Vec::new();
    for point in wanted.into_iter().flatten() {
        if chosen.len() < usize::from(*max_marks) && chosen.iter().all(|known| known.at != point.at) {
            chosen.push(point);
        }
    }
    // A summary is a younger entry than those it keeps, and stands ahead of them: ids are no order.
    chosen.sort_by_key(|point| point.order);
    let Lifetimes { stable, tail } = shape.lifetimes;
    // What lies ahead of something stable lives as long.
    let reach = chosen.iter().filter(|point| point.stable).map(|point| point.order).max();
    let ttl = |point: &Point| if Some(point.order) <= reach { stable.max(tail) } else { tail };
    chosen.iter().map(|point| Mark { at: point.at, ttl: ttl(point) }).collect()
}

/// The conversation's pieces, counted as a provider counts positions; `collapse_runs` as in
/// [`crate::CacheRules::collapse_runs`].
pub fn pieces(view: HistoryView<'_>, collapse_runs: bool) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for rendered in view.rendered() {
        let counted = Counted::of(rendered, collapse_runs);
        let (entry, compacted) = match rendered {
            Rendered::Entry { id, trim, .. } => (id, trim.clip_results.is_some() || trim.strip_reasoning),
            Rendered::Summary { id, .. } => (id, true),
            Rendered::Continue => {
                // It has no entry of its own, so that no marker can name it.
                let all = counted.markable + counted.behind;
                if let Some(last) = pieces.last_mut() {
                    last.behind += all;
                }
                continue;
            }
        };
        let Counted { markable, behind } = counted;
        pieces.push(Piece { entry, positions: markable, behind, compacted });
    }
    pieces
}

/// Where the request before this one ended: the entry ahead of the last step, which was its answer.
///
/// It follows from the history alone, so that a process that takes a session up plans what the one before planned.
pub fn last_mark(view: HistoryView<'_>) -> Option<EntryId> {
    // What was sent before a boundary reads otherwise now.
    let boundary = view.entries().iter().rposition(|entry| matches!(entry, Entry::Boundary(_)));
    let (mut before, mut found) = (None, None);
    for rendered in view.rendered() {
        match rendered {
            Rendered::Entry { id, entry, .. } => {
                let is_answer =
                    matches!(entry, Entry::Step(_)) && boundary.is_none_or(|at| id.position() > at);
                found = if is_answer { before.or(found) } else { found };
                before = Some(id);
            }
            Rendered::Summary { id, .. } => before = Some(id),
            Rendered::Continue => {}
        }
    }
    found
}

/// A place for a marker.
#[derive(Debug, Clone, Copy)]
struct Point {
    at: MarkPoint,
    /// In the order of the prompt.
    order: u32,
    stable: bool,
}

/// The last block of a piece that can carry a marker.
#[derive(Debug, Clone, Copy)]
struct End {
    entry: EntryId,
    /// From the start of the conversation.
    position: u32,
    compacted: bool,
}

fn ends(pieces: &[Piece]) -> Vec<End> {
    let mut before = 0_u32;
    let mut ends = Vec::new();
    for piece in pieces {
        if piece.positions > 0 {
            let position = before + piece.positions - 1;
            ends.push(End { entry: piece.entry, position, compacted: piece.compacted });
        }
        before = before.saturating_add(piece.positions).saturating_add(piece.behind);
    }
    ends
}

/// The newest place where an earlier request wrote, when no other marker sees it.
fn bridge(shape: &Shape<'_>, ends: &[End], compacted: Option<End>, lookback: u32) -> Option<End> {
    let written = ends.iter().rfind(|end| shape.written.contains(&end.entry)).copied()?;
    let sees = |from: End| from.position >= written.position && from.position - written.position < lookback;
    let others = [ends.last().copied(), compacted];
    (!others.into_iter().flatten().any(sees)).then_some(written)
}

/// Positions of a piece.
#[derive(Debug, Default)]
struct Counted {
    markable: u32,
    behind: u32,
}

/// A block, as far as positions and markers see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    Call,
    Result,
    Plain,
    /// Thinking, which may carry no marker.
    Unmarkable,
}

impl Counted {
    fn of(rendered: Rendered<'_>, collapse_runs: bool) -> Self {
        let mut counted = Self::default();
        let mut last = None;
        for seen in rendered.messages().flat_map(blocks) {
            let in_run = matches!(seen, Seen::Call | Seen::Result) && last == Some(seen);
            if !(collapse_runs && in_run) {
                counted.behind += 1;
            }
            if seen != Seen::Unmarkable {
                counted.markable += std::mem::take(&mut counted.behind);
            }
            last = Some(seen);
        }
        counted
    }
}

fn blocks(message: Message<'_>) -> Vec<Seen> {
    match message {
        Message::User(user) => vec![Seen::Plain; user.parts().len()],
        Message::Note(_) | Message::Summary(_) => vec![Seen::Plain],
        Message::Tool(_, results, _) => vec![Seen::Result; results.len()],
        Message::Assistant(parts, trim) => {
            let seen = parts.iter().filter_map(|part| match part {
                AssistantPart::Reasoning(_) => (!trim.strip_reasoning).then_some(Seen::Unmarkable),
                AssistantPart::ToolCall(_) => Some(Seen::Call),
                AssistantPart::Text(_) | AssistantPart::Provider(_) | _ => Some(Seen::Plain),
            });
            seen.collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use agent_core::{History, Response, Rewrite, StepRecord, Text, UserMessage};

    use super::*;

    const MARKED: CacheProfile =
        CacheProfile::Marked { max_marks: 4, min_tokens: 1024, lookback: 20, collapse_runs: true };
    const SHORT: Lifetimes = Lifetimes { stable: Ttl::FiveMinutes, tail: Ttl::FiveMinutes };

    /// `T`, `S` and entries: `3c*25` is entry 3, compacted, written before, of 25 positions; `-` cannot be marked.
    fn check(shape: &str, expect: &str) {
        check_with(&MARKED, SHORT, shape, expect);
    }

    fn check_with(profile: &CacheProfile, lifetimes: Lifetimes, shape: &str, expect: &str) {
        let (mut pieces, mut written) = (Vec::new(), Vec::new());
        for (at, word) in shape.split(' ').filter(|word| !["T", "S"].contains(word)).enumerate() {
            let entry = EntryId::at(at);
            let count = word.trim_start_matches(['c', '*', '-']).parse().unwrap();
            let (positions, behind) = if word.contains('-') { (0, count) } else { (count, 0) };
            pieces.push(Piece { entry, positions, behind, compacted: word.contains('c') });
            if word.contains('*') {
                written.push(entry);
            }
        }
        let (tools, system) = (shape.contains('T'), shape.contains('S').then_some(0));
        let shape_of = Shape { tools, system, pieces: &pieces, written: &written, lifetimes };
        let marks = plan(profile, &shape_of).into_iter().map(|mark| {
            let at = match mark.at {
                MarkPoint::Tools => "T".to_owned(),
                MarkPoint::System(_) => "S".to_owned(),
                MarkPoint::Entry(id) => id.position().to_string(),
                _ => "?".to_owned(),
            };
            if mark.ttl == Ttl::OneHour { format!("{at}h") } else { at }
        });
        assert_eq!(marks.collect::<Vec<_>>().join(" "), expect, "{shape}");
    }

    #[test]
    fn tails_roll_and_bridges_span() {
        check("T S 1", "T S 0");
        check("S 1", "S 0");
        check("T 1", "T 0");
        check("1", "0");
        check("T S", "T S");
        check("T S *1 2", "T S 1");
        check("T S *1 19", "T S 1");
        check("T S *1 20", "T S 0 1");
        check("T S *1 -3", "T S 0");
        check("T S *1 12 -3 12", "T S 0 3");
        check("T S *1 2 *4 90", "T S 2 3");
        check("T S c1 2 *3 2", "T S 0 3");
        check("T S c1 2 *3 40", "S 0 2 3");
        check("T S c*1 40", "T S 0 1");
        check("-4", "");
    }

    #[test]
    fn fewer_marks_give_way_in_one_order_and_long_ones_come_first() {
        let most = |max_marks| CacheProfile::Marked {
            max_marks,
            min_tokens: 1024,
            lookback: 20,
            collapse_runs: true,
        };
        for (marks, expect) in [(0, ""), (1, "3"), (2, "2 3"), (3, "S 2 3"), (4, "S 0 2 3"), (5, "T S 0 2 3")]
        {
            check_with(&most(marks), SHORT, "T S c1 2 *3 40", expect);
        }
        let long = Lifetimes { stable: Ttl::OneHour, tail: Ttl::FiveMinutes };
        check_with(&MARKED, long, "T S c1 2", "Th Sh 0h 1");
        let odd = Lifetimes { stable: Ttl::FiveMinutes, tail: Ttl::OneHour };
        check_with(&MARKED, odd, "T S c1 2", "Th Sh 0h 1h");
        check_with(&MARKED, long, "T S c1 *2 c30", "Th Sh 1h 2h");
        check_with(&CacheProfile::Automatic, SHORT, "T S 1", "");
    }

    #[test]
    fn a_summary_is_a_younger_entry_and_stands_first() {
        let piece = |at, compacted| Piece { entry: EntryId::at(at), positions: 2, behind: 0, compacted };
        let lifetimes = Lifetimes { stable: Ttl::OneHour, tail: Ttl::FiveMinutes };
        let pieces = [piece(9, true), piece(7, false), piece(8, false)];
        let shape = Shape { tools: false, system: Some(0), pieces: &pieces, written: &[], lifetimes };
        let mark = |at, ttl| Mark { at, ttl };
        let entry = |at| MarkPoint::Entry(EntryId::at(at));
        let expect = [
            mark(MarkPoint::System(0), Ttl::OneHour),
            mark(entry(9), Ttl::OneHour),
            mark(entry(8), Ttl::FiveMinutes),
        ];
        assert_eq!(plan(&MARKED, &shape), expect);
    }

    #[test]
    fn pieces_follow_from_the_view() {
        let mut history = History::new();
        let said = |text: &str| {
            let part = AssistantPart::text(text).unwrap();
            Entry::Step(StepRecord::new(Response::of(vec![part]), vec![]).unwrap())
        };
        history.push(Entry::User(UserMessage::text("u").unwrap())).unwrap();
        assert_eq!(last_mark(history.view()), None);
        history.push(said("a")).unwrap();
        assert_eq!(last_mark(history.view()), Some(EntryId::at(0)));
        let rewrite = Rewrite::Summary {
            text: Text::new("s").unwrap(),
            kept_from: EntryId::at(2),
            strip_reasoning: true,
        };
        history.push(Entry::Boundary(rewrite)).unwrap();
        assert_eq!(last_mark(history.view()), None, "the boundary rewrote what was marked");
        let counted = pieces(history.view(), true);
        // The marker text and the summary, and words to go on that no marker can name.
        assert_eq!(counted, [Piece { entry: EntryId::at(2), positions: 2, behind: 1, compacted: true }]);
        history.push(Entry::User(UserMessage::text("v").unwrap())).unwrap();
        assert_eq!(pieces(history.view(), true).len(), 2);
    }
}
