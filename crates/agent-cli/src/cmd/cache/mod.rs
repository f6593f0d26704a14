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

pub(crate) use audit::audit;
pub(crate) use check::check;
pub(crate) use play::play;

use agent::Vendor;
use agent_cache::RuleBook;

use crate::error::CliError;

/// Refuses a name that nobody has: under its rules nothing would be cached, and nobody would be told why.
pub(crate) fn check_provider(given: Option<&str>, book: &RuleBook) -> Result<(), CliError> {
    let known = book.providers();
    match given.filter(|name| *name != "none" && !known.contains(name) && Vendor::named(name).is_none()) {
        Some(given) => Err(CliError::CacheProvider { given: given.to_owned(), known: known.join(", ") }),
        None => Ok(()),
    }
}
