//! What preparing a step costs: one new entry, the cascade's decision and every shipped stage, in short sessions and long.
//!
//! `cargo bench -p agent-prepare --bench prepare`; `cargo xtask bench prepare` puts it on a page and counts instructions.

#![expect(clippy::unwrap_used, reason = "a bench has nobody to hand an error to")]

mod session;

use std::fmt;

use divan::Bencher;

use session::{Kind, Session};

fn main() {
    divan::main();
}

/// Messages before the steps that are measured.
const LENGTHS: [usize; 2] = [100, 5_000];

#[divan::bench(args = cases(), sample_count = 50, sample_size = 1)]
fn step(bencher: Bencher<'_, '_>, case: &Case) {
    let mut session = Session::new(case.kind, case.messages).unwrap();
    bencher.bench_local(|| session.step().unwrap());
}

/// A kind of session, and how long it is.
struct Case {
    kind: Kind,
    messages: usize,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.name(), self.messages)
    }
}

fn cases() -> Vec<Case> {
    let of = |kind| LENGTHS.map(|messages| Case { kind, messages });
    Kind::ALL.into_iter().flat_map(of).collect()
}
