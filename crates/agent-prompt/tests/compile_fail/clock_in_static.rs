//! A text with the time in it is made at run time; it cannot stand in a static block.
use agent_prompt::{Fragment, Layer, Static};

fn main() {
    let now = std::time::SystemTime::now();
    let _ = Fragment::<Static>::new(Layer::Session, "clock", format!("The time is {now:?}."));
}
