//! Tools change the todo list at any step; it cannot stand in a static block.
use agent_core::Slots;
use agent_prompt::{Fragment, Layer, Static};

fn main() {
    let slots = Slots::default();
    let _ = Fragment::<Static>::new(Layer::Session, "todos", slots.todos.as_slice());
}
