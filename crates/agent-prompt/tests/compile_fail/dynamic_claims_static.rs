//! What is rendered at run time cannot claim to be static.
use agent_prompt::{Dynamic, Static};

struct Weather;

impl Dynamic for Weather {
    type Lasts = Static;

    fn render(&self) -> String {
        "Rain.".into()
    }
}

fn main() {}
