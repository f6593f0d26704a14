//! `agent cache`: requests that were sent, held against each other, and scenarios played to see what they would cost.
//!
//! `audit` reads bodies. `check` plays the scenarios of `scenario`: it is the world (`world`: the provider and the
//! time), and the agent plays its part in processes of its own (`play`). What was asked becomes rows and findings
//! (`verdict`), told as text (`tell`) or drawn as a page (`report`).

mod audit;
mod check;
mod filler;
mod play;
mod report;
mod sabotage;
mod scenario;
mod tell;
mod verdict;
mod world;

use agent_cache::RuleBook;

use crate::error::CliError;

pub(crate) use audit::audit;
pub(crate) use check::check;
pub(crate) use play::play;

/// Refuses a provider without rules: a misspelt one would keep nothing, and all numbers would be those of no cache.
pub(crate) fn known_provider(book: &RuleBook, given: Option<&str>) -> Result<(), CliError> {
    let known = book.providers();
    match given {
        Some(name) if name != "none" && !known.contains(name) => Err(CliError::CacheProvider {
            given: name.to_owned(),
            known: known.into_iter().collect::<Vec<_>>().join(", "),
        }),
        Some(_) | None => Ok(()),
    }
}
