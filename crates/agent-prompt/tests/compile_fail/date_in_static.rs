//! A date lasts a turn at most; it cannot stand in a static block.
use agent_prompt::{Date, Fragment, Layer, Static};

fn main() {
    let today = Date::new(2026, 11, 30).unwrap();
    let _ = Fragment::<Static>::new(Layer::Session, "date", &today);
}
