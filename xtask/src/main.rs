//! The workspace's own checks, run as `cargo xtask VERB`.
//!
//! The crate depends on no crate of the workspace, so that a broken workspace can still be checked. Every check
//! is a pure function over facts that were read beforehand; only `command`, `workspace` and `tidy::read` touch the
//! machine, and what makes seeds and environments for other programs: `fuzz::seeds` and `oracle`.

#![expect(
    clippy::disallowed_methods,
    reason = "a developer's program: it owns its clock, its environment and the files of the checkout"
)]

mod bench;
mod cache_audit;
mod ci;
mod command;
mod each_feature;
mod error;
mod faults;
mod fuzz;
mod layers;
mod oracle;
mod rustc;
mod tests_run;
mod tidy;
mod verb;
mod workspace;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::verb::{Breadth, Request, Verb};

/// Where a verb works and where it prints.
struct Shop<'o> {
    root: PathBuf,
    out: &'o mut dyn Write,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let mut out = io::stdout();
    let mut shop = Shop { root: workspace::root(), out: &mut out };
    match verb::parse(&args).and_then(|request| serve(request, &mut shop)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report(&error),
    }
}

fn serve(request: Request, shop: &mut Shop<'_>) -> Result<(), Error> {
    match request {
        Request::Help => Ok(writeln!(shop.out, "{}", verb::usage())?),
        Request::Fuzz(options) => {
            let start = Instant::now();
            let result = fuzz::run(&options, shop);
            writeln!(shop.out, "fuzz: {:.1}s", start.elapsed().as_secs_f64())?;
            result
        }
        Request::CacheAudit(options) => {
            let start = Instant::now();
            let result = cache_audit::run(&options, shop);
            writeln!(shop.out, "cache-audit: {:.1}s", start.elapsed().as_secs_f64())?;
            result
        }
        Request::Bench(options) => {
            let start = Instant::now();
            let result = bench::run(&options, shop);
            writeln!(shop.out, "bench: {:.1}s", start.elapsed().as_secs_f64())?;
            result
        }
        Request::Faults(options) => {
            let start = Instant::now();
            let result = faults::run(&options, shop);
            writeln!(shop.out, "faults: {:.1}s", start.elapsed().as_secs_f64())?;
            result
        }
        Request::Run { verb: Verb::Ci, breadth } => ci::run(breadth, shop),
        Request::Run { verb, breadth } => {
            let (result, spent) = timed(verb, breadth, shop);
            writeln!(shop.out, "{}: {:.1}s", verb.name(), spent.as_secs_f64())?;
            result
        }
    }
}

/// Runs one verb and says how long it took, whether or not it passed.
fn timed(verb: Verb, breadth: Breadth, shop: &mut Shop<'_>) -> (Result<(), Error>, Duration) {
    let start = Instant::now();
    let result = match verb {
        Verb::Fmt => rustc::fmt(shop),
        Verb::Clippy => rustc::clippy(shop),
        Verb::Layers => layers::run(shop),
        Verb::Tidy => tidy::run(shop),
        Verb::Test => tests_run::run(breadth, shop),
        Verb::Doc => rustc::doc(shop),
        Verb::EachFeature => each_feature::run(shop),
        Verb::CacheAudit => cache_audit::run(&cache_audit::Options::default(), shop),
        Verb::Faults => faults::run(&faults::Options::gate(), shop),
        Verb::Fuzz => fuzz::run(&fuzz::Options::quick(), shop),
        Verb::Ci => ci::run(breadth, shop),
        Verb::Bench => bench::run(&bench::Options::gate(), shop),
        Verb::Oracle => oracle::run(shop),
    };
    (result, start.elapsed())
}

fn report(error: &Error) -> ExitCode {
    let code = if matches!(error, Error::Usage { .. }) { 2 } else { 1 };
    if !matches!(error, Error::Ci) {
        // With standard error closed, the exit code alone has to tell.
        let _ = writeln!(io::stderr(), "xtask: {error}");
    }
    ExitCode::from(code)
}
