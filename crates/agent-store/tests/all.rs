//! Every store under the shared suite, and SQLite under faults.

mod jsonl;
mod memory;
#[cfg(feature = "sqlite")]
mod sqlite;
