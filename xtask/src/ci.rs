//! All verbs in order, stopping at the first that fails, with a table of seconds at the end.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::verb::{Breadth, Verb};
use crate::{Shop, timed};

pub(crate) fn run(breadth: Breadth, shop: &mut Shop<'_>) -> Result<(), Error> {
    let start = Instant::now();
    let mut log = Log { planned: order(breadth).len(), ..Log::default() };
    for &verb in order(breadth) {
        writeln!(shop.out, "\n== {}", verb.name())?;
        shop.out.flush()?;
        let (result, spent) = timed(verb, breadth, shop);
        log.ran.push(Ran { verb, spent, passed: result.is_ok() });
        if let Err(error) = result {
            writeln!(shop.out, "\nstopped at {}: {error}", verb.name())?;
            break;
        }
    }
    writeln!(shop.out, "\n{}", log.table(start.elapsed()))?;
    writeln!(shop.out, "{}", log.summary())?;
    shop.out.flush()?;
    if log.ran.iter().all(|ran| ran.passed) { Ok(()) } else { Err(Error::Ci) }
}

fn order(breadth: Breadth) -> &'static [Verb] {
    match breadth {
        Breadth::Full => FULL,
        Breadth::Quick => QUICK,
    }
}

/// What has run so far.
#[derive(Debug, Default)]
struct Log {
    planned: usize,
    ran: Vec<Ran>,
}

#[derive(Debug)]
struct Ran {
    verb: Verb,
    spent: Duration,
    passed: bool,
}

impl Log {
    fn table(&self, total: Duration) -> String {
        let mut text = String::new();
        for Ran { verb, spent, passed } in &self.ran {
            let mark = if *passed { "" } else { "  failed" };
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{:<13}{:>8.1}s{mark}", verb.name(), spent.as_secs_f64());
        }
        let _ = write!(text, "{:<13}{:>8.1}s", "total", total.as_secs_f64());
        text
    }

    fn summary(&self) -> String {
        let passed = self.ran.iter().filter(|ran| ran.passed).count();
        let failed = self.ran.len() - passed;
        match self.planned - self.ran.len() {
            0 => format!("ci: {passed} passed, {failed} failed"),
            skipped => format!("ci: {passed} passed, {failed} failed, {skipped} not run"),
        }
    }
}

const FULL: &[Verb] = &[
    Verb::Fmt,
    Verb::Clippy,
    Verb::Layers,
    Verb::Tidy,
    Verb::Test,
    Verb::Doc,
    Verb::EachFeature,
    Verb::CacheAudit,
    // Always the quick one here: every point, and few random moments.
    Verb::Faults,
    // Always the quick one here: seconds a target, on any compiler.
    Verb::Fuzz,
    Verb::Bench,
];

const QUICK: &[Verb] = &[Verb::Fmt, Verb::Clippy, Verb::Layers, Verb::Tidy, Verb::Test];

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(verb: Verb, tenths: u64, passed: bool) -> Ran {
        Ran { verb, spent: Duration::from_millis(tenths * 100), passed }
    }

    #[test]
    fn a_green_run_counts_its_verbs() {
        let log = Log { planned: 2, ran: vec![ran(Verb::Fmt, 4, true), ran(Verb::EachFeature, 1234, true)] };
        let table = log.table(Duration::from_secs(124));
        assert_eq!(table, "fmt               0.4s\neach-feature    123.4s\ntotal           124.0s");
        assert_eq!(log.summary(), "ci: 2 passed, 0 failed");
    }

    #[test]
    fn a_red_run_names_the_failure_and_what_was_left() {
        let log = Log { planned: 7, ran: vec![ran(Verb::Fmt, 4, true), ran(Verb::Clippy, 9, false)] };
        assert!(log.table(Duration::from_secs(2)).contains("clippy            0.9s  failed"));
        assert_eq!(log.summary(), "ci: 1 passed, 1 failed, 5 not run");
    }
}
