//! Words for one step, in the form that its model allows.

use agent_core::{Entry, HistoryView, ModelProfile, Note, NoteKind, Rewrite, Text};

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

/// Says the words of all stages of a step in one message (requirement P3): a line that tells whose they are, then a block
/// each.
///
/// Words that are taken away again change what lies before the next answer. Where thinking is bound to that, they stay in
/// the history, and are not said again while the same words are the last ones said; a provider that can hides them when the
/// user speaks again.
pub(crate) fn say(words: &[Text], model: &ModelProfile, history: HistoryView<'_>) -> Said {
    let Some(text) = directive(words) else { return Said::Nothing };
    if !model.binds_thinking_to_prefix {
        return Said::Once(text);
    }
    if last_directive(history) == Some(text.as_str()) {
        return Said::Nothing;
    }
    let kind = if model.turn_scoped_system { NoteKind::TurnScoped } else { NoteKind::Reminder };
    Said::Stays(Note { kind, text })
}

/// Whether a note with these words stands since the user spoke last, as far as [`MOST_BACK`] entries back.
pub(crate) fn stands(history: HistoryView<'_>, words: &str) -> bool {
    recent_notes(history).any(|note| note.text.as_str() == words)
}

fn directive(words: &[Text]) -> Option<Text> {
    let mut said: Vec<&str> = Vec::with_capacity(words.len());
    for text in words {
        if !said.contains(&text.as_str()) {
            said.push(text.as_str());
        }
    }
    if said.is_empty() {
        return None;
    }
    let blocks = said.iter().map(|words| format!("\n{OPENS}\n{}\n{CLOSES}", words.replace(CLOSES, ESCAPED)));
    Text::new(format!("{DIRECTIVE}{}", blocks.collect::<String>()))
}

fn last_directive(history: HistoryView<'_>) -> Option<&str> {
    recent_notes(history).map(|note| note.text.as_str()).find(|words| words.starts_with(DIRECTIVE))
}

/// Notes since the user spoke last and since the last summary, the newest first.
fn recent_notes(history: HistoryView<'_>) -> impl Iterator<Item = &Note> {
    let recent = history.entries().iter().rev().take(MOST_BACK).take_while(|entry| match entry {
        Entry::User(_) | Entry::Boundary(Rewrite::Summary { .. }) => false,
        Entry::Step(_) | Entry::Note(_) | Entry::Boundary(Rewrite::Cleared { .. }) => true,
    });
    recent.filter_map(|entry| match entry {
        Entry::Note(note) => Some(note),
        Entry::User(_) | Entry::Step(_) | Entry::Boundary(_) => None,
    })
}

const OPENS: &str = "<system-reminder>";
const CLOSES: &str = "</system-reminder>";
/// Words do not end their own block.
const ESCAPED: &str = "<\\/system-reminder>";
/// How many entries back words count as heard. The search of a long turn costs no more than that, and what stays is said
/// again before it is out of sight.
const MOST_BACK: usize = 64;

#[cfg(test)]
mod tests {
    use agent_core::{AssistantPart, EntryId, History, RawJson, Response, StepRecord, UserMessage};

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
        let summary = || {
            let text = Text::new("They sailed.").unwrap();
            Entry::Boundary(Rewrite::Summary { text, kept_from: EntryId::at(0), strip_reasoning: false })
        };
        let cleared = || {
            let boundary = RawJson::parse(r#"{"boundary":{"cleared":{"results_to":0,"keep_bytes":9}}}"#);
            boundary.unwrap().to::<Entry>().unwrap()
        };
        check(&["a"], vec![], true);
        check(&[], vec![user("Go."), kept(&["a"])], false);
        check(&["a"], vec![user("Go."), kept(&["a"])], false);
        check(&["a"], vec![user("Go."), kept(&["a"]), step(), cleared(), step()], false);
        // The user spoke, other words were said, or a summary may have swallowed them.
        check(&["a"], vec![kept(&["a"]), user("Go.")], true);
        check(&["a"], vec![kept(&["a"]), step(), kept(&["b"])], true);
        check(&["a"], vec![kept(&["a"]), step(), summary()], true);
        let far = |steps: usize| std::iter::once(kept(&["a"])).chain((0..steps).map(|_| step())).collect();
        check(&["a"], far(MOST_BACK - 1), false);
        check(&["a"], far(MOST_BACK), true);
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
}
