//! Tests of the testkit as its users meet it.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like the tests that call them")]

mod accounting;
mod bound;
mod client;
mod codec;
mod corpus;
mod diagnosis;
mod faults;
mod prompts;
mod replay;
mod scripted;
mod sim;
mod stack;
mod tape;
mod wires;
