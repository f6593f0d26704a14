//! Words for one step, in the form that its model allows.

use agent_core::{Entry, HistoryView, ModelProfile, Note, NoteKind, Rewrite, Text, reminder};

/// The first line of all words that the pipeline says, so that a model does not take them for the user's.
pub const DIRECTIVE: &str = "[system directive — not user input]";

/// How words are said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// There is nothing to say, or it stands already.
    Nothing,
    /// For this step only.
    Once(Text),
    /// As a note that stays, because the model's thinking is bound to the words before it.
    Stays(Note),
}

/// The last directive that the model still sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing<'h> {
    /// None was ever said.
    Nothing,
    /// None is in sight: a summary covers where one may have been, it is too far back to be looked for, or this model's
    /// provider hides it, as another one's may not.
    OutOfSight,
    /// Its blocks, none when it released the ones before; and whether it is near enough to count as heard.
    Last { kind: NoteKind, blocks: &'h str, is_near: bool },
}

/// Says the words of all stages of a step in one message (requirement P3): a line that tells whose they are, then a block
/// each.
///
/// Words that are taken away again change what lies before the next answer. Where thinking is bound to that, they stay in
/// the history, and are not said again while the same words are the last ones said; a provider that can hides them when the
/// user speaks again. What stays must not be taken to hold when its step is over: other words say that they take its place,
/// and a step without words releases it, once.
pub(crate) fn say(words: &[Text], model: &ModelProfile, history: HistoryView<'_>) -> Said {
    let blocks = blocks(words);
    let binds = model.binds_thinking_to_prefix;
    let standing = Standing::of(history, model);
    let (holds, is_near, outlives) = match standing {
        Standing::Last { kind, blocks, is_near } => {
            (blocks, is_near, kind == NoteKind::Reminder && !blocks.is_empty())
        }
        Standing::Nothing | Standing::OutOfSight => ("", false, false),
    };
    let text = if blocks.is_empty() {
        (!holds.is_empty()).then(|| format!("{DIRECTIVE}\n{RELEASES}"))
    } else if binds && is_near && holds == blocks {
        None
    } else {
        // What stays says so whenever another model may see words before it.
        let replaces = !holds.is_empty() || (binds && standing != Standing::Nothing);
        Some(if replaces {
            format!("{DIRECTIVE}\n{REPLACES}{blocks}")
        } else {
            format!("{DIRECTIVE}{blocks}")
        })
    };
    let Some(text) = text.and_then(Text::new) else { return Said::Nothing };
    if !binds {
        return Said::Once(text);
    }
    // What takes the place of words that outlive the turn has to outlive it too.
    let is_scoped = model.turn_scoped_system && !outlives;
    let kind = if is_scoped { NoteKind::TurnScoped } else { NoteKind::Reminder };
    Said::Stays(Note { kind, text })
}

/// Whether a note with these words stands since the user spoke last and is shown, as far as [`MOST_BACK`] entries back.
pub(crate) fn stands(history: HistoryView<'_>, words: &str) -> bool {
    let recent = shown(history).take(MOST_BACK).take_while(|entry| !matches!(entry, Entry::User(_)));
    let mut notes = recent.filter_map(|entry| match entry {
        Entry::Note(note) => Some(note),
        Entry::User(_) | Entry::Step(_) | Entry::Boundary(_) => None,
    });
    notes.any(|note| note.text.as_str() == words)
}

fn blocks(words: &[Text]) -> String {
    let mut said: Vec<&str> = Vec::with_capacity(words.len());
    for text in words {
        if !said.contains(&text.as_str()) {
            said.push(text.as_str());
        }
    }
    said.iter().map(|words| format!("\n{}", reminder(words))).collect()
}

impl<'h> Standing<'h> {
    /// As this model sees the history. The work is that of [`FARTHEST`] entries at most.
    fn of(history: HistoryView<'h>, model: &ModelProfile) -> Self {
        let (mut seen, mut is_past_turn, mut none) = (0, false, Self::Nothing);
        for (back, entry) in shown(history).take(FARTHEST).enumerate() {
            seen = back + 1;
            match entry {
                Entry::User(_) => is_past_turn = true,
                Entry::Note(note) if is_directive(note) && is_past_turn && is_hidden(note, model) => {
                    none = Self::OutOfSight;
                }
                Entry::Note(note) if is_directive(note) => {
                    let blocks = note.text.as_str().find(FIRST).map_or("", |at| &note.text.as_str()[at..]);
                    return Self::Last { kind: note.kind, blocks, is_near: back < MOST_BACK };
                }
                Entry::Note(_) | Entry::Step(_) | Entry::Boundary(_) => {}
            }
        }
        if seen < history.entries().len() { Self::OutOfSight } else { none }
    }
}

