//! Sessions that survive crashes: one atomic commit a step, a tool journal, leases and blobs.
//!
//! Depend on this crate when you drive sessions (the harness does) or when you write a store of your own: then
//! implement [`Store`] and run `agent_testkit::store_suite` over it.
//!
//! **This crate knows** how the rows of a session stay consistent: entries are only appended, as the exact bytes
//! they were first written in; a commit is all or nothing and names the [`Revision`](agent_core::Revision) it
//! builds on; durable events are numbered without a gap; one worker at a time holds the [`Lease`] of a session,
//! and a worker that lost it is refused by its epoch. [`MemoryStore`] keeps sessions in this process;
//! `SqliteStore` (feature `sqlite`) keeps them in a directory of the local disk.
//!
//! A write holds what is new and nothing that grows with the session. With `SqliteStore` it is one transaction and one
//! fsync, which the writes of other sessions that wait at that moment share.
//!
//! **It never knows** what an entry, a step or a turn means, which async runtime drives it, or what time it is.
//!
//! ```
//! use agent_core::{Checkpoint, Commit, Entry, Revision, SessionId, SessionMeta, UserMessage};
//! use agent_store::{MemoryStore, Store};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let store = MemoryStore::new();
//! let id = SessionId::new("first")?;
//! let model = "any/model".to_owned();
//! let meta = SessionMeta { id: id.clone(), created_ms: 0, model, system: vec![], static_blocks: 0, tools: vec![] };
//! let checkpoint = Checkpoint::default();
//!
//! let lease = store.lease(&id).await?;
//! let expect = store.create(&lease, &meta, &checkpoint).await?;
//! let hello = [Entry::User(UserMessage::text("Hello")?)];
//! let commit = Commit {
//!     expect,
//!     entries: &hello,
//!     checkpoint: &checkpoint,
//!     usage: None,
//!     events: &[],
//!     consumed: &[],
//!     terminal: None,
//!     now_ms: 1,
//! };
//! assert_eq!(store.commit(&lease, commit).await?.revision, Revision(1));
//! assert!(store.commit(&lease, commit).await.is_err(), "the revision it builds on is stale now");
//! assert_eq!(store.load(&id).await?.map(|session| session.entries.len()), Some(1));
//! # Ok(())
//! # }
//! # futures_util::FutureExt::now_or_never(example()).expect("memory never waits").unwrap();
//! ```

mod error;
mod jsonl;
mod lease;
mod memory;
#[cfg_attr(not(feature = "sqlite"), expect(dead_code, reason = "stores on disk alone write bytes"))]
mod rows;
mod salvage;
#[cfg(feature = "sqlite")]
mod sqlite;
mod store;
mod whole;
#[cfg_attr(not(feature = "sqlite"), expect(dead_code, reason = "stores on disk alone write bytes"))]
mod write;

pub use error::{Damage, Row, StoreError};
pub use jsonl::{Imported, JsonlError, LeftOut, export, import};
pub use lease::Lease;
pub use memory::MemoryStore;
pub use salvage::Salvaged;
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteOptions, SqliteStore};
pub use store::{Fork, Store, SummaryLine};
pub use whole::WholeSession;
