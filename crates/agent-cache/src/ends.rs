//! Where the entries of a conversation end, in the positions a provider counts, taken in one by one.

use agent_core::{AssistantPart, Entry, EntryId, Message, Rendered, UserPart};

/// What breakpoints need to know of a conversation. It grows with the conversation, and looks at nothing twice.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ends {
    /// Positions so far.
    positions: u32,
    tail: Option<End>,
    compacted: Option<End>,
    answered: Option<End>,
}

/// The last block of an entry that can carry a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) entry: EntryId,
    /// Of the last block that surely can, from the start of the conversation.
    pub(crate) position: u32,
    /// Of the last block that may: whether parts of the provider's own can depends on their kind.
    pub(crate) furthest: u32,
    /// Whether the entry stands for, or was shortened by, a compaction.
    pub(crate) compacted: bool,
}

/// Positions of one entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Up to and including the last block that surely can carry a marker; 0 when none can.
    pub(crate) markable: u32,
    /// Up to and including the last block that may.
    pub(crate) furthest: u32,
    pub(crate) all: u32,
}

impl Ends {
    /// Takes in what comes next. Words to go on are no entry, so that no marker stands there; what follows them is
    /// further away by one position.
    ///
    /// `is_fresh` says that no boundary came after it: only then it reads as it did when it was sent or received.
    pub(crate) fn take(&mut self, piece: Rendered<'_>, is_fresh: bool, collapse_runs: bool) {
        let (entry, compacted) = match piece {
            Rendered::Entry { id, entry, trim } => {
                if is_fresh && matches!(entry, Entry::Step(_)) {
                    self.answer();
                }
                (id, trim.clip_results.is_some() || trim.strip_reasoning)
            }
            Rendered::Summary { id, .. } => (id, true),
            Rendered::Continue => {
                self.positions = self.positions.saturating_add(Counted::of(piece, collapse_runs).all);
                return;
            }
        };
        self.add(entry, Counted::of(piece, collapse_runs), compacted);
    }

    /// The end of the conversation.
    pub(crate) fn tail(&self) -> Option<End> {
        self.tail
    }

    /// The end of what a compaction made or shortened.
    pub(crate) fn compacted(&self) -> Option<End> {
        self.compacted
    }

    /// Where the newest request ended that was answered and reads the same now.
    pub(crate) fn answered(&self) -> Option<End> {
        self.answered
    }

    /// What is here was sent, and what comes next is the answer.
    pub(crate) fn answer(&mut self) {
        self.answered = self.tail;
    }

    pub(crate) fn add(&mut self, entry: EntryId, counted: Counted, compacted: bool) {
        let Counted { markable, furthest, all } = counted;
        let last = |count: u32| self.positions.saturating_add(count.saturating_sub(1));
        let end = (markable > 0).then(|| {
            let (position, furthest) = (last(markable), last(furthest));
            End { entry, position, furthest, compacted }
        });
        self.tail = end.or(self.tail);
        self.compacted = end.filter(|end| end.compacted).or(self.compacted);
        self.positions = self.positions.saturating_add(all);
    }
}

/// A block, as far as positions and markers see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    Call,
    Result,
    Plain,
    /// A part of the provider's own.
    Odd,
    /// Thinking, which may carry no marker.
    Thinking,
}

impl Counted {
    fn of(rendered: Rendered<'_>, collapse_runs: bool) -> Self {
        let mut counted = Self::default();
        let mut last = None;
        let mut see = |seen| {
            let in_run = matches!(seen, Seen::Call | Seen::Result) && last == Some(seen);
            counted.all += u32::from(!(collapse_runs && in_run));
            match seen {
                Seen::Call | Seen::Result | Seen::Plain => {
                    (counted.markable, counted.furthest) = (counted.all, counted.all);
                }
                Seen::Odd => counted.furthest = counted.all,
                Seen::Thinking => {}
            }
            last = Some(seen);
        };
        rendered.messages().for_each(|message| blocks(message, &mut see));
        counted
    }
}

