//! The driver on scripted models: turns, tools, aborts, crashes, spans; and the prompt of a real folder.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers fail as the tests they serve do")]

mod abort;
mod behind;
mod cache;
mod children;
mod crash;
mod damage;
mod date;
mod doctor;
mod explain;
mod fork;
mod formats;
mod memory;
mod notes;
mod park;
mod prepare;
mod prompt;
mod retry;
mod stops;
mod support;
mod tools;
mod turns;
mod view;
mod wire;
mod workspace;
