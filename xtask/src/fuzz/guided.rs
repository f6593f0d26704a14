//! One target under cargo-fuzz, with what libFuzzer says cut down to what matters.

use std::path::Path;
use std::time::{Duration, Instant};

use super::{HOME, share_target, shown};
use crate::Shop;
use crate::command::Call;
use crate::error::Error;

pub(super) fn is_installed(root: &Path) -> bool {
    Call::program("rustup", "run nightly cargo fuzz --version").passes(root)
}

/// Runs a target for a time. New inputs are kept in `fuzz/found/`, so that the seeds stay the same everywhere.
pub(super) fn run(target: &str, time: Duration, corpus: &Path, shop: &mut Shop<'_>) -> Result<(), Error> {
    let found = shop.root.join(HOME).join("found").join(target);
    std::fs::create_dir_all(&found).map_err(|source| Error::Write { path: found.clone(), source })?;
    let line = format!("run nightly cargo fuzz run --fuzz-dir {HOME} {target}");
    let call = share_target(Call::program("rustup", &line), &shop.root)
        .arg(shown(&found))
        .arg(shown(corpus))
        .arg("--")
        .arg(format!("-max_total_time={}", time.as_secs()))
        .arg("-timeout=20")
        .arg("-print_final_stats=1");
    let start = Instant::now();
    let output = call.output(&shop.root)?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let lines: Vec<&str> = said.lines().collect();
        for line in lines.iter().skip(lines.len().saturating_sub(LAST_WORDS)) {
            writeln!(shop.out, "{line}")?;
        }
        return call.judge(output.status);
    }
    let executions = executions(&said).ok_or_else(|| Error::Gate {
        problem: format!("{target}: cargo-fuzz passed, but tells of no execution"),
        next: "run it by hand, as told in docs/testing.md, and look at what it says",
    })?;
    // Most of the time beyond the limit went into compiling.
    writeln!(shop.out, "{target}: {:.1}s, {executions} executions", start.elapsed().as_secs_f64())?;
    Ok(shop.out.flush()?)
}

/// How many inputs libFuzzer tried; none is as bad as no word about it.
fn executions(said: &str) -> Option<u64> {
    let mut counts = said.lines().filter_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    counts.next()?.trim().parse().ok().filter(|count| *count > 0)
}

/// Lines of a failure that are shown: the panic, the input and the command to repeat it.
const LAST_WORDS: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executions_are_read_and_none_is_a_fault() {
        assert_eq!(executions("x\nstat::number_of_executed_units: 128\n"), Some(128));
        assert_eq!(executions("stat::number_of_executed_units: 0\n"), None);
        assert_eq!(executions("Done 5 runs"), None);
    }
}
