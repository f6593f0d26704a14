//! The clients by name, and what one of them says when it is done.

use std::io::Write;
use std::sync::Arc;

use serde::Serialize;

use crate::bench::{Fault, Form, Job, Measured};
use crate::counting::{self, counts};
use crate::floor::{self, Join};
use crate::store::stored::{self, Stored};

/// Floors first; each is one line of the table.
pub(crate) const FORMS: [&str; 5] = [FLOOR, SEGMENTS, UNDER_TEST, WITH_STORE, "agent-parts"];
/// What the others are measured by.
pub(crate) const FLOOR: &str = "floor-fragments";
/// What many sessions are measured by.
pub(crate) const SEGMENTS: &str = "floor-segments";
/// What the limits are about.
pub(crate) const UNDER_TEST: &str = "agent-memory";
/// The same with each step on disk.
pub(crate) const WITH_STORE: &str = "agent-sqlite";

/// The closing line of a client that is counted.
#[derive(Serialize)]
struct Line {
    #[serde(flatten)]
    measured: Measured,
    allocations: u64,
    allocated_bytes: u64,
    /// The most bytes that were live at once, beyond those that were before.
    live_peak: u64,
    stored: Option<Stored>,
}

/// Runs one client as this process and prints its line.
pub(crate) fn run(form: &str, words: &[&str]) -> Result<(), Fault> {
    let mut job = Job::parse(words, &|name| std::env::var(name).ok())?;
    job.live = counting::live;
    if std::env::var_os("BENCH_KEEP").is_some() {
        counting::watch();
    }
    let job = Arc::new(job);
    let folder = tempfile::tempdir()?;
    let (before, live_before) = (counts(), counting::live());
    let measured = match form {
        FLOOR => floor::measure(FLOOR, Join::Fragments, &job)?,
        SEGMENTS => floor::measure(SEGMENTS, Join::Segments, &job)?,
        UNDER_TEST => Form::Memory.measure(&job)?,
        WITH_STORE => Form::Sqlite(folder.path().to_path_buf()).measure(&job)?,
        "agent-parts" => Form::Parts.measure(&job)?,
        other => {
            return Err(format!("there is no client `{other}`; take one of {}", FORMS.join(", ")).into());
        }
    };
    let after = counts();
    let line = Line {
        measured,
        allocations: after.allocations - before.allocations,
        allocated_bytes: after.bytes - before.bytes,
        live_peak: counting::peak().saturating_sub(live_before),
        stored: (form == WITH_STORE).then(|| stored::look(folder.path())).transpose()?,
    };
    writeln!(std::io::stdout(), "{}", serde_json::to_string(&line)?)?;
    Ok(())
}
