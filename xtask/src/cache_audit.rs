//! The scenarios of `fixtures/cache/` through the real harness, each held to its budget (requirement V3).
//!
//! This crate depends on no crate of the workspace, so the program does it: `agent cache check`. What is decided here is
//! only that there is something to play, and that something of it must fail.

use std::fs;
use std::path::Path;

use crate::Shop;
use crate::command::Call;
use crate::error::Error;

/// What to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Where a page that draws it goes.
    pub(crate) report: Option<String>,
}

/// Scenarios, relative to the checkout.
const HOME: &str = "fixtures/cache";
/// Those that are broken on purpose.
const SABOTAGE: &str = "fixtures/cache/sabotage";

pub(crate) fn run(options: &Options, shop: &mut Shop<'_>) -> Result<(), Error> {
    let count = |folder: &str| scenarios(&shop.root.join(folder));
    there_are_enough(count(HOME)?, count(SABOTAGE)?)?;
    shop.out.flush()?;
    call(options).run(&shop.root)
}

fn call(options: &Options) -> Call {
    let call = Call::cargo("run --quiet --package agent-cli -- cache check").arg(HOME);
    match &options.report {
        Some(file) => call.arg("--report").arg(file),
        None => call,
    }
}

/// A gate that looks at nothing, or that nothing ever turned red, is none.
fn there_are_enough(scenarios: usize, sabotaged: usize) -> Result<(), Error> {
    let missing = |problem: &str, next| Err(Error::Gate { problem: problem.to_owned(), next });
    match (scenarios, sabotaged) {
        (0, _) => missing(
            "no scenario in fixtures/cache",
            "write one: docs/guides/cache-scenarios.md shows how; an empty audit passes for nothing",
        ),
        (_, 0) => missing(
            "no scenario in fixtures/cache/sabotage",
            "write one that must fail, with `sabotage` and `red`: docs/testing.md lists what can be broken",
        ),
        _ => Ok(()),
    }
}

/// How many scenario files lie in a folder, not below it; none in a folder that is not there.
fn scenarios(folder: &Path) -> Result<usize, Error> {
    if !folder.exists() {
        return Ok(0);
    }
    let fault = |source| Error::Read { path: folder.to_path_buf(), source };
    let mut count = 0;
    for entry in fs::read_dir(folder).map_err(fault)? {
        let path = entry.map_err(fault)?.path();
        count += usize::from(path.extension().is_some_and(|ending| ending == "json"));
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_audit_of_nothing_fails() {
        let check = |scenarios, sabotaged, expect: &str| {
            let told = there_are_enough(scenarios, sabotaged)
                .map_or_else(|error| error.to_string(), |()| "go".into());
            assert!(told.contains(expect), "{told}");
        };
        check(0, 0, "no scenario in fixtures/cache\n");
        check(0, 3, "no scenario in fixtures/cache\n");
        check(3, 0, "no scenario in fixtures/cache/sabotage\n");
        check(1, 1, "go");
    }

    #[test]
    fn this_checkout_has_scenarios_of_both_kinds() {
        let root = crate::workspace::root();
        assert!(scenarios(&root.join(HOME)).unwrap() >= 6);
        assert!(scenarios(&root.join(SABOTAGE)).unwrap() >= 11);
        assert_eq!(scenarios(&root.join("fixtures/no-such-folder")).unwrap(), 0);
    }

    #[test]
    fn the_program_is_asked() {
        let plain = call(&Options::default()).to_string();
        assert_eq!(plain, "cargo run --quiet --package agent-cli -- cache check fixtures/cache");
        let drawn = call(&Options { report: Some("out.html".into()) }).to_string();
        assert!(drawn.ends_with("cache check fixtures/cache --report out.html"), "{drawn}");
    }
}