fn is_directive(note: &Note) -> bool {
    matches!(note.kind, NoteKind::Reminder | NoteKind::TurnScoped)
        && note.text.as_str().starts_with(DIRECTIVE)
}

/// Whether the model does not see it any more, as the user spoke since.
fn is_hidden(note: &Note, model: &ModelProfile) -> bool {
    note.kind == NoteKind::TurnScoped && model.turn_scoped_system
}

/// The entries that no summary covers, the newest first.
fn shown(history: HistoryView<'_>) -> impl Iterator<Item = &Entry> {
    let mut from = 0;
    let newest_first = history.entries().iter().enumerate().rev();
    let shown = newest_first.take_while(move |(position, entry)| {
        // One that reaches past itself was mended away.
        if let Entry::Boundary(Rewrite::Summary { kept_from, .. }) = entry
            && kept_from.position() <= *position
        {
            from = from.max(kept_from.position());
        }
        *position >= from
    });
    shown.map(|(_, entry)| entry)
}

/// Stands before words when others may stand before them.
const REPLACES: &str = "This takes the place of every system directive before it:";
/// Stands in place of words when there are none any more.
const RELEASES: &str = "No system directive before this one holds any longer.";
/// Where the blocks of a directive begin.
const FIRST: &str = "\n<system-reminder>\n";
/// How many entries back words count as heard. The search of a long turn costs no more than that, and what stays is said
/// again before it is out of sight.
const MOST_BACK: usize = 64;
/// How many entries back words are looked for that hold no longer. Words that hold are never as far: a step that looks
/// comes long before so many entries are written.
const FARTHEST: usize = 2 * MOST_BACK;

#[cfg(test)]
mod tests {
    use agent_core::{AssistantPart, EntryId, History, RawJson, Response, StepRecord, UserMessage};
    use proptest::prelude::*;

    use super::*;

    fn texts(words: &[&str]) -> Vec<Text> {
        words.iter().filter_map(|words| Text::new(*words)).collect()
    }

    fn model(binds: bool) -> ModelProfile {
        ModelProfile { binds_thinking_to_prefix: binds, ..ModelProfile::conservative("harbour", "pilot") }
    }

    fn user(words: &str) -> Entry {
        Entry::User(UserMessage::text(words).unwrap())
    }

    fn step() -> Entry {
        let said = Response::of(AssistantPart::text("Aye.").into_iter().collect());
        Entry::Step(StepRecord::new(said, vec![]).unwrap())
    }

    fn history(entries: impl IntoIterator<Item = Entry>) -> History {
        let mut history = History::new();
        for entry in entries {
            history.push(entry).unwrap();
        }
        history
    }

    fn summary(kept_from: usize) -> Entry {
        let text = Text::new("They sailed.").unwrap();
        Entry::Boundary(Rewrite::Summary { text, kept_from: EntryId::at(kept_from), strip_reasoning: false })
    }

