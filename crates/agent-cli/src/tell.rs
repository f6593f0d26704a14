//! Words for the person beside what a command prints: on standard error, once.

use std::io::{self, Write};

use agent::Skills;

use crate::settings::Settings;
use crate::show::plain;

/// A note on a line of its own.
pub(crate) fn note(words: &str) -> io::Result<()> {
    writeln!(io::stderr(), "note: {}", plain(words).replace('\n', "↵"))
}

/// That a search which is wanted is not to be had.
pub(crate) fn web_search(is_wanted: bool, provider: &str) -> io::Result<()> {
    if !is_wanted || agent::builtins::web_search(provider).is_some() {
        return Ok(());
    }
    note(&format!(
        "{provider} offers no search of the web, so the agent has none; go on without, or choose another model"
    ))
}

/// What of a workspace's own settings does not hold.
pub(crate) fn withheld(settings: &Settings) -> io::Result<()> {
    settings.withheld().map_or(Ok(()), |words| note(&words))
}

/// Skills that cannot be taken.
pub(crate) fn skipped(skills: &Skills) -> io::Result<()> {
    let skipped = skills.skipped();
    for one in skipped.iter().take(SKIPPED) {
        note(&one.to_string())?;
    }
    match skipped.len().saturating_sub(SKIPPED) {
        0 => Ok(()),
        more => note(&format!("{more} more skills are left out")),
    }
}

/// Skills that are told of one by one.
const SKIPPED: usize = 10;
