//! Memories on a real disk: the index over its caps, links and pipes, writers in threads and processes.

#![expect(clippy::unwrap_used, reason = "helpers fail as the tests they serve do")]

mod directory;
mod escapes;
mod overflow;
mod support;
mod writers;
