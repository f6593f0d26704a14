//! The files of a directory: what a process sees of them, and what the disk has of that.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::ffi;

use crate::locks::{Levels, Shared};
use crate::{Fault, Tuning};

/// SQLite's number for what went wrong.
pub(crate) type Code = c_int;

/// The disks of this process, each by its directory.
pub(crate) fn all() -> MutexGuard<'static, BTreeMap<String, State>> {
    static ALL: Mutex<BTreeMap<String, State>> = Mutex::new(BTreeMap::new());
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One directory.
#[derive(Debug, Default)]
pub(crate) struct State {
    files: BTreeMap<String, File>,
    /// Files that are deleted, while the disk may still have their name.
    ghosts: BTreeMap<String, Vec<u8>>,
    /// Which process this is; handles of an earlier one are dead.
    pub(crate) life: u64,
    armed: Option<Armed>,
    pub(crate) was_struck: bool,
    pub(crate) has_stopped: bool,
    /// How many syncs were done.
    pub(crate) syncs: u64,
    pub(crate) tuning: Tuning,
}

/// One file.
#[derive(Debug, Default)]
pub(crate) struct File {
    seen: Vec<u8>,
    kept: Vec<u8>,
    /// What is seen and may not be kept yet, in order.
    unsynced: Vec<Change>,
    /// Whether the disk has its name.
    is_named: bool,
    pub(crate) levels: Levels,
    pub(crate) shared: Shared,
}

#[derive(Debug)]
enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Cut(usize),
}

/// What a process does with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Open,
    Delete,
    Read,
    Write,
    Truncate,
    Sync,
    Lock,
    ShmMap,
    ShmLock,
}

#[derive(Debug)]
struct Armed {
    fault: Fault,
    skip: u64,
    /// How often it strikes from then on.
    times: u64,
}

impl State {
    pub(crate) fn arm(&mut self, fault: Fault, skip: u64) {
        let times = if fault == Fault::DiskFull { 5 } else { 1 };
        self.armed = Some(Armed { fault, skip, times });
        self.was_struck = false;
    }

    pub(crate) fn restart(&mut self) {
        if !self.has_stopped {
            self.stop();
        }
        self.armed = None;
        self.has_stopped = false;
    }

    /// The power goes: what was not synced is kept by chance, or not at all.
    pub(crate) fn lose(&mut self, seed: Option<u64>) {
        let mut draw = Draw(seed);
        for file in self.files.values_mut() {
            file.lose(&mut draw);
        }
        self.files.retain(|_, file| file.is_named || draw.keeps());
        for (path, kept) in std::mem::take(&mut self.ghosts) {
            if draw.keeps() {
                let back = File { seen: kept.clone(), kept, is_named: true, ..File::default() };
                self.files.entry(path).or_insert(back);
            }
        }
    }

    pub(crate) fn open(&mut self, path: &str, makes: bool) -> Result<(), Code> {
        self.pass(self.life, Op::Open)?;
        if self.files.contains_key(path) {
            return Ok(());
        }
        if !makes {
            return Err(ffi::SQLITE_CANTOPEN);
        }
        // A store makes its database itself before SQLite meets it.
        let is_named = path.ends_with(".db");
        self.files.insert(path.to_owned(), File { is_named, ..File::default() });
        Ok(())
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.files.get(path).is_some_and(|file| !file.seen.is_empty())
    }

    pub(crate) fn delete(&mut self, path: &str, syncs: bool) -> Result<(), Code> {
        self.pass(self.life, Op::Delete)?;
        let file = self.files.remove(path).ok_or(ffi::SQLITE_IOERR_DELETE_NOENT)?;
        if syncs {
            self.ghosts.clear();
        } else if file.is_named {
            self.ghosts.insert(path.to_owned(), file.kept);
        }
        Ok(())
    }

    /// Fills what it can of `into`; whether that was all.
    pub(crate) fn read(&mut self, life: u64, path: &str, at: usize, into: &mut [u8]) -> Result<bool, Code> {
        self.pass(life, Op::Read)?;
        let seen = &self.file(path)?.seen;
        let found = seen.get(at..).unwrap_or_default();
        let len = found.len().min(into.len());
        let (front, rest) = into.split_at_mut(len);
        front.copy_from_slice(found.get(..len).unwrap_or_default());
        rest.fill(0);
        Ok(rest.is_empty())
    }

