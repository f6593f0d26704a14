//! What leaves a budget, in words that say where, why, and what to do.

use std::fmt;

use super::{Budget, Rewrite};
use crate::{Cause, Divergence, RequestError, Row};

/// One thing that leaves a budget.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Breach {
    /// Something of the prefix was lost, and nobody declared it.
    Lost {
        /// The request, from 1.
        step: usize,
        /// Where and why.
        found: Divergence,
        /// Tokens that were paid again.
        lost: u64,
    },
    /// A request ends before the one it goes on from does.
    Shrunk {
        /// The request, from 1.
        step: usize,
        /// Bytes that it shares with the other.
        shared: u64,
        /// Bytes of the other.
        before: u64,
    },
    /// The hash of tools or system text is another one, in a conversation that goes on.
    Hash {
        /// The request, from 1.
        step: usize,
        /// `tools` or `system`.
        what: &'static str,
        /// What it was.
        before: String,
        /// What it is.
        after: String,
    },
    /// Too little was read from the cache.
    HitRate {
        /// The share that was read.
        got: f64,
        /// The least that is wanted.
        least: f64,
    },
    /// The input cost too much.
    Cost {
        /// As a multiple of the ideal.
        got: f64,
        /// The most that is allowed.
        most: f64,
        /// In US dollars, at the prices given.
        cost: f64,
        /// What it would have been at best.
        ideal: f64,
    },
    /// A loss was declared and did not happen.
    Stale {
        /// The declaration.
        rewrite: Rewrite,
    },
    /// There was no request.
    Nothing,
}

/// Why an agent's requests do not keep a budget.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BudgetError {
    /// A body cannot be read.
    #[error("request {step}: {cause}")]
    Request {
        /// The request, from 1.
        step: usize,
        /// What is wrong with it.
        #[source]
        cause: RequestError,
    },
    /// The budget is not kept.
    #[error("{}", listed(breaches))]
    Breached {
        /// Everything that leaves it.
        breaches: Vec<Breach>,
    },
}

/// Losses and changed hashes that are not declared, and declarations that are stale.
pub(super) fn changes(budget: &Budget, rows: &[Row]) -> Vec<Breach> {
    let mut breaches: Vec<Breach> = rows.iter().filter_map(|row| change(budget, rows, row)).collect();
    let stale = budget.rewrites.iter().filter(|rewrite| !rows.iter().any(|row| rewrite.fits(row)));
    breaches.extend(stale.map(|rewrite| Breach::Stale { rewrite: rewrite.clone() }));
    breaches
}

fn change(budget: &Budget, rows: &[Row], row: &Row) -> Option<Breach> {
    let step = row.step;
    if budget.declares(row) {
        return None;
    }
    if let Some(found) = row.divergence.as_ref().filter(|found| found.cause.is_fault()) {
        return Some(Breach::Lost { step, found: found.clone(), lost: row.lost });
    }
    let before = rows.iter().find(|it| Some(it.step) == row.compared_with)?;
    let goes_on = row.divergence.as_ref().is_none_or(|found| found.cause == Cause::PassingTail);
    if !goes_on {
        return None;
    }
    let hash = |what, before: &str, after: &str| {
        let (before, after) = (before.to_owned(), after.to_owned());
        (before != after).then_some(Breach::Hash { step, what, before, after })
    };
    let shrunk = row.divergence.is_none() && row.bytes < before.bytes;
    hash("tools", &before.tools_hash, &row.tools_hash)
        .or_else(|| hash("system", &before.system_hash, &row.system_hash))
        .or_else(|| shrunk.then_some(Breach::Shrunk { step, shared: row.shared_bytes, before: before.bytes }))
}

impl Breach {
    /// The cause, of a loss.
    pub fn cause(&self) -> Option<Cause> {
        match self {
            Self::Lost { found, .. } => Some(found.cause),
            Self::Shrunk { .. }
            | Self::Hash { .. }
            | Self::HitRate { .. }
            | Self::Cost { .. }
            | Self::Stale { .. }
            | Self::Nothing => None,
        }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost { step, found, lost } => {
                write!(f, "request {step}: {} at {}, {lost} tokens lost", found.cause.name(), found.path)?;
                write!(f, "{}", found.change())
            }
            Self::Shrunk { step, shared, before } => write!(
                f,
                "request {step}: the prefix shrank: {shared} bytes of {before} are left of the request before\n  Append to what was sent; declare the rewrite where taking words back is meant to be."
            ),
            Self::Hash { step, what, before, after } => write!(
                f,
                "request {step}: the {what} hash is {after} and was {before}\n  Keep tools and system text for the session; declare the rewrite where the change is meant to be."
            ),
            Self::HitRate { got, least } => write!(
                f,
                "hit rate: {:.1}% of the input was read from the cache, the budget is at least {:.1}%\n  Look at the rows that read less than the one before had left.",
                got * 100.0,
                least * 100.0
            ),
            Self::Cost { got, most, .. } => write!(
                f,
                "cost: {got:.3} times the ideal (each token written once, read ever after), the budget is at most {most:.3}\n  Look at the rows that write or pay in full what was there before."
            ),
            Self::Stale { rewrite } => {
                let at = rewrite.step.map(|step| format!(" at request {step}")).unwrap_or_default();
                let cause = rewrite.cause.name();
                write!(
                    f,
                    "the declared rewrite {cause}{at} did not happen\n  Take it out of the budget, or look whether it happens elsewhere."
                )
            }
            Self::Nothing => {
                write!(f, "no request was seen\n  Record at least one; an empty run shows nothing.")
            }
        }
    }
}

fn listed(breaches: &[Breach]) -> String {
    let told: Vec<String> = breaches.iter().map(Breach::to_string).collect();
    format!("the requests leave their budget\n{}", told.join("\n"))
}
