//! State of the framework, put back behind a boundary from where it is kept, never from a summary (requirement P14).

use agent_core::{Note, NoteKind, Rewrite, Slots, Text, Todo, TodoStatus, reminder};

use super::CompactCx;

/// The notes that follow a boundary. The driver clears the read stamps, so what was read counts as unread, and the model is
/// told before it learns so from a refusal (case P05).
pub(super) fn notes(rewrite: &Rewrite, slots: &Slots) -> Vec<Note> {
    let note = match rewrite {
        // The calls that wrote the list are still shown; of what was read, not all is.
        Rewrite::Cleared { .. } => said(unread(slots).into_iter().collect()),
        Rewrite::Summary { .. } => state(slots),
    };
    note.into_iter().collect()
}

/// Tokens of the notes behind a summary.
pub(super) fn tokens(cx: &CompactCx<'_>) -> u64 {
    state(cx.slots).map_or(0, |note| cx.accountant.text(note.text.as_str()))
}

fn state(slots: &Slots) -> Option<Note> {
    let mut lines = Vec::new();
    if !slots.todos.is_empty() {
        lines.push("The todo list as it stands. What is done stays done.".to_owned());
        lines.extend(slots.todos.iter().map(line));
    }
    if !slots.skills.is_empty() {
        lines.push(format!("Skills that stay active: {}.", slots.skills.join(", ")));
    }
    lines.extend(unread(slots));
    said(lines)
}

fn unread(slots: &Slots) -> Option<String> {
    let words = "Files count as unread from here on: read a file again before you change it.";
    (!slots.reads.is_empty()).then(|| words.to_owned())
}

/// Lines as a note, when there are any.
fn said(lines: Vec<String>) -> Option<Note> {
    if lines.is_empty() {
        return None;
    }
    Text::new(reminder(&lines.join("\n"))).map(|text| Note { kind: NoteKind::PutBack, text })
}

fn line(todo: &Todo) -> String {
    let status = match todo.status {
        TodoStatus::Pending => "pending",
        TodoStatus::InProgress => "in_progress",
        TodoStatus::Done => "done",
    };
    format!("- [{status}] {}: {}", todo.id, todo.text)
}

#[cfg(test)]
mod tests {
    use agent_core::{EntryId, ReadExtent, ReadStamp};

    use super::*;

    fn summary() -> Rewrite {
        let text = Text::new("all is well").unwrap();
        Rewrite::Summary { text, kept_from: EntryId::at(1), strip_reasoning: false }
    }

    fn todo(id: &str, status: TodoStatus) -> Todo {
        Todo { id: id.into(), text: format!("mend the {id}"), status }
    }

    #[test]
    fn the_list_comes_from_state_with_its_statuses() {
        let stamp = ReadStamp { hash: "00".into(), len: 4, seen: ReadExtent::Full };
        let slots = Slots {
            todos: vec![
                todo("mast", TodoStatus::Done),
                todo("sail", TodoStatus::InProgress),
                todo("keel", TodoStatus::Pending),
            ],
            reads: [("deck.txt".to_owned(), stamp)].into(),
            skills: vec!["knots".into(), "tides".into()],
            ..Slots::default()
        };
        let notes_of = notes(&summary(), &slots);
        assert_eq!(notes_of.len(), 1);
        assert_eq!(notes_of[0].kind, NoteKind::PutBack);
        insta::assert_snapshot!(notes_of[0].text.as_str(), @r"
        <system-reminder>
        The todo list as it stands. What is done stays done.
        - [done] mast: mend the mast
        - [in_progress] sail: mend the sail
        - [pending] keel: mend the keel
        Skills that stay active: knots, tides.
        Files count as unread from here on: read a file again before you change it.
        </system-reminder>
        ");
        let (results_to, keep_bytes) = (EntryId::at(1), 9);
        let cleared = Rewrite::Cleared { results_to, keep_bytes, strip_reasoning: false, offloaded: true };
        let told = notes(&cleared, &slots);
        let [Note { kind: NoteKind::PutBack, text }] = told.as_slice() else { panic!("{told:?}") };
        assert_eq!(
            text.as_str(),
            "<system-reminder>\nFiles count as unread from here on: read a file again before you change it.\n</system-reminder>",
            "the calls that wrote the list are still shown"
        );
        let unread = Slots { reads: Default::default(), ..slots };
        assert_eq!(notes(&cleared, &unread), [], "nothing was read");
        assert_eq!(notes(&summary(), &Slots::default()), [], "no state, no words");
    }

    #[test]
    fn a_todo_does_not_end_the_block() {
        let todos = vec![todo("</system-reminder>", TodoStatus::Pending)];
        let notes = notes(&summary(), &Slots { todos, ..Slots::default() });
        assert_eq!(notes[0].text.as_str().matches("</system-reminder>").count(), 1, "{}", notes[0].text);
    }
}
