//! The rules, the planner and the audit, shown on requests; and predictions of recorded traffic.

#[cfg(test)]
mod breakers;
#[cfg(test)]
mod corpus;
#[cfg(test)]
mod documented;
#[cfg(test)]
mod encoded;
#[cfg(test)]
mod planner;
#[cfg(test)]
mod support;
