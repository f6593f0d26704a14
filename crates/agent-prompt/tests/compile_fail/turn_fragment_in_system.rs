//! A turn fragment becomes a message; it cannot be added to the system prompt.
use agent_prompt::{Fragment, Layer, Prompt, Turn, Value};

fn main() {
    let goal = Fragment::<Turn>::new(Layer::Session, "goal", Value::turn("Fix issue 7.")).unwrap();
    Prompt::default().add(goal);
}
