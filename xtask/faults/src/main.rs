//! What is left of an agent that was killed: real processes, real files, and SIGKILL at every point that matters.
//!
//! `cargo xtask faults` runs this program. It starts itself again as the agent (`child JOB`), tells it over HTTP what a
//! model would say, kills it, starts another one on the same folder, and looks at what both left.

#![expect(
    clippy::disallowed_methods,
    reason = "a developer's program: it owns its clock, its environment and the files that it makes"
)]

mod cases;
mod check;
mod child;
mod figures;
mod look;
mod options;
mod place;
mod plot;
mod random;
mod report;
mod sizes;
mod stepped;
mod trial;

use std::io::Write;
use std::process::ExitCode;

use crate::options::Options;

/// What can go wrong, in words.
pub(crate) type Fault = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["child", job] => child::run(job),
        _ => Options::parse(&words).and_then(|options| report::run(&options, &mut std::io::stdout())),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            // With standard error closed, the exit code alone has to tell.
            let _ = writeln!(std::io::stderr(), "faults: {fault}");
            ExitCode::FAILURE
        }
    }
}
