//! The history as a model sees it: borrowed, with the newest boundaries applied.

use crate::history::{Boundary, Rewrite};
use crate::{
    AssistantPart, Entry, EntryId, History, Note, NoteKind, StepRecord, Text, ToolResult, UserMessage,
};

/// A borrowed view of a history. It lends; it cannot change or take out anything
/// (`tests/compile_fail/mutate_through_view.rs`, `insert_through_view.rs`).
#[derive(Debug, Clone, Copy)]
pub struct HistoryView<'h> {
    history: &'h History,
    /// A boundary that the log does not have.
    trial: Option<&'h Rewrite>,
}

/// One piece of the view: what a codec encodes and remembers under `(id, trim)`.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_enums, reason = "every codec must render every piece")]
pub enum Rendered<'h> {
    /// An entry.
    Entry {
        /// Its position.
        id: EntryId,
        /// The entry; never a boundary.
        entry: &'h Entry,
        /// What is left out of it.
        trim: Trim,
    },
    /// A summary in place of what it covers.
    Summary {
        /// Position of the boundary.
        id: EntryId,
        /// The summary.
        text: &'h Text,
    },
    /// Words that let a conversation go on where a summary was made and nothing was kept, or the model spoke last.
    Continue,
}

/// What is left out of a rendered entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[expect(clippy::exhaustive_structs, reason = "a key: equal trims give equal bytes")]
pub struct Trim {
    /// Results are clipped.
    pub clip_results: Option<Clip>,
    /// Reasoning is left out.
    pub strip_reasoning: bool,
}

/// How results are clipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_structs, reason = "a key: equal clips give equal bytes")]
pub struct Clip {
    /// To this many bytes.
    pub bytes: usize,
    /// Whether words that are clipped are in the blob store, whole. Who clips them then names them by their
    /// [`crate::BlobHash`], unless they name a blob themselves: then they were shortened before, and that one is whole
    /// (requirement P10).
    pub offloaded: bool,
}

