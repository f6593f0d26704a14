//! The rules, the planner and the audit, shown on requests; and predictions of recorded traffic.

mod breakers;
mod corpus;
mod documented;
mod planner;
mod support;
