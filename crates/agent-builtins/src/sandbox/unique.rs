//! Names that no earlier process of this machine has used, whatever became of it.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Letters, digits and underscores. The number of a process comes again, and a killed one leaves its files and
/// children behind; so part of the name is random.
pub(super) fn unique() -> String {
    static RANDOM: LazyLock<u64> = LazyLock::new(|| RandomState::new().build_hasher().finish());
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("{}_{:016x}_{}", std::process::id(), *RANDOM, NEXT.fetch_add(1, Ordering::Relaxed))
}
