//! What a step of an agent costs, beside a floor that does only what it must.
//!
//! `cargo xtask bench` runs this program in release. It starts itself again for each part of a measurement: once as
//! the model's server (`mock`), and for each client and length of a run as that client (`client FORM …`), so that
//! neither counts what the other does. Preparing needs no server (`prepare KIND MESSAGES STEPS`), nor do
//! tool calls (`tools TOOL bare|whole STEPS CALLS`).

#![expect(
    clippy::disallowed_methods,
    reason = "a developer's program: it owns its clock, its environment and the files of the checkout"
)]

#[path = "../../../crates/agent/examples/bench/mod.rs"]
mod bench;
mod benches;
mod builds;
mod child;
mod counting;
mod divan;
mod figures;
mod floor;
mod forms;
mod machine;
mod mock;
mod options;
mod page;
mod peers;
mod prepare;
#[path = "../../../crates/agent-prepare/benches/session/mod.rs"]
mod prepared_session;
mod sessions;
mod sse;
mod step;
mod store;
mod tools;

use std::io::Write;
use std::process::ExitCode;

use crate::options::Options;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["mock"] => mock::run(),
        ["client", form, rest @ ..] => forms::run(form, rest),
        ["prepare", kind, messages, steps] => prepare::run([kind, messages, steps]),
        ["tools", subject, way, steps, calls] => tools::run([subject, way, steps, calls]),
        _ => Options::parse(&words).and_then(|options| benches::run(&options, &mut std::io::stdout())),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            // With standard error closed, the exit code alone has to tell.
            let _ = writeln!(std::io::stderr(), "bench: {fault}");
            ExitCode::FAILURE
        }
    }
}
