//! Faults that are no kill: each a scenario, what must come of it, and what did.

mod disk;
mod torn;
mod workers;

use std::io::Write;

use crate::Fault;
use crate::stepped::Whole;

/// What a scenario showed.
pub(crate) enum Shown {
    /// As expected, in words.
    As(String),
    /// Not tried here, and why.
    Skipped(String),
}

/// Refuses what is not as expected.
pub(crate) fn must(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), Fault> {
    if holds { Ok(()) } else { Err(otherwise().into()) }
}

pub(crate) async fn all(wholes: &[Whole], out: &mut dyn Write) -> Result<Vec<String>, Fault> {
    let [work, park] = wholes else { return Err("the cases need both plots".into()) };
    let (full, read_only, locked, torn) =
        tokio::join!(disk::full(), disk::read_only(work), disk::locked(work), torn::torn(work));
    let (back, forth, two, stale, ended) = tokio::join!(
        workers::clock_jump(work, park, -DAY_MS),
        workers::clock_jump(work, park, DAY_MS),
        workers::two(),
        workers::stale(),
        workers::asked_to_end(),
    );
    let rows = [
        ("disk full", "a clear error; the last commit loads; with room it goes on", full),
        ("read-only files", "a clear error and nothing written; writable again, it goes on", read_only),
        ("locked database", "an error after the busy timeout; unlocked, it goes on", locked),
        ("torn write-ahead log", "the state of the last whole commit; it goes on from there", torn),
        ("clock a day back", "nothing expires or repeats", back),
        ("clock a day ahead", "nothing expires or repeats", forth),
        ("two workers", "the second is refused at once, and takes over at once when the first is dead", two),
        ("stale worker", "its commit is refused by epoch", stale),
        ("SIGTERM", "it ends by itself, and the session is free at once", ended),
    ];
    let mut faults = Vec::new();
    for (name, expect, shown) in rows {
        match shown {
            Ok(Shown::As(words)) => writeln!(out, "ok       {name}: {expect} -- {words}")?,
            Ok(Shown::Skipped(why)) => writeln!(out, "skipped  {name}: {why}")?,
            Err(error) => {
                writeln!(out, "FAILED   {name}: {expect} -- {error}")?;
                faults.push(format!("{name}: {error}"));
            }
        }
    }
    Ok(faults)
}

const DAY_MS: i64 = 24 * 3_600 * 1_000;
