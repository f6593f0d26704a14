//! Tests of the testkit as its users meet it.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like the tests that call them")]

mod client;
mod codec;
mod corpus;
mod faults;
mod replay;
mod scripted;
mod sim;
mod tape;
mod wires;
