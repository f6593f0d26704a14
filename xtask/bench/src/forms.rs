//! The clients by name, and what one of them says when it is done.

use std::io::Write;
use std::sync::Arc;

use serde::Serialize;

use crate::bench::{Fault, Form, Job, Measured};
use crate::counting::counts;
use crate::floor::{self, Join};

/// Floors first; each is one line of the table.
pub(crate) const FORMS: [&str; 5] = [FLOOR, "floor-segments", UNDER_TEST, "agent-sqlite", "agent-parts"];
/// What the others are measured by.
pub(crate) const FLOOR: &str = "floor-fragments";
/// What the limits are about.
pub(crate) const UNDER_TEST: &str = "agent-memory";

/// The closing line of a client that is counted.
#[derive(Serialize)]
struct Line {
    #[serde(flatten)]
    measured: Measured,
    allocations: u64,
    allocated_bytes: u64,
}

/// Runs one client as this process and prints its line.
pub(crate) fn run(form: &str, words: &[&str]) -> Result<(), Fault> {
    let job = Arc::new(Job::parse(words, &|name| std::env::var(name).ok())?);
    let folder = tempfile::tempdir()?;
    let before = counts();
    let measured = match form {
        FLOOR => floor::measure(FLOOR, Join::Fragments, &job)?,
        "floor-segments" => floor::measure("floor-segments", Join::Segments, &job)?,
        UNDER_TEST => Form::Memory.measure(&job)?,
        "agent-sqlite" => Form::Sqlite(folder.path().to_path_buf()).measure(&job)?,
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
    };
    writeln!(std::io::stdout(), "{}", serde_json::to_string(&line)?)?;
    Ok(())
}
