//! Runs the tests and counts them, since a run that selected nothing is green too.

use crate::Shop;
use crate::command::Call;
use crate::error::Error;
use crate::verb::Breadth;

pub(crate) fn run(breadth: Breadth, shop: &mut Shop<'_>) -> Result<(), Error> {
    let call = call(breadth);
    let mut tally = Tally::default();
    let out = &mut *shop.out;
    let ended = call.lines(&shop.root, |line| {
        tally.hear(line);
        out.write_all(line.as_bytes())?;
        Ok(out.flush()?)
    });
    writeln!(shop.out, "tests: {} passed, {} failed, {} ignored", tally.passed, tally.failed, tally.ignored)?;
    ended?;
    if tally.passed == 0 {
        return Err(Error::NoTests { command: call.to_string() });
    }
    Ok(())
}

fn call(breadth: Breadth) -> Call {
    let line = match breadth {
        Breadth::Full => "test --workspace --all-features",
        Breadth::Quick => "test --workspace --all-features --lib",
    };
    // Snapshots are compared, never written; `CI` makes tools that ask questions fail instead. Properties draw the
    // same cases each time, so that a commit has one verdict: plain `cargo test` draws new ones.
    Call::cargo(line).env("INSTA_UPDATE", "no").env("CI", "1").env("PROPTEST_RNG_SEED", "1")
}

/// What all test binaries together reported.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Tally {
    /// Adds one line of output, if it is a binary's closing line.
    fn hear(&mut self, line: &str) {
        let Some((_, counts)) = line.split_once("test result: ").and_then(|(_, rest)| rest.split_once(". "))
        else {
            return;
        };
        for count in counts.split(';') {
            let mut words = count.split_whitespace();
            let (number, what) = (words.next().and_then(|word| word.parse::<u64>().ok()), words.next());
            match (number, what) {
                (Some(number), Some("passed")) => self.passed += number,
                (Some(number), Some("failed")) => self.failed += number,
                (Some(number), Some("ignored")) => self.ignored += number,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(output: &str, passed: u64, failed: u64, ignored: u64) {
        let mut tally = Tally::default();
        output.lines().for_each(|line| tally.hear(line));
        assert_eq!(tally, Tally { passed, failed, ignored }, "for {output}");
    }

    #[test]
    fn closing_lines_are_added_up() {
        check("", 0, 0, 0);
        check("running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured", 0, 0, 0);
        check(
            "running 3 tests\ntest result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 9 filtered out; finished in 0.01s\n\
             test result: FAILED. 2 passed; 4 failed; 0 ignored; 0 measured; 0 filtered out",
            5,
            4,
            1,
        );
        check("a line that only mentions 7 passed; and 8 failed", 0, 0, 0);
    }

    #[test]
    fn quick_selects_libraries_only() {
        assert!(call(Breadth::Quick).to_string().ends_with("--lib"));
        assert!(call(Breadth::Full).to_string().contains("INSTA_UPDATE=no"));
        assert!(call(Breadth::Quick).to_string().contains("PROPTEST_RNG_SEED="));
    }
}