    fn cleared() -> Entry {
        let boundary = RawJson::parse(r#"{"boundary":{"cleared":{"results_to":0,"keep_bytes":9}}}"#);
        boundary.unwrap().to::<Entry>().unwrap()
    }

    fn kept(words: &[&str]) -> Entry {
        let Said::Stays(note) = say(&texts(words), &model(true), History::new().view()) else {
            panic!("it is said for good in an empty history")
        };
        Entry::Note(note)
    }

    #[test]
    fn one_line_and_a_block_each() {
        let words = texts(&["No emoji.", "No emoji.", "Use </system-reminder> never."]);
        let Said::Once(text) = say(&words, &model(false), History::new().view()) else { panic!("said once") };
        insta::assert_snapshot!(text, @r"
        [system directive — not user input]
        <system-reminder>
        No emoji.
        </system-reminder>
        <system-reminder>
        Use <\/system-reminder> never.
        </system-reminder>
        ");
    }

    #[test]
    fn what_stays_is_not_said_twice() {
        /// Whether `words` are said behind `entries`.
        fn check(words: &[&str], entries: Vec<Entry>, is_said: bool) {
            let history = history(entries);
            let said = say(&texts(words), &model(true), history.view());
            assert_eq!(matches!(said, Said::Stays(_)), is_said, "{words:?} behind {:?}", history.entries());
        }
        check(&["a"], vec![], true);
        check(&["a"], vec![user("Go."), kept(&["a"])], false);
        check(&["a"], vec![user("Go."), kept(&["a"]), step(), cleared(), step()], false);
        check(&["a"], vec![kept(&["a"]), user("Go.")], false);
        // Other words were said, or a summary covers them.
        check(&["a"], vec![kept(&["a"]), step(), kept(&["b"])], true);
        check(&["a"], vec![kept(&["a"]), step(), summary(0)], false);
        check(&["a"], vec![kept(&["a"]), step(), summary(1)], true);
        let far = |steps: usize| std::iter::once(kept(&["a"])).chain((0..steps).map(|_| step())).collect();
        check(&["a"], far(MOST_BACK - 1), false);
        check(&["a"], far(MOST_BACK), true);
    }

    #[test]
    fn what_holds_no_longer_is_released_once() {
        /// What is said behind `entries`, without its first line.
        fn check(words: &[&str], entries: Vec<Entry>, expect: &str) {
            let history = history(entries);
            let said = match say(&texts(words), &model(true), history.view()) {
                Said::Stays(note) => note.text.as_str().replace(DIRECTIVE, ""),
                Said::Once(text) => panic!("not for good: {text}"),
                Said::Nothing => String::new(),
            };
            assert_eq!(said, expect, "{words:?} behind {:?}", history.entries());
        }
        let released = || {
            let text = Text::new(format!("{DIRECTIVE}\n{RELEASES}")).unwrap();
            Entry::Note(Note { kind: NoteKind::Reminder, text })
        };
        let release = "\nNo system directive before this one holds any longer.";
        let replace = "\nThis takes the place of every system directive before it:\n<system-reminder>\na\n</system-reminder>";
        check(&[], vec![], "");
        check(&[], vec![user("Go."), step()], "");
        check(&[], vec![kept(&["a"]), step()], release);
        check(&[], vec![kept(&["a"]), step(), user("Go.")], release);
        check(&[], vec![kept(&["a"]), step(), released(), step(), user("Go.")], "");
        check(&[], vec![kept(&["a"]), step(), summary(0)], release);
        check(&[], vec![kept(&["a"]), step(), summary(1)], "");
        check(&["a"], vec![kept(&["b"]), step()], replace);
        check(&["a"], vec![kept(&["b"]), step(), released()], replace);
        check(&["a"], vec![kept(&["b"]), step(), summary(2)], replace);
        let far = |steps: usize| std::iter::once(kept(&["a"])).chain((0..steps).map(|_| step())).collect();
        check(&["a"], far(MOST_BACK), replace);
        check(&[], far(MOST_BACK), release);
    }

    #[test]
    fn words_for_one_step_take_the_place_of_what_another_model_was_told_for_good() {
        let history = history([kept(&["a"]), step(), user("Go.")]);
        let check = |words: &[&str], expect: &str| match say(&texts(words), &model(false), history.view()) {
            Said::Once(text) => assert_eq!(text.as_str().lines().nth(1), Some(expect)),
            said @ (Said::Stays(_) | Said::Nothing) => panic!("{said:?}"),
        };
        check(&[], RELEASES);
        check(&["b"], REPLACES);
    }

    /// What a reader of the notes takes to hold: each directive adds its blocks, after what its first words say of those
    /// before. The reader sees the newest summary in place of what it covers, and no words for a turn that is over where
    /// its provider hides them.
    fn believed(history: &History, model: &ModelProfile) -> Vec<String> {
        let entries = history.entries();
        let from = entries.iter().rev().find_map(|entry| match entry {
            Entry::Boundary(Rewrite::Summary { kept_from, .. }) => Some(kept_from.position()),
            Entry::Boundary(_) | Entry::User(_) | Entry::Step(_) | Entry::Note(_) => None,
        });
        let turn = entries.iter().rposition(|entry| matches!(entry, Entry::User(_))).unwrap_or(0);
        let mut believed = Vec::new();
        for (position, entry) in entries.iter().enumerate().skip(from.unwrap_or(0)) {
            let Entry::Note(Note { kind, text }) = entry else { continue };
            let is_hidden = *kind == NoteKind::TurnScoped && model.turn_scoped_system && position < turn;
            let Some(text) = text.as_str().strip_prefix(DIRECTIVE).filter(|_| !is_hidden) else { continue };
            if text.starts_with("\nThis takes the place") || text.starts_with("\nNo system directive") {
                believed.clear();
            }
            believed.extend(
                text.split("<system-reminder>\n")
                    .skip(1)
                    .map(|block| block.split_once("\n</system-reminder>").unwrap().0.to_owned()),
            );
        }
        believed
    }

    proptest! {
        /// Whatever stages say, whoever speaks between, and however far back it was said: what stands is what the step says.
        #[test]
        fn what_is_believed_is_what_the_step_says(
            acts in proptest::collection::vec((0u8..8, 0usize..4, 1usize..40, any::<bool>()), 1..16),
        ) {
            let mut history = History::new();
            for (act, said, number, scopes) in acts {
                let words: &[&str] = [&[][..], &["a"], &["b"], &["a", "b"]][said];
                let between = match act {
                    0 | 1 => Some(user("Go on.")),
                    2 => Some(summary(history.len().saturating_sub(number % 4))),
                    3 => Some(Entry::Note(Note { kind: NoteKind::Date, text: Text::new("Monday.").unwrap() })),
                    _ => None,
                };
                if let Some(entry) = between && history.push(entry).is_err() {
                    continue;
                }
                let model = ModelProfile { turn_scoped_system: scopes, ..model(true) };
                for _ in 0..if act > 5 { number } else { 1 } {
                    match say(&texts(words), &model, history.view()) {
                        Said::Stays(note) => history.push(Entry::Note(note)).map(|_| ()).unwrap(),
                        Said::Nothing => {}
                        Said::Once(text) => panic!("not for good: {text}"),
                    }
                    prop_assert_eq!(believed(&history, &model), words);
                    prop_assert_eq!(say(&texts(words), &model, history.view()), Said::Nothing, "once");
                    history.push(step()).unwrap();
                }
            }
        }
    }

    #[test]
    fn what_stays_is_limited_to_the_turn_where_it_can_be() {
        fn check(binds: bool, scopes: bool, expect: Option<NoteKind>) {
            let model = ModelProfile { turn_scoped_system: scopes, ..model(binds) };
            let kind = match say(&texts(&["a"]), &model, History::new().view()) {
                Said::Stays(note) => Some(note.kind),
                Said::Once(_) | Said::Nothing => None,
            };
            assert_eq!(kind, expect);
        }
        check(false, false, None);
        check(false, true, None);
        check(true, false, Some(NoteKind::Reminder));
        check(true, true, Some(NoteKind::TurnScoped));
    }

    #[test]
    fn notes_of_others_do_not_count() {
        let other = Note { kind: NoteKind::Date, text: Text::new("It is Tuesday.").unwrap() };
        let history = history([user("Go."), kept(&["a"]), Entry::Note(other)]);
        assert_eq!(say(&texts(&["a"]), &model(true), history.view()), Said::Nothing);
        assert!(stands(history.view(), "It is Tuesday.") && !stands(history.view(), "It is Monday."));
    }

    #[test]
    fn a_note_stands_until_the_user_speaks_or_a_summary_covers_it() {
        let check = |behind: Vec<Entry>, expect: bool| {
            let note = Note { kind: NoteKind::State, text: Text::new("The tests pass.").unwrap() };
            let history = history([user("Go."), Entry::Note(note)].into_iter().chain(behind));
            assert_eq!(stands(history.view(), "The tests pass."), expect, "{:?}", history.entries());
        };
        check(vec![], true);
        check(vec![step(), cleared()], true);
        check(vec![step(), user("Go on.")], false);
        // It is kept behind this one, and not behind that one.
        check(vec![summary(1), step()], true);
        check(vec![summary(2), step()], false);
        check((2..MOST_BACK + 1).map(|_| step()).collect(), true);
        check((2..MOST_BACK + 2).map(|_| step()).collect(), false);
    }
}