    pub(crate) fn write(&mut self, life: u64, path: &str, at: usize, bytes: &[u8]) -> Result<(), Code> {
        let failed = self.pass(life, Op::Write);
        let (end, bytes) = match failed {
            Ok(()) => (Ok(()), bytes),
            // Half of it is done by whoever dies or fails in it.
            Err(Strike::Half(code)) => (Err(code), bytes.get(..bytes.len() / 2).unwrap_or_default()),
            Err(Strike::Nothing(code)) => return Err(code),
        };
        let file = self.file(path)?;
        put(&mut file.seen, at, bytes);
        file.unsynced.push(Change::Write { at, bytes: bytes.to_owned() });
        end
    }

    pub(crate) fn truncate(&mut self, life: u64, path: &str, len: usize) -> Result<(), Code> {
        self.pass(life, Op::Truncate)?;
        let file = self.file(path)?;
        file.seen.resize(len, 0);
        file.unsynced.push(Change::Cut(len));
        Ok(())
    }

    pub(crate) fn sync(&mut self, life: u64, path: &str) -> Result<(), Code> {
        let end = self.pass(life, Op::Sync);
        if let Err(strike) = end {
            if strike.code() == ffi::SQLITE_IOERR_FSYNC {
                // As Linux does it: the pages count as written, and are not.
                self.file(path)?.unsynced.clear();
            }
            return Err(strike.code());
        }
        self.syncs += 1;
        let file = self.file(path)?;
        for change in std::mem::take(&mut file.unsynced) {
            change.apply(&mut file.kept);
        }
        if !std::mem::replace(&mut file.is_named, true) {
            // The directory went to the disk with the new name.
            self.ghosts.clear();
        }
        Ok(())
    }

    pub(crate) fn size(&mut self, life: u64, path: &str) -> Result<usize, Code> {
        self.pass(life, Op::Read)?;
        Ok(self.file(path)?.seen.len())
    }

    /// The file of a handle whose process lives, for its locks.
    pub(crate) fn locks(&mut self, life: u64, path: &str, op: Op) -> Result<&mut File, Code> {
        self.pass(life, op)?;
        self.file(path)
    }

    /// The same without a chance of a fault: giving back always works.
    pub(crate) fn gives_back(&mut self, life: u64, path: &str) -> Option<&mut File> {
        if life == self.life { self.files.get_mut(path) } else { None }
    }

    pub(crate) fn forget(&mut self, path: &str) {
        self.files.remove(path);
    }

    fn file(&mut self, path: &str) -> Result<&mut File, Code> {
        self.files.get_mut(path).ok_or(ffi::SQLITE_IOERR)
    }

    /// Counts an operation, and strikes if it is the one.
    fn pass(&mut self, life: u64, op: Op) -> Result<(), Strike> {
        if life != self.life || self.has_stopped {
            return Err(Strike::Nothing(ffi::SQLITE_IOERR));
        }
        let Some(armed) = self.armed.as_mut().filter(|armed| armed.fault.strikes(op)) else { return Ok(()) };
        if let Some(left) = armed.skip.checked_sub(1) {
            armed.skip = left;
            return Ok(());
        }
        let fault = armed.fault;
        armed.times -= 1;
        if armed.times == 0 {
            self.armed = None;
        }
        self.was_struck = true;
        Err(self.strike(fault))
    }

    fn strike(&mut self, fault: Fault) -> Strike {
        match fault {
            Fault::Kill => {
                self.stop();
                Strike::Nothing(ffi::SQLITE_IOERR)
            }
            Fault::TornWrite => {
                self.stop();
                Strike::Half(ffi::SQLITE_IOERR)
            }
            Fault::PowerLoss(seed) => {
                self.lose(seed);
                self.stop();
                Strike::Nothing(ffi::SQLITE_IOERR)
            }
            Fault::DiskFull => Strike::Half(ffi::SQLITE_FULL),
            Fault::WriteError => Strike::Half(ffi::SQLITE_IOERR_WRITE),
            Fault::SyncError => Strike::Nothing(ffi::SQLITE_IOERR_FSYNC),
        }
    }

    /// Ends this life: its locks and its shared memory go.
    fn stop(&mut self) {
        self.life += 1;
        self.has_stopped = true;
        for file in self.files.values_mut() {
            file.levels = Levels::default();
            file.shared = Shared::default();
        }
    }
}

/// How an operation fails.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Strike {
    Half(Code),
    Nothing(Code),
}

impl Strike {
    fn code(self) -> Code {
        match self {
            Self::Half(code) | Self::Nothing(code) => code,
        }
    }
}

impl From<Strike> for Code {
    fn from(strike: Strike) -> Self {
        strike.code()
    }
}

