//! State of the framework, put back behind a boundary from where it is kept, never from a summary (requirement P14).

use agent_core::{Note, NoteKind, Rewrite, Slots, Text, Todo, TodoStatus};

/// The notes that follow a boundary.
pub(super) fn notes(rewrite: &Rewrite, slots: &Slots) -> Vec<Note> {
    match rewrite {
        // The calls that wrote the list are still shown.
        Rewrite::Cleared { .. } => Vec::new(),
        Rewrite::Summary { .. } => todos(&slots.todos).into_iter().collect(),
    }
}

fn todos(todos: &[Todo]) -> Option<Note> {
    if todos.is_empty() {
        return None;
    }
    let lines = todos.iter().map(|todo| format!("- [{}] {}: {}", status(todo.status), todo.id, todo.text));
    let list = lines.collect::<Vec<_>>().join("\n");
    let words = format!(
        "<system-reminder>\nThe todo list as it stands. What is done stays done.\n{list}\nFiles count as unread from here on: read a file again before you change it.\n</system-reminder>"
    );
    Text::new(words).map(|text| Note { kind: NoteKind::State, text })
}

fn status(status: TodoStatus) -> &'static str {
    match status {
        TodoStatus::Pending => "pending",
        TodoStatus::InProgress => "in_progress",
        TodoStatus::Done => "done",
    }
}
