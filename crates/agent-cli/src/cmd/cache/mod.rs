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

use agent::Vendor;
use agent_cache::RuleBook;

use crate::error::CliError;

pub(crate) use audit::audit;
pub(crate) use check::check;
pub(crate) use play::play;

/// Refuses a provider that nobody has: under its rules nothing would be kept, and nobody would be told why.
pub(crate) fn known_provider(book: &RuleBook, given: Option<&str>) -> Result<(), CliError> {
    let known = book.providers();
    let is_known = |name: &str| name == "none" || known.contains(name) || Vendor::named(name).is_some();
    match given.filter(|name| !is_known(name)) {
        Some(given) => Err(CliError::CacheProvider {
            given: given.to_owned(),
            known: known.into_iter().collect::<Vec<_>>().join(", "),
        }),
        None => Ok(()),
    }
}
