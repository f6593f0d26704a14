//! The fuzz targets of agent-providers, each for a bounded time: by cargo-fuzz, or by a runner of our own.
//!
//! Coverage guides only cargo-fuzz, which needs a nightly compiler. The other runner changes seeds blindly, with
//! the same checks, the same inputs in the same order on every machine, and nothing to install.

mod guided;
mod seeds;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::Shop;
use crate::command::Call;
use crate::error::Error;

/// The detached workspace of the targets.
pub(crate) const MANIFEST: &str = "crates/agent-providers/fuzz/Cargo.toml";
const HOME: &str = "crates/agent-providers/fuzz";

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// For each target.
    pub(crate) time: Duration,
    /// One target, or all.
    pub(crate) target: Option<String>,
    pub(crate) runner: Runner,
}

/// Who makes the inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runner {
    /// cargo-fuzz where it is installed.
    Best,
    /// Our own, whatever is installed.
    Stable,
}

impl Options {
    /// A run that fits into every check of a change, and is the same on every machine.
    pub(crate) fn quick() -> Self {
        Options { time: Duration::from_secs(3), target: None, runner: Runner::Stable }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options { time: Duration::from_secs(30), target: None, runner: Runner::Best }
    }
}

pub(crate) fn run(options: &Options, shop: &mut Shop<'_>) -> Result<(), Error> {
    // The checks are tested before they test.
    cargo("test --quiet --lib", &shop.root).run(&shop.root)?;
    let listed = runner("list", options.runner, &shop.root).capture(&shop.root)?;
    let targets = chosen(&listed, &files(&shop.root)?, options.target.as_deref())?;
    let guided = options.runner == Runner::Best && guided::is_installed(&shop.root);
    writeln!(shop.out, "{}", how(options.runner, guided))?;
    shop.out.flush()?;
    for target in &targets {
        let corpus = seeds::fill(&shop.root, target)?;
        if guided {
            guided::run(target, options.time, &corpus, shop)?;
        } else {
            let (seconds, artifacts) = (options.time.as_secs(), shop.root.join(HOME).join("artifacts"));
            let job = format!("run {target} {seconds}");
            let call = runner(&job, options.runner, &shop.root);
            call.arg(shown(&corpus)).arg(shown(&artifacts)).run(&shop.root)?;
        }
    }
    writeln!(shop.out, "fuzz: {} targets held", targets.len())?;
    Ok(())
}

/// A cargo call in the detached workspace; what both workspaces use is compiled once.
pub(crate) fn cargo(line: &str, root: &Path) -> Call {
    let call = Call::cargo(line).arg("--manifest-path").arg(MANIFEST);
    share_target(call, root)
}

fn share_target(call: Call, root: &Path) -> Call {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(_) => call,
        None => call.env("CARGO_TARGET_DIR", shown(&root.join("target"))),
    }
}

/// Our own runner; a long run is worth an optimised build.
fn runner(job: &str, runner: Runner, root: &Path) -> Call {
    let profile = if runner == Runner::Best { " --release" } else { "" };
    let call = cargo(&format!("run --quiet --bin mutate{profile}"), root).arg("--");
    job.split_whitespace().fold(call, Call::arg)
}

fn how(runner: Runner, guided: bool) -> &'static str {
    match (runner, guided) {
        (Runner::Best, true) => "with coverage guidance, by cargo-fuzz",
        (Runner::Best, false) => {
            "without coverage guidance: cargo-fuzz or a nightly toolchain is not installed (rustup toolchain install \
             nightly; cargo install cargo-fuzz)"
        }
        (Runner::Stable, _) => "without coverage guidance: a quick run makes its inputs itself",
    }
}

/// The targets to run, of those that the runner lists; one that is listed without a file, or the other way round, is a
/// fault.
fn chosen(listed: &str, files: &BTreeSet<String>, wanted: Option<&str>) -> Result<Vec<String>, Error> {
    let names: BTreeSet<String> = listed.lines().map(str::to_owned).collect();
    if let Some(lost) = names.symmetric_difference(files).next() {
        return Err(Error::Gate {
            problem: format!("the target {lost} is half there"),
            next: "give it a file in fuzz_targets/, a [[bin]] in fuzz/Cargo.toml and a line in TARGETS of fuzz/src/lib.rs",
        });
    }
    let is_wanted = |name: &&str| wanted.is_none_or(|wanted| wanted == *name);
    let chosen: Vec<String> = listed.lines().filter(is_wanted).map(str::to_owned).collect();
    if chosen.is_empty() {
        return Err(Error::Gate {
            problem: format!("no fuzz target was run: none of {} fits", names.len()),
            next: "see the targets with: cargo run --manifest-path crates/agent-providers/fuzz/Cargo.toml --bin mutate -- list",
        });
    }
    Ok(chosen)
}

/// The names of the files in `fuzz_targets/`.
fn files(root: &Path) -> Result<BTreeSet<String>, Error> {
    let folder = root.join(HOME).join("fuzz_targets");
    let fault = |source| Error::Read { path: folder.clone(), source };
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(&folder).map_err(fault)? {
        let name = entry.map_err(fault)?.file_name();
        names.extend(name.to_string_lossy().strip_suffix(".rs").map(str::to_owned));
    }
    Ok(names)
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(listed: &str, files: &str, wanted: Option<&str>, expect: Result<&str, &str>) {
        let files = files.split_whitespace().map(str::to_owned).collect();
        match (chosen(listed, &files, wanted), expect) {
            (Ok(targets), Ok(expect)) => assert_eq!(targets.join(" "), expect),
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (targets, expect) => panic!("{targets:?} is not {expect:?}"),
        }
    }

    #[test]
    fn targets_are_chosen_and_none_is_a_fault() {
        check("b\na\n", "a b", None, Ok("b a"));
        check("a\nb\n", "a b", Some("b"), Ok("b"));
        check("", "", None, Err("no fuzz target was run: none of 0"));
        check("a\n", "a", Some("z"), Err("no fuzz target was run: none of 1"));
        check("a\n", "a b", None, Err("the target b is half there"));
        check("a\nb\n", "a", None, Err("TARGETS of fuzz/src/lib.rs"));
    }

    #[test]
    fn this_checkout_has_targets() {
        let files = files(&crate::workspace::root()).unwrap();
        assert!(files.contains("decode_anthropic") && files.len() >= 8, "{files:?}");
    }
}
