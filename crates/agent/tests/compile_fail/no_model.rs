//! An agent without a model cannot be built.
use agent::Agent;

fn main() {
    let _ = Agent::builder().system("Be brief.").build();
}
