//! The shared suite.

use std::sync::Arc;

use agent_store::SqliteStore;
use agent_testkit::store_suite::Subject;

fn subject() -> Subject {
    let dir = tempfile::tempdir().unwrap();
    Subject::durable(move || Arc::new(SqliteStore::open(dir.path()).unwrap()))
}

agent_testkit::store_suite!(subject());
