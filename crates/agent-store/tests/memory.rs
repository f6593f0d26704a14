//! The store in memory.

use std::sync::Arc;

use agent_store::MemoryStore;
use agent_testkit::store_suite::Subject;

agent_testkit::store_suite!(Subject::volatile(Arc::new(MemoryStore::new())));
