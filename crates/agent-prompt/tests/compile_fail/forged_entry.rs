//! The ways into a fragment are closed: no type of one's own can be made to enter a static block.
use agent_prompt::{Enters, Static};

struct Clock;

impl Enters<Static> for Clock {}

fn main() {}
