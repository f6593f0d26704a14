//! What really happened, a line each: a file that outlives the process.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;

/// The file of notes. Each line is one write to a file that is only appended to, so a killed process leaves whole lines.
#[derive(Clone, Debug)]
pub(super) struct Notes(pub(super) PathBuf);

impl Notes {
    /// `begin`, `end` or `kept`, and the call.
    pub(super) fn add(&self, what: &str, call: &str) -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).create(true).open(&self.0)?;
        file.write_all(format!("{what} {call}\n").as_bytes())
    }
}
