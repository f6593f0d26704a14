//! The shared suite.

use std::sync::Arc;

use agent_store::SqliteStore;
use agent_testkit::store_suite::{Subject, play};
use proptest::prelude::*;

fn subject() -> Subject {
    let dir = tempfile::tempdir().unwrap();
    Subject::durable(move || Arc::new(SqliteStore::open(dir.path()).unwrap()))
}

agent_testkit::store_suite!(subject());

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_drawn_schedule_ends_as_the_model_says(schedule in proptest::collection::vec(any::<[u8; 3]>(), 1..80)) {
        prop_assert_eq!(play(subject(), &schedule), Ok(()));
    }
}
