//! The locks of a file, and the memory that its connections share.

use std::cell::UnsafeCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_int;
use std::sync::Arc;

use rusqlite::ffi;

use crate::disk::Code;

/// Who holds how much of a file, by handle.
#[derive(Debug, Default)]
pub(crate) struct Levels(BTreeMap<u64, c_int>);

impl Levels {
    pub(crate) fn raise(&mut self, who: u64, to: c_int) -> Result<(), Code> {
        let others = self.0.iter().filter(|(id, _)| **id != who).map(|(_, level)| *level).max();
        let others = others.unwrap_or(ffi::SQLITE_LOCK_NONE);
        let own = self.0.get(&who).copied().unwrap_or(ffi::SQLITE_LOCK_NONE);
        if own >= to {
            return Ok(());
        }
        let limit =
            if to == ffi::SQLITE_LOCK_SHARED { ffi::SQLITE_LOCK_PENDING } else { ffi::SQLITE_LOCK_RESERVED };
        if others >= limit {
            return Err(ffi::SQLITE_BUSY);
        }
        if to == ffi::SQLITE_LOCK_EXCLUSIVE && others > ffi::SQLITE_LOCK_NONE {
            // Readers that are there may end, and no new ones come.
            self.0.insert(who, ffi::SQLITE_LOCK_PENDING);
            return Err(ffi::SQLITE_BUSY);
        }
        self.0.insert(who, to);
        Ok(())
    }

    pub(crate) fn lower(&mut self, who: u64, to: c_int) {
        if to == ffi::SQLITE_LOCK_NONE {
            self.0.remove(&who);
        } else {
            self.0.insert(who, to);
        }
    }

    pub(crate) fn is_reserved(&self) -> bool {
        self.0.values().any(|level| *level >= ffi::SQLITE_LOCK_RESERVED)
    }
}

/// The memory beside a write-ahead log, and its locks.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    regions: Vec<Arc<Region>>,
    users: BTreeSet<u64>,
    slots: [Slot; ffi::SQLITE_SHM_NLOCK as usize],
}

#[derive(Debug, Default)]
struct Slot {
    readers: BTreeSet<u64>,
    writer: Option<u64>,
}

/// Memory that SQLite reads and writes as it likes; it orders that by the locks and by barriers.
#[derive(Debug)]
pub(crate) struct Region(Box<[UnsafeCell<u64>]>);

impl Region {
    pub(crate) fn of(bytes: usize) -> Self {
        Self((0..bytes.div_ceil(8)).map(|_| UnsafeCell::new(0)).collect())
    }

    pub(crate) fn start(&self) -> *mut u64 {
        self.0.first().map_or(std::ptr::null_mut(), UnsafeCell::get)
    }
}

impl Shared {
    /// A region, made when `makes` says so; it lives as long as who asked keeps it.
    pub(crate) fn region(&mut self, who: u64, at: usize, make: Option<usize>) -> Option<Arc<Region>> {
        self.users.insert(who);
        if let Some(bytes) = make {
            while self.regions.len() <= at {
                self.regions.push(Arc::new(Region::of(bytes)));
            }
        }
        self.regions.get(at).cloned()
    }

    pub(crate) fn lock(
        &mut self,
        who: u64,
        slots: std::ops::Range<usize>,
        is_shared: bool,
    ) -> Result<(), Code> {
        let slots = self.slots.get_mut(slots).ok_or(ffi::SQLITE_IOERR_SHMLOCK)?;
        let is_free = |slot: &Slot| {
            let is_read = slot.readers.iter().any(|reader| *reader != who);
            slot.writer.is_none_or(|writer| writer == who) && (is_shared || !is_read)
        };
        if !slots.iter().all(is_free) {
            return Err(ffi::SQLITE_BUSY);
        }
        for slot in slots {
            if is_shared {
                slot.readers.insert(who);
            } else {
                slot.writer = Some(who);
            }
        }
        Ok(())
    }

    pub(crate) fn unlock(&mut self, who: u64, slots: std::ops::Range<usize>) {
        for slot in self.slots.get_mut(slots).unwrap_or_default() {
            slot.readers.remove(&who);
            slot.writer = slot.writer.filter(|writer| *writer != who);
        }
    }

    /// The last one to leave takes the memory along.
    pub(crate) fn leave(&mut self, who: u64) {
        self.unlock(who, 0..self.slots.len());
        self.users.remove(&who);
        if self.users.is_empty() {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_waits_for_readers_and_keeps_new_ones_out() {
        let mut levels = Levels::default();
        for who in [1, 2] {
            levels.raise(who, ffi::SQLITE_LOCK_SHARED).unwrap();
        }
        levels.raise(1, ffi::SQLITE_LOCK_RESERVED).unwrap();
        assert_eq!(levels.raise(2, ffi::SQLITE_LOCK_RESERVED), Err(ffi::SQLITE_BUSY));
        assert_eq!(levels.raise(1, ffi::SQLITE_LOCK_EXCLUSIVE), Err(ffi::SQLITE_BUSY));
        assert_eq!(levels.raise(3, ffi::SQLITE_LOCK_SHARED), Err(ffi::SQLITE_BUSY));
        levels.lower(2, ffi::SQLITE_LOCK_NONE);
        assert_eq!(levels.raise(1, ffi::SQLITE_LOCK_EXCLUSIVE), Ok(()));
    }

    #[test]
    fn a_slot_has_many_readers_or_one_writer() {
        let mut shared = Shared::default();
        assert_eq!(shared.lock(1, 3..4, true), Ok(()));
        assert_eq!(shared.lock(2, 3..4, true), Ok(()));
        assert_eq!(shared.lock(2, 2..5, false), Err(ffi::SQLITE_BUSY));
        shared.unlock(1, 3..4);
        assert_eq!(shared.lock(2, 2..5, false), Ok(()));
        assert_eq!(shared.lock(1, 4..5, true), Err(ffi::SQLITE_BUSY));
        shared.leave(2);
        assert_eq!(shared.lock(1, 4..5, true), Ok(()));
    }
}