fn blocks(message: Message<'_>, see: &mut impl FnMut(Seen)) {
    match message {
        Message::User(user) => {
            let seen = user.parts().iter().map(|part| match part {
                UserPart::Provider(_) => Seen::Odd,
                UserPart::Text(_) | UserPart::File(_) | _ => Seen::Plain,
            });
            seen.for_each(see);
        }
        Message::Note(_) | Message::TurnNote(_) | Message::Summary(_) => see(Seen::Plain),
        Message::Tool(_, results, _) => results.iter().for_each(|_| see(Seen::Result)),
        Message::Assistant(parts, trim) => {
            let seen = parts.iter().filter_map(|part| match part {
                AssistantPart::Reasoning(_) => (!trim.strip_reasoning).then_some(Seen::Thinking),
                AssistantPart::ToolCall(_) => Some(Seen::Call),
                AssistantPart::Provider(_) => Some(Seen::Odd),
                AssistantPart::Text(_) | _ => Some(Seen::Plain),
            });
            seen.for_each(see);
        }
    }
}

#[cfg(test)]
mod tests {
    use agent_core::{
        CallId, History, ProviderPart, RawJson, Reasoning, Response, StepRecord, ToolCall, ToolInput,
        ToolOutput, ToolResult, UserMessage,
    };

    use super::*;

    /// `t` thinking, `a` words, `o` a part of the provider's own, `c` a call with its result.
    fn check(parts: &str, collapse_runs: bool, expect: [u32; 3]) {
        let id = |at: usize| CallId::new(format!("c{at}")).unwrap();
        let part = |(at, kind)| match kind {
            't' => AssistantPart::Reasoning(Reasoning { text: "hm".into(), seal: None }),
            'a' => AssistantPart::text("a").unwrap(),
            'o' => {
                let raw = RawJson::parse("{}").unwrap();
                AssistantPart::Provider(ProviderPart { provider: "p".into(), kind: "odd".into(), raw })
            }
            _ => AssistantPart::ToolCall(ToolCall {
                id: id(at),
                name: "look".into(),
                input: ToolInput::finished("{}"),
                data: None,
            }),
        };
        let said = parts.chars().enumerate().map(part).collect();
        let calls = parts.char_indices().filter(|(_, kind)| *kind == 'c');
        let results = calls.map(|(at, _)| ToolResult { call: id(at), output: ToolOutput::text("r") });
        let step = StepRecord::new(Response::of(said), results.collect()).unwrap();
        let mut history = History::new();
        history.push(Entry::Step(step)).unwrap();
        let piece = history.view().rendered().next().unwrap();
        let Counted { markable, furthest, all } = Counted::of(piece, collapse_runs);
        assert_eq!([markable, furthest, all], expect, "{parts}");
    }

    #[test]
    fn calls_and_results_in_a_row_are_one_position_where_runs_collapse() {
        check("accc", true, [3, 3, 3]);
        check("accc", false, [7, 7, 7]);
        check("tcac", true, [5, 5, 5]);
        check("tcac", false, [6, 6, 6]);
    }

    #[test]
    fn thinking_at_the_end_lies_behind_the_last_place_for_a_marker() {
        check("at", true, [1, 1, 2]);
        check("t", true, [0, 0, 1]);
        check("tact", true, [5, 5, 5]);
        check("aoot", true, [1, 3, 4]);
        check("o", true, [0, 1, 1]);
    }

    #[test]
    fn words_to_go_on_are_a_position_and_no_place_and_an_answer_tells_where_its_request_ended() {
        let mut history = History::new();
        history.push(Entry::User(UserMessage::text("u").unwrap())).unwrap();
        let mut ends = Ends::default();
        let piece = history.view().rendered().next().unwrap();
        ends.take(piece, true, true);
        ends.take(Rendered::Continue, true, true);
        let end = End { entry: EntryId::at(0), position: 0, furthest: 0, compacted: false };
        assert_eq!((ends.tail(), ends.answered()), (Some(end), None));
        ends.answer();
        ends.add(EntryId::at(1), Counted { markable: 0, furthest: 0, all: 2 }, false);
        assert_eq!((ends.tail(), ends.answered()), (Some(end), Some(end)), "thinking alone is no end");
        ends.add(EntryId::at(2), Counted { markable: 2, furthest: 4, all: 4 }, true);
        let compacted = End { entry: EntryId::at(2), position: 5, furthest: 7, compacted: true };
        assert_eq!((ends.tail(), ends.compacted()), (Some(compacted), Some(compacted)));
    }
}
