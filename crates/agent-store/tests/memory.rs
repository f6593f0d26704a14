//! The store in memory.

use std::sync::Arc;

use agent_store::MemoryStore;
use agent_testkit::store_suite::{Subject, play};
use proptest::prelude::*;

agent_testkit::store_suite!(Subject::volatile(Arc::new(MemoryStore::new())));

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_drawn_schedule_ends_as_the_model_says(schedule in proptest::collection::vec(any::<[u8; 3]>(), 1..80)) {
        prop_assert_eq!(play(Subject::volatile(Arc::new(MemoryStore::new())), &schedule), Ok(()));
    }
}