/// A message in one role, lent by the history.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::exhaustive_enums, reason = "every codec must render every role")]
pub enum Message<'h> {
    /// What the user said.
    User(&'h UserMessage),
    /// Words of the harness in the user role.
    Note(&'h str),
    /// Words of the harness that are meant until the user speaks again ([`crate::NoteKind::TurnScoped`]).
    TurnNote(&'h str),
    /// What the model said.
    Assistant(&'h [AssistantPart], Trim),
    /// A summary in the assistant role.
    Summary(&'h Text),
    /// The results of the calls of the assistant message just before.
    Tool(&'h StepRecord, &'h [ToolResult], Trim),
}

/// What became of words to go on where the newest summary was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GoOn {
    /// Somebody else spoke last, or speaks next.
    Needless,
    /// They end the view.
    Asked,
    /// The model went on with this entry.
    Answered(EntryId),
}

/// Introduces a summary, in the user role.
pub const SUMMARY_MARKER: &str = "The conversation so far was summarised to save space. The summary follows.";
/// Lets the model go on after a summary.
pub const CONTINUE: &str = "Continue.";

impl<'h> HistoryView<'h> {
    pub(crate) fn new(history: &'h History) -> Self {
        Self { history, trial: None }
    }

    /// The view as it would be if this boundary were appended now.
    #[must_use]
    pub fn with(self, rewrite: &'h Rewrite) -> Self {
        Self { trial: Some(rewrite), ..self }
    }

    /// The log itself, with what boundaries cover.
    pub fn entries(self) -> &'h [Entry] {
        self.history.entries()
    }

    /// What the model sees, piece by piece (requirement M3): the newest summary and what it keeps, with the
    /// newest clearing applied; without boundaries, every entry.
    ///
    /// Words to go on stand where a summary was made and the model would have spoken last, if the model was then asked:
    /// they stay there for good, as the bytes before them do.
    pub fn rendered(self) -> impl Iterator<Item = Rendered<'h>> {
        self.settled().chain(self.goes_on().then_some(Rendered::Continue))
    }

    /// What stays, whatever is appended next: the view without words to go on at its end, which an answer keeps there
    /// and anything else takes away.
    pub fn settled(self) -> impl Iterator<Item = Rendered<'h>> {
        let (summary, cleared) = self.boundaries();
        let (clear, cleared_at) = match cleared {
            Some((id, Rewrite::Cleared { results_to, keep_bytes, strip_reasoning, offloaded })) => {
                let clip = Clip { bytes: *keep_bytes, offloaded: *offloaded };
                (Some((*results_to, clip)), strip_reasoning.then_some(id))
            }
            _ => (None, None),
        };
        let (head, at, from, strips) = match summary {
            Some((id, Rewrite::Summary { text, kept_from, strip_reasoning })) => {
                (Some(Rendered::Summary { id, text }), id, *kept_from, *strip_reasoning)
            }
            _ => (None, EntryId::at(0), EntryId::at(0), false),
        };
        let shown = move |(position, entry): (usize, &'h Entry)| {
            let id = EntryId::at(position);
            // A trim that changes nothing is not asked for, so that the bytes already encoded are used.
            let is_step = matches!(entry, Entry::Step(_));
            let trim = Trim {
                clip_results: clear.filter(|(to, _)| is_step && id < *to).map(|(_, clip)| clip),
                strip_reasoning: is_step && ((strips && id < at) || cleared_at.is_some_and(|at| id < at)),
            };
            Rendered::Entry { id, entry, trim }
        };
        let (before, after) = (self.range(from, at), self.range(at, EntryId::at(self.entries().len())));
        let answered = self.words().answered_by().map(|_| Rendered::Continue);
        head.into_iter().chain(before.map(shown)).chain(answered).chain(after.map(shown))
    }

    /// The pieces of [`Self::settled`] that were not in it when the log had `known` entries; `None` when a boundary
    /// came since, so that all is to be looked at again. The work is that of what was added.
    pub fn added(self, known: usize) -> Option<impl Iterator<Item = Rendered<'h>>> {
        let new = self.entries().get(known..).filter(|_| self.trial.is_none())?;
        if new.iter().any(|entry| matches!(entry, Entry::Boundary(_))) {
            return None;
        }
        let answer = self.words().answered_by().filter(|at| at.position() >= known);
        let answered = answer.map(|_| Rendered::Continue);
        let plain = |(position, entry)| {
            let id = EntryId::at(position);
            Rendered::Entry { id, entry, trim: Trim::default() }
        };
        Some(answered.into_iter().chain((known..).zip(new).map(plain)))
    }

    /// Whether words to go on stand at the end of the view: a summary was made where the model would speak last.
    pub fn goes_on(self) -> bool {
        self.words() == GoOn::Asked
    }

    /// What became of words to go on. The work is that of the boundaries next to the newest summary.
    fn words(self) -> GoOn {
        let (Some((at, Rewrite::Summary { kept_from, .. })), _) = self.boundaries() else {
            return GoOn::Needless;
        };
        let kept = self.range(*kept_from, at).next_back();
        if kept.is_some_and(|(_, entry)| !ends_with_assistant(entry)) {
            return GoOn::Needless;
        }
        match self.range(at, EntryId::at(self.entries().len())).next() {
            Some((position, Entry::Step(_))) => GoOn::Answered(EntryId::at(position)),
            Some((_, Entry::User(_) | Entry::Note(_) | Entry::Boundary(_))) => GoOn::Needless,
            None => GoOn::Asked,
        }
    }

    /// Entries with their positions, boundaries left out.
    fn range(
        self,
        from: EntryId,
        to: EntryId,
    ) -> impl DoubleEndedIterator<Item = (usize, &'h Entry)> + Clone {
        let entries = self.entries().get(from.position()..to.position()).unwrap_or_default();
        let numbered = entries.iter().enumerate().map(move |(at, entry)| (from.position() + at, entry));
        numbered.filter(|(_, entry)| !matches!(entry, Entry::Boundary(_)))
    }

    /// The newest summary and the newest clearing, the one on trial included.
    fn boundaries(self) -> (Option<Boundary<'h>>, Option<Boundary<'h>>) {
        let (summary, cleared) = self.history.boundaries();
        let end = EntryId::at(self.entries().len());
        match self.trial {
            Some(trial @ Rewrite::Summary { .. }) => (Some((end, trial)), cleared),
            Some(trial @ Rewrite::Cleared { .. }) => (summary, Some((end, trial))),
            None => (summary, cleared),
        }
    }

    /// What the model sees, message by message.
    pub fn messages(self) -> impl Iterator<Item = Message<'h>> {
        self.rendered().flat_map(Rendered::messages)
    }
}

