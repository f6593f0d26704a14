//! The built-in tools on real directories and real processes.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers fail as the tests they serve do"
)]

mod bash;
mod cases;
mod command_hook;
mod complete;
mod descriptions;
mod edit_file;
mod escapes;
mod glob;
mod grep;
mod guardian;
mod ignores;
mod isolated;
mod jobs;
mod memory;
mod memory_tool;
mod properties;
mod read_file;
mod sandbox;
mod skills;
mod support;
mod todo;
mod waits;
#[cfg(feature = "web")]
mod web_fetch;
mod write_file;
