//! While a prompt is put together the history cannot grow.
use agent_core::{Entry, History, UserMessage};

fn main() {
    let mut history = History::new();
    let draft = history.draft();
    history.push(Entry::User(UserMessage::text("too early").unwrap())).unwrap();
    drop(draft);
}
