//! What the runs of a campaign came to.

use std::collections::BTreeMap;
use std::fmt;

/// Runs, and the violations among them by their kind.
#[derive(Debug, Default)]
pub(super) struct Report {
    runs: usize,
    found: BTreeMap<String, Vec<String>>,
}

impl Report {
    /// Counts a run. The kind of a violation is what stands before its first colon.
    pub(super) fn add(&mut self, skipped: u64, end: Result<(), String>) {
        self.runs += 1;
        if let Err(violation) = end {
            let kind = violation.split(':').next().unwrap_or_default().to_owned();
            self.found.entry(kind).or_default().push(format!("at {skipped}: {violation}"));
        }
    }

    pub(super) fn runs(&self) -> u64 {
        self.runs as u64
    }

    pub(super) fn violations(&self) -> usize {
        self.found.values().map(Vec::len).sum()
    }

    pub(super) fn of(&self, kind: &str) -> usize {
        self.found.get(kind).map_or(0, Vec::len)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} runs, {} violations", self.runs, self.violations())?;
        for (kind, found) in &self.found {
            write!(
                f,
                "\n  {} {kind}, such as {:.400}",
                found.len(),
                found.first().map_or("", String::as_str)
            )?;
        }
        Ok(())
    }
}
