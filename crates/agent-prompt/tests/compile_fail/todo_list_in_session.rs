//! Nor can the todo list stand in a session block.
use agent_core::Slots;
use agent_prompt::{Fragment, Layer, Session};

fn main() {
    let slots = Slots::default();
    let _ = Fragment::<Session>::new(Layer::Session, "todos", slots.todos.as_slice());
}
