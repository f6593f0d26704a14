//! A view lends entries; nothing can be added to what it lends.
use agent_core::{Entry, History, UserMessage};

fn main() {
    let history = History::new();
    history.view().entries().push(Entry::User(UserMessage::text("smuggled in").unwrap()));
}
