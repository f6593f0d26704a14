//! A borrowed text is not known to be the same in every session; it cannot stand in a static block.
use agent_prompt::{Fragment, Layer, Static};

fn main() {
    let user = String::from("ada");
    let _ = Fragment::<Static>::new(Layer::Session, "user", user.as_str());
}