impl<'h> Rendered<'h> {
    /// The one or two messages of a piece.
    pub fn messages(self) -> impl Iterator<Item = Message<'h>> {
        let (first, second) = match self {
            Self::Entry { entry: Entry::User(message), .. } => (Some(Message::User(message)), None),
            Self::Entry { entry: Entry::Note(Note { kind: NoteKind::TurnScoped, text }), .. } => {
                (Some(Message::TurnNote(text.as_str())), None)
            }
            Self::Entry { entry: Entry::Note(Note { text, .. }), .. } => {
                (Some(Message::Note(text.as_str())), None)
            }
            Self::Entry { entry: Entry::Step(step), trim, .. } => {
                let results = (!step.results().is_empty()).then(|| Message::Tool(step, step.results(), trim));
                (Some(Message::Assistant(step.parts(), trim)), results)
            }
            Self::Entry { entry: Entry::Boundary(_), .. } => (None, None),
            Self::Summary { text, .. } => (Some(Message::Note(SUMMARY_MARKER)), Some(Message::Summary(text))),
            Self::Continue => (Some(Message::Note(CONTINUE)), None),
        };
        first.into_iter().chain(second)
    }
}

impl GoOn {
    fn answered_by(self) -> Option<EntryId> {
        match self {
            Self::Answered(id) => Some(id),
            Self::Needless | Self::Asked => None,
        }
    }
}

