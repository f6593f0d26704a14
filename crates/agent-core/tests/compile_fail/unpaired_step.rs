//! A step record has no public fields: the pairing of calls and results cannot be gone around.
use agent_core::{Response, StepRecord};

fn main() {
    let _ = StepRecord { response: Response::of(vec![]).into(), results: vec![].into() };
}