impl Fault {
    fn strikes(self, op: Op) -> bool {
        match self {
            Self::Kill | Self::PowerLoss(_) => true,
            Self::TornWrite | Self::DiskFull | Self::WriteError => op == Op::Write,
            Self::SyncError => op == Op::Sync,
        }
    }
}

impl File {
    fn lose(&mut self, draw: &mut Draw) {
        for change in std::mem::take(&mut self.unsynced) {
            change.sectors().filter(|_| draw.keeps()).for_each(|part| part.apply(&mut self.kept));
        }
        self.seen = self.kept.clone();
    }
}

impl Change {
    fn apply(self, to: &mut Vec<u8>) {
        match self {
            Self::Write { at, bytes } => put(to, at, &bytes),
            Self::Cut(len) => to.resize(len, 0),
        }
    }

    /// The parts that reach the disk each for itself.
    fn sectors(self) -> impl Iterator<Item = Self> {
        let mut rest = Some(self);
        std::iter::from_fn(move || match rest.take()? {
            Self::Write { at, mut bytes } => {
                let room = SECTOR - at % SECTOR;
                if bytes.len() > room {
                    rest = Some(Self::Write { at: at + room, bytes: bytes.split_off(room) });
                }
                Some(Self::Write { at, bytes })
            }
            cut @ Self::Cut(_) => Some(cut),
        })
    }
}

/// Draws whether something is kept; nothing is without a seed.
#[derive(Debug)]
struct Draw(Option<u64>);

impl Draw {
    fn keeps(&mut self) -> bool {
        let Some(state) = &mut self.0 else { return false };
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) >> 63 == 1
    }
}

fn put(to: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    let end = at + bytes.len();
    if to.len() < end {
        to.resize(end, 0);
    }
    if let Some(place) = to.get_mut(at..end) {
        place.copy_from_slice(bytes);
    }
}

const SECTOR: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    fn file(kept: &str, changes: Vec<Change>) -> File {
        let mut file = File { kept: kept.into(), seen: kept.into(), is_named: true, ..File::default() };
        for change in changes {
            file.unsynced.push(change);
        }
        file
    }

    #[test]
    fn what_was_not_synced_is_lost_by_the_sector() {
        let write = || vec![Change::Write { at: 500, bytes: vec![7; 1024] }];
        let sizes: Vec<usize> = write()
            .pop()
            .unwrap()
            .sectors()
            .map(|part| match part {
                Change::Write { bytes, .. } => bytes.len(),
                Change::Cut(_) => 0,
            })
            .collect();
        assert_eq!(sizes, [12, 512, 500]);
        let mut all = file("before", write());
        all.lose(&mut Draw(None));
        assert_eq!(all.seen, b"before");
        let ends: Vec<usize> = (0..64)
            .map(|seed| {
                let mut some = file("before", write());
                some.lose(&mut Draw(Some(seed)));
                some.seen.iter().filter(|byte| **byte == 7).count()
            })
            .collect();
        assert!(ends.contains(&1024) && ends.contains(&0) && ends.contains(&512), "{ends:?}");
    }

    #[test]
    fn a_sync_keeps_and_a_failed_one_forgets() {
        let mut state = State::default();
        state.open("/a.db-wal", true).unwrap();
        state.write(0, "/a.db-wal", 0, b"one").unwrap();
        state.sync(0, "/a.db-wal").unwrap();
        state.arm(Fault::SyncError, 0);
        state.write(0, "/a.db-wal", 3, b"two").unwrap();
        assert_eq!(state.sync(0, "/a.db-wal"), Err(ffi::SQLITE_IOERR_FSYNC));
        assert_eq!(state.sync(0, "/a.db-wal"), Ok(()));
        assert_eq!(state.size(0, "/a.db-wal"), Ok(6));
        state.lose(None);
        assert_eq!(state.size(0, "/a.db-wal"), Ok(3));
    }

    #[test]
    fn a_dead_process_changes_nothing() {
        let mut state = State::default();
        state.open("/a.db", true).unwrap();
        state.arm(Fault::TornWrite, 1);
        state.write(0, "/a.db", 0, b"whole").unwrap();
        assert!(state.write(0, "/a.db", 5, b"half").is_err() && state.has_stopped);
        assert!(state.write(0, "/a.db", 0, b"late").is_err());
        state.restart();
        assert!(state.write(0, "/a.db", 0, b"late").is_err(), "its life is over");
        assert_eq!(state.size(1, "/a.db"), Ok(7));
    }
}