fn ends_with_assistant(entry: &Entry) -> bool {
    matches!(entry, Entry::Step(step) if step.results().is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{CallId, Response, ToolCall, ToolInput, ToolOutput};

    fn step(n: usize) -> Entry {
        let id = CallId::new(format!("c{n}")).unwrap();
        let call =
            ToolCall { id: id.clone(), name: "t".into(), input: ToolInput::finished("{}"), data: None };
        let said =
            Response::of(vec![AssistantPart::text(format!("s{n}")).unwrap(), AssistantPart::ToolCall(call)]);
        Entry::Step(
            StepRecord::new(said, vec![ToolResult { call: id, output: ToolOutput::text(format!("r{n}")) }])
                .unwrap(),
        )
    }

    fn said(n: usize) -> Entry {
        Entry::Step(
            StepRecord::new(Response::of(vec![AssistantPart::text(format!("a{n}")).unwrap()]), vec![])
                .unwrap(),
        )
    }

    fn user(n: usize) -> Entry {
        Entry::User(UserMessage::text(format!("u{n}")).unwrap())
    }

    fn summary(kept_from: usize) -> Entry {
        let text = Text::new(format!("sum{kept_from}")).unwrap();
        Entry::Boundary(Rewrite::Summary { text, kept_from: EntryId::at(kept_from), strip_reasoning: true })
    }

    fn cleared(results_to: usize) -> Entry {
        Entry::Boundary(Rewrite::Cleared {
            results_to: EntryId::at(results_to),
            keep_bytes: 1000,
            strip_reasoning: false,
            offloaded: false,
        })
    }

    fn history(entries: Vec<Entry>) -> History {
        let mut history = History::new();
        for entry in entries {
            history.push(entry).unwrap();
        }
        history
    }

    /// `u0` an entry, `u0/` one with clipped results, `S` a summary, `.` the word to continue.
    fn sketch(history: &History) -> String {
        sketched(history.view().rendered())
    }

    fn sketched<'h>(pieces: impl Iterator<Item = Rendered<'h>>) -> String {
        let pieces = pieces.map(|piece| match piece {
            Rendered::Entry { id, trim, .. } => {
                format!("{id}{}", if trim.clip_results.is_some() { "/" } else { "" })
            }
            Rendered::Summary { text, .. } => text.to_string(),
            Rendered::Continue => ".".into(),
        });
        pieces.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_newest_boundary_renders_and_the_log_stays_whole() {
        let check = |entries: Vec<Entry>, expect: &str| {
            let history = history(entries.clone());
            assert_eq!(sketch(&history), expect);
            assert_eq!(history.entries(), entries, "the log is readable in full");
        };
        check(vec![user(0), step(1), user(2)], "0 1 2");
        check(vec![user(0), step(1), user(2), summary(2)], "sum2 2");
        check(vec![user(0), step(1), summary(2)], "sum2 .");
        check(vec![user(0), said(1), summary(1)], "sum1 1 .");
        check(vec![user(0), said(1), summary(1), step(3)], "sum1 1 . 3");
        check(vec![user(0), said(1), summary(1), step(3), said(4)], "sum1 1 . 3 4");
        check(vec![user(0), said(1), summary(1), user(3), said(4)], "sum1 1 3 4");
        check(vec![user(0), step(1), summary(2), cleared(2), step(4)], "sum2 . 4");
        check(vec![user(0), step(1), summary(1), step(3), summary(3), user(5)], "sum3 3 5");
        check(vec![user(0), step(1), step(2), cleared(2)], "0 1/ 2");
        check(vec![user(0), step(1), step(2), cleared(2), summary(1)], "sum1 1/ 2");
        check(vec![user(0), step(1), step(2), summary(1), cleared(2)], "sum1 1/ 2");
    }

    #[test]
    fn a_clearing_may_strip_the_reasoning_before_it() {
        let check = |strip_reasoning: bool, expect: &[bool]| {
            let results_to = EntryId::at(2);
            let cleared = Rewrite::Cleared { results_to, keep_bytes: 9, strip_reasoning, offloaded: false };
            let log = history(vec![user(0), step(1), step(2), Entry::Boundary(cleared), step(4)]);
            let stripped = log.view().rendered().filter_map(|piece| match piece {
                Rendered::Entry { entry: Entry::Step(_), trim, .. } => Some(trim.strip_reasoning),
                Rendered::Entry { .. } | Rendered::Summary { .. } | Rendered::Continue => None,
            });
            assert_eq!(stripped.collect::<Vec<_>>(), expect);
        };
        check(false, &[false, false, false]);
        check(true, &[true, true, false]);
        let old = r#"{"cleared":{"results_to":2,"keep_bytes":9}}"#;
        let read: Rewrite = serde_json::from_str(old).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), old, "what was stored before stays the same bytes");
    }

    #[test]
    fn a_boundary_on_trial_shows_what_it_would_show_if_it_were_appended() {
        let check = |entries: Vec<Entry>, boundary: Entry, expect: &str| {
            let mut log = history(entries);
            let before = sketch(&log);
            let Entry::Boundary(rewrite) = &boundary else { panic!("no boundary: {boundary:?}") };
            let trial = log.view().with(rewrite);
            assert_eq!(sketched(trial.rendered()), expect);
            assert_eq!(sketch(&log), before, "trying changes nothing");
            log.push(boundary.clone()).unwrap();
            assert_eq!(sketch(&log), expect);
        };
        check(vec![user(0), step(1), user(2)], summary(2), "sum2 2");
        check(vec![user(0), step(1), step(2)], summary(2), "sum2 2");
        check(vec![user(0), step(1)], summary(2), "sum2 .");
        check(vec![user(0), said(1)], summary(1), "sum1 1 .");
        check(vec![user(0), step(1), step(2)], cleared(2), "0 1/ 2");
        check(vec![user(0), step(1), summary(1), step(3)], summary(3), "sum3 3");
        check(vec![user(0), step(1), summary(2), step(3)], cleared(4), "sum2 . 3/");
        check(vec![user(0), step(1), step(2), cleared(2)], summary(1), "sum1 1/ 2");
        check(vec![user(0), step(1), step(2), cleared(2), step(4)], cleared(4), "0 1/ 2/ 4");
    }

    #[test]
    fn what_was_added_goes_on_from_what_was_there() {
        let check = |entries: Vec<Entry>, known: usize, expect: Option<&str>| {
            let log = history(entries);
            assert_eq!(log.view().added(known).map(sketched).as_deref(), expect);
        };
        check(vec![user(0), step(1)], 1, Some("1"));
        check(vec![user(0), step(1)], 2, Some(""));
        check(vec![user(0), step(1)], 3, None);
        check(vec![user(0), step(1), summary(2)], 2, None);
        check(vec![user(0), step(1), summary(2)], 3, Some(""));
        check(vec![user(0), step(1), summary(2), step(3)], 3, Some(". 3"));
        check(vec![user(0), step(1), summary(2), cleared(2), step(4)], 4, Some(". 4"));
        check(vec![user(0), step(1), summary(2), step(3), user(4)], 4, Some("4"));
        check(vec![user(0), step(1), summary(2), user(3), step(4)], 3, Some("3 4"));
    }

    #[test]
    fn a_boundary_that_reaches_back_or_past_the_end_is_refused() {
        let mut log = history(vec![user(0), step(1), summary(2)]);
        assert!(log.push(summary(1)).is_err(), "it would show again what was summarised");
        assert!(log.push(summary(9)).is_err(), "it would keep from what does not exist");
        assert!(log.push(summary(3)).is_ok());
    }

    #[test]
    fn calls_stay_next_to_their_results() {
        let log = history(vec![
            user(0),
            step(1),
            Entry::Note(Note { kind: NoteKind::Reminder, text: Text::new("mind").unwrap() }),
            step(3),
        ]);
        let roles: String = log
            .view()
            .messages()
            .map(|message| match message {
                Message::User(_) => 'u',
                Message::Note(_) | Message::TurnNote(_) => 'n',
                Message::Assistant(..) | Message::Summary(_) => 'a',
                Message::Tool(..) => 't',
            })
            .collect();
        assert_eq!(roles, "uatnat");
    }

    proptest! {
        /// Over any chain of entries and boundaries: what was asked stands at the beginning of what is asked after the
        /// answer, and what was added is all that has to be looked at.
        #[test]
        fn an_answer_takes_nothing_away(kinds in proptest::collection::vec(0u8..6, 1..40)) {
            let mut log = History::new();
            for (n, kind) in kinds.iter().enumerate() {
                let asked = sketch(&log);
                let (known, settled) = (log.len(), sketched(log.view().settled()));
                let entry = match kind {
                    0 => user(n),
                    1 => said(n),
                    2 | 3 => step(n),
                    4 => summary(known.saturating_sub(n % 3)),
                    _ => cleared(known.saturating_sub(n % 2)),
                };
                if log.push(entry.clone()).is_err() {
                    continue;
                }
                let now = sketched(log.view().settled());
                let joined = |added: String| [settled.as_str(), &added].join(" ").trim().to_owned();
                match log.view().added(known).map(sketched) {
                    Some(added) => prop_assert_eq!(joined(added), now),
                    None => prop_assert!(matches!(entry, Entry::Boundary(_))),
                }
                if matches!(entry, Entry::Step(_)) {
                    prop_assert!(sketch(&log).starts_with(&asked), "{} {}", asked, sketch(&log));
                }
                prop_assert_eq!(log.view().goes_on(), sketch(&log).ends_with('.'));
            }
        }

        /// Over any chain of entries and boundaries: one summary at most, the tail after it never lost, results
        /// right behind their calls, and never an assistant at the end of a summarised view.
        #[test]
        fn chains_never_nest_or_drop_the_tail(kinds in proptest::collection::vec(0u8..6, 1..60)) {
            let mut log = History::new();
            for (n, kind) in kinds.iter().enumerate() {
                let end = log.len();
                let entry = match kind {
                    0 => user(n),
                    1 => said(n),
                    2 | 3 => step(n),
                    4 => summary(end.saturating_sub(n % 3)),
                    _ => cleared(end.saturating_sub(n % 2)),
                };
                let _ = log.push(entry);
            }
            let summaries = log.entries().iter().filter(|entry| matches!(entry, Entry::Boundary(Rewrite::Summary { .. }))).count();
            let pieces: Vec<_> = log.view().rendered().collect();
            let shown = pieces.iter().filter(|piece| matches!(piece, Rendered::Summary { .. })).count();
            prop_assert_eq!(shown, usize::from(summaries > 0));
            let (newest, _) = log.boundaries();
            let from = newest.map_or(0, |(_, rewrite)| rewrite.reach().position());
            let kept = log.entries().iter().skip(from).filter(|entry| !matches!(entry, Entry::Boundary(_))).count();
            let entries = pieces.iter().filter(|piece| matches!(piece, Rendered::Entry { .. })).count();
            prop_assert_eq!(entries, kept);
            let mut open = Vec::new();
            for message in log.view().messages() {
                match message {
                    Message::Assistant(parts, _) => open = parts.iter().filter_map(AssistantPart::as_call).map(|c| c.id.clone()).collect(),
                    Message::Tool(_, results, _) => {
                        let answered: Vec<_> = results.iter().map(|r| r.call.clone()).collect();
                        prop_assert_eq!(&std::mem::take(&mut open), &answered);
                    }
                    Message::User(_) | Message::Note(_) | Message::TurnNote(_) | Message::Summary(_) => prop_assert!(open.is_empty()),
                }
            }
            prop_assert!(open.is_empty());
        }
    }
}
