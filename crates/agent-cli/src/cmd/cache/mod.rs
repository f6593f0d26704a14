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
