//! The tool that keeps the todo list of the session.

use std::collections::BTreeSet;
use std::sync::Arc;

use agent_core::{Todo, TodoStatus};
use agent_tools::Call;
use agent_tools::{Access, Tool, ToolConfig, ToolError};

use crate::built;

/// Replaces the todo list, which survives compaction (requirement T8).
pub fn todo() -> Arc<dyn Tool> {
    let write = |call: Call, input: Input| async move {
        let items = checked(input.items)?;
        let text = show(&items);
        call.cx.slots.update(|slots| slots.todos = items);
        Ok(text)
    };
    built(ToolConfig::new("todo", DESCRIPTION.trim_end(), Access::Session, write).idempotent())
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Input {
    /// The whole list in the order of work; it replaces the one before.
    items: Vec<Item>,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Item {
    /// A short name that stays the same from call to call, for example `1`.
    id: String,
    /// What is to be done.
    text: String,
    /// How far it is.
    status: Status,
}

#[derive(Clone, Copy, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    // Many models know it by the other word.
    #[serde(alias = "completed")]
    Done,
}

fn checked(items: Vec<Item>) -> Result<Vec<Todo>, ToolError> {
    let refuse = |why: String| {
        Err(ToolError::failed(format!("{why} The list was not changed; send the whole list again.")))
    };
    let mut ids = BTreeSet::new();
    let mut at_work: Option<&str> = None;
    for item in &items {
        if item.id.trim().is_empty() || item.text.trim().is_empty() {
            return refuse("Every item needs an id and a text that are not blank.".to_owned());
        }
        if !ids.insert(item.id.as_str()) {
            return refuse(format!("Two items have the id `{}`; give each its own.", item.id));
        }
        if matches!(item.status, Status::InProgress) {
            if let Some(other) = at_work {
                return refuse(format!(
                    "Items `{other}` and `{}` are both in_progress; only one may be.",
                    item.id
                ));
            }
            at_work = Some(&item.id);
        }
    }
    let todo = |item: Item| Todo { id: item.id, text: item.text, status: item.status.into() };
    Ok(items.into_iter().map(todo).collect())
}

fn show(items: &[Todo]) -> String {
    if items.is_empty() {
        return "The todo list is empty.".to_owned();
    }
    let line = |item: &Todo| {
        let mark = match item.status {
            TodoStatus::Pending => ' ',
            TodoStatus::InProgress => '>',
            TodoStatus::Done => 'x',
        };
        format!("[{mark}] {}: {}\n", item.id, item.text)
    };
    let done = items.iter().filter(|item| item.status == TodoStatus::Done).count();
    format!("{}{done} of {} done.", items.iter().map(line).collect::<String>(), items.len())
}

impl From<Status> for TodoStatus {
    fn from(status: Status) -> Self {
        match status {
            Status::Pending => Self::Pending,
            Status::InProgress => Self::InProgress,
            Status::Done => Self::Done,
        }
    }
}

const DESCRIPTION: &str = include_str!("../prompt/todo.md");
