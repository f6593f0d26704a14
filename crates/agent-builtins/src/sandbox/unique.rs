//! Names that no earlier process of this machine has used, whatever became of it.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Letters, digits and underscores. The number of a process comes again, and a killed one leaves its files and
/// children behind; so part of the name is random.
pub(super) fn unique() -> String {
    format!("{}_{:016x}_{}", std::process::id(), *RANDOM, NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The id of a background job: short, because a model repeats it, and still another one than a job had before the program
/// was started again, of which the conversation may still tell.
pub(super) fn unique_job() -> String {
    static NEXT_JOB: AtomicU64 = AtomicU64::new(1);
    format!("job-{:04x}-{}", *RANDOM & 0xffff, NEXT_JOB.fetch_add(1, Ordering::Relaxed))
}

static RANDOM: LazyLock<u64> = LazyLock::new(|| RandomState::new().build_hasher().finish());
static NEXT: AtomicU64 = AtomicU64::new(0);
