//! An allocator that counts what it hands out, and is the system's otherwise.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What was asked of the allocator so far; a block that grows or moves counts as a new one.
#[derive(Clone, Copy)]
pub(crate) struct Counts {
    pub(crate) allocations: u64,
    pub(crate) bytes: u64,
}

pub(crate) fn counts() -> Counts {
    Counts { allocations: ALLOCATIONS.load(Ordering::Relaxed), bytes: BYTES.load(Ordering::Relaxed) }
}

/// Bytes that were handed out and are not back yet.
pub(crate) fn live() -> u64 {
    BYTES.load(Ordering::Relaxed).saturating_sub(RETURNED.load(Ordering::Relaxed))
}

/// The most bytes that were live at once since [`watch`] was called; 0 when it never was.
pub(crate) fn peak() -> u64 {
    PEAK.load(Ordering::Relaxed)
}

/// Looks for the peak from now on, which makes each allocation a little dearer.
pub(crate) fn watch() {
    IS_WATCHED.store(true, Ordering::Relaxed);
}

struct Counting;

impl Counting {
    fn take(size: usize) {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(size as u64, Ordering::Relaxed);
        if IS_WATCHED.load(Ordering::Relaxed) {
            PEAK.fetch_max(live(), Ordering::Relaxed);
        }
    }

    fn give_back(size: usize) {
        RETURNED.fetch_add(size as u64, Ordering::Relaxed);
    }
}

#[expect(unsafe_code, reason = "a global allocator can be written in no other way")]
// SAFETY: every method passes its arguments on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::take(layout.size());
        // SAFETY: our caller keeps the contract of this method, which is the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::take(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        Self::give_back(layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::give_back(layout.size());
        Self::take(size);
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
static RETURNED: AtomicU64 = AtomicU64::new(0);
static PEAK: AtomicU64 = AtomicU64::new(0);
static IS_WATCHED: AtomicBool = AtomicBool::new(false);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_counted_with_its_bytes() {
        let before = counts();
        let block = std::hint::black_box(vec![1_u8; 4_096]);
        let after = counts();
        assert!(after.allocations > before.allocations);
        assert!(after.bytes >= before.bytes + block.len() as u64);
    }

    #[test]
    fn a_block_is_live_until_it_is_dropped() {
        // Other tests allocate at the same time, by far less than this.
        const SIZE: u64 = 1 << 30;
        watch();
        let before = live();
        let block = std::hint::black_box(Vec::<u8>::with_capacity(1 << 30));
        assert!(live() > before + SIZE / 2);
        drop(block);
        assert!(live() < before + SIZE / 2);
        assert!(peak() > before + SIZE / 2);
    }
}
