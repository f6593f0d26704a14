//! Words for the person beside what a command prints: on standard error, once.

use std::io::{self, Write};

use crate::settings::Settings;
use crate::show::plain;

/// A note on a line of its own.
pub(crate) fn note(words: &str) -> io::Result<()> {
    writeln!(io::stderr(), "note: {}", plain(words).replace('\n', "↵"))
}

/// What of a workspace's own settings does not hold.
pub(crate) fn withheld(settings: &Settings) -> io::Result<()> {
    settings.withheld().map_or(Ok(()), |words| note(&words))
}
