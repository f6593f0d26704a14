//! The driver on scripted models: turns, tools, aborts, crashes, spans.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers fail as the tests they serve do")]

mod abort;
mod crash;
mod formats;
mod retry;
mod support;
mod tools;
mod turns;
mod wire;
