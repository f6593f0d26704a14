//! A view lends entries; it cannot change one (the trap of hooks that are handed a mutable list).
use agent_core::{Entry, History, UserMessage};

fn main() {
    let history = History::new();
    let view = history.view();
    if let Some(Entry::User(message)) = view.entries().first() {
        *message = UserMessage::text("rewritten").unwrap();
    }
}
