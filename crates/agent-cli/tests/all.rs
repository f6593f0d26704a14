//! The program as its users run it: real processes, real files, real HTTP on loopback.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "helpers fail as the tests they serve do"
)]

mod cache;
mod context;
mod crash;
mod demo;
mod doctor;
mod explain;
mod memory;
mod models;
mod permissions;
mod resume;
mod run;
mod sessions;
mod sim;
mod stats;
mod subagents;
mod support;
mod terminal;
mod tools;
mod vendors;
mod wire;
