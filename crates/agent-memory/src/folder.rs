//! A directory by its handle: flat names, no links, bounded reads, writers that take turns, files replaced as a whole.

use std::fs::{DirBuilder, File, TryLockError};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, linkat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

use crate::MemoryError;

/// Every path is one name, looked up in the opened directory and never through a link, so what happens to the names
/// between a look and a use cannot lead out of it (requirement C4).
#[derive(Debug)]
pub(crate) struct Folder {
    dir: OwnedFd,
    path: PathBuf,
}

/// What a name is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// As UTF-8, lossily.
    pub(crate) name: String,
    pub(crate) is_file: bool,
    /// Nanoseconds since 1970 when it was last changed.
    pub(crate) changed: i128,
    /// In words, for one that is no file.
    pub(crate) kind: &'static str,
}

/// The right to write, held by one writer of all processes. The system takes it back when the process dies.
#[derive(Debug)]
pub(crate) struct Turn<'f> {
    folder: &'f Folder,
    lock: File,
}

/// What a file must be when it is replaced.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expect<'t> {
    Absent,
    /// Exactly these bytes.
    Bytes(&'t [u8]),
}

impl Folder {
    /// Opens a directory, made as needed, for the user alone.
    pub(crate) fn open(path: &Path) -> Result<Self, MemoryError> {
        let failed = |cause| MemoryError::Open { path: path.to_owned(), cause };
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
        Self::existing(path).map_err(failed)
    }

    /// Opens a directory that is there.
    pub(crate) fn existing(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Self { dir, path: path.to_owned() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// All bytes of a regular file, or `None` when nothing has the name.
    pub(crate) fn read(&self, name: &str, most: usize) -> Result<Option<Vec<u8>>, MemoryError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let file = match openat(&self.dir, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::MLINK) => return Err(not_a_file(name, "symbolic link")),
            Err(Errno::NXIO | Errno::NODEV) => return Err(not_a_file(name, "socket or device")),
            Err(cause) => return Err(MemoryError::io(name, "read", cause)),
        };
        let failed = |cause| MemoryError::io(name, "read", cause);
        // Asked of the open file: a name may be swapped, an open file may not.
        let kind = file.metadata().map_err(failed)?.mode();
        if let Some(kind) = strange(FileType::from_raw_mode(kind as rustix::fs::RawMode)) {
            return Err(not_a_file(name, kind));
        }
        let mut bytes = Vec::new();
        file.take(most as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() > most {
            return Err(MemoryError::TooLarge { file: name.to_owned(), most });
        }
        Ok(Some(bytes))
    }

    /// The same as text.
    pub(crate) fn text(&self, name: &str, most: usize) -> Result<Option<String>, MemoryError> {
        let Some(bytes) = self.read(name, most)? else { return Ok(None) };
        let text = String::from_utf8(bytes).map_err(|error| MemoryError::NotUtf8 {
            file: name.to_owned(),
            at: error.utf8_error().valid_up_to(),
        });
        text.map(Some)
    }

    /// What has a name, in the order of names; hidden names are left out.
    pub(crate) fn entries(&self) -> Result<Vec<Entry>, MemoryError> {
        let failed = |cause: Errno| MemoryError::Open { path: self.path.clone(), cause: cause.into() };
        let mut found = Vec::new();
        for entry in Dir::read_from(&self.dir).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            if name.to_bytes().starts_with(b".") {
                continue;
            }
            if found.len() >= ENTRIES {
                return Err(MemoryError::TooManyFiles(ENTRIES));
            }
            match statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => found.push(self::entry(name.to_string_lossy().into_owned(), &stat)),
                // Removed while we look.
                Err(Errno::NOENT) => {}
                Err(cause) => return Err(failed(cause)),
            }
        }
        found.sort_unstable_by(|one: &Entry, other| one.name.cmp(&other.name));
        Ok(found)
    }

    /// Whether anything has the name, of whatever kind.
    pub(crate) fn holds(&self, name: &str) -> Result<bool, MemoryError> {
        match statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(cause) => Err(MemoryError::io(name, "read", cause)),
        }
    }

    /// Waits for the turn to write: [`PATIENCE`] at most.
    pub(crate) fn turn(&self) -> Result<Turn<'_>, MemoryError> {
        self.turn_within(PATIENCE)
    }

    pub(crate) fn turn_within(&self, patience: Duration) -> Result<Turn<'_>, MemoryError> {
        let mut left = patience;
        loop {
            let lock = self.lock_file()?;
            match lock.try_lock() {
                // A lock on a file that somebody removed keeps nobody out.
                Ok(()) if self.is_still(&lock) => {
                    let turn = Turn { folder: self, lock };
                    turn.sweep()?;
                    return Ok(turn);
                }
                Ok(()) | Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(cause)) => return Err(MemoryError::io(LOCK, "locked", cause)),
            }
            drop(lock);
            left = left.checked_sub(PAUSE).ok_or_else(|| MemoryError::Busy { path: self.path.clone() })?;
            std::thread::sleep(PAUSE);
        }
    }

    fn lock_file(&self) -> Result<File, MemoryError> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match openat(&self.dir, LOCK, flags, PRIVATE) {
            Ok(file) => Ok(File::from(file)),
            Err(Errno::LOOP | Errno::MLINK) => Err(not_a_file(LOCK, "symbolic link")),
            Err(cause) => Err(MemoryError::io(LOCK, "locked", cause)),
        }
    }

    fn is_still(&self, lock: &File) -> bool {
        let named = statat(&self.dir, LOCK, AtFlags::SYMLINK_NOFOLLOW);
        let held = rustix::fs::fstat(lock);
        matches!((named, held), (Ok(named), Ok(held)) if (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino))
    }
}

impl Turn<'_> {
    /// Puts a whole file in place: beside it, to disk, and to its name if what has the name is as expected.
    pub(crate) fn write(&self, name: &str, bytes: &[u8], expect: Expect<'_>) -> Result<(), MemoryError> {
        let dir = &self.folder.dir;
        let failed = |cause: io::Error| MemoryError::io(name, "written", cause);
        let passing = format!("{PASSING}{}", unique());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file =
            File::from(openat(dir, &passing, flags, PRIVATE).map_err(|cause| failed(cause.into()))?);
        let staged = Staged { dir, name: &passing };
        file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failed)?;
        self.verify(name, expect)?;
        staged.put(name, expect).map_err(|cause| match cause {
            Errno::EXIST => MemoryError::Exists(name.to_owned()),
            cause => failed(cause.into()),
        })?;
        self.settle(name)
    }

    /// Removes a file, whatever its kind but a directory; nothing to remove is no error.
    pub(crate) fn remove(&self, name: &str) -> Result<(), MemoryError> {
        match unlinkat(&self.folder.dir, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => self.settle(name),
            Err(cause) => Err(MemoryError::io(name, "removed", cause)),
        }
    }

    /// The last look: an editor that takes no turns may have been here.
    fn verify(&self, name: &str, expect: Expect<'_>) -> Result<(), MemoryError> {
        match expect {
            Expect::Absent if self.folder.holds(name)? => Err(MemoryError::Exists(name.to_owned())),
            Expect::Absent => Ok(()),
            Expect::Bytes(seen) => match self.folder.read(name, seen.len()) {
                Ok(Some(now)) if now == seen => Ok(()),
                Ok(_) | Err(MemoryError::TooLarge { .. }) => Err(MemoryError::Changed(name.to_owned())),
                Err(other) => Err(other),
            },
        }
    }

    /// Without this a new name may be lost with the power, although the bytes are on disk.
    fn settle(&self, name: &str) -> Result<(), MemoryError> {
        rustix::fs::fsync(&self.folder.dir).map_err(|cause| MemoryError::io(name, "written", cause))
    }

    /// Removes what killed writers left. Only who has the turn makes such files, so all that are there are left over.
    fn sweep(&self) -> Result<(), MemoryError> {
        let failed = |cause: Errno| MemoryError::Open { path: self.folder.path.clone(), cause: cause.into() };
        for entry in Dir::read_from(&self.folder.dir).map_err(failed)?.take(2 * ENTRIES) {
            let entry = entry.map_err(failed)?;
            if entry.file_name().to_bytes().starts_with(PASSING.as_bytes()) {
                // What cannot be removed is in nobody's way.
                let _ = unlinkat(&self.folder.dir, entry.file_name(), AtFlags::empty());
            }
        }
        Ok(())
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // Closing alone would leave the lock to a child that is just being started.
        let _ = self.lock.unlock();
    }
}

/// A finished file under a passing name; removed unless it was put in place.
struct Staged<'d> {
    dir: &'d OwnedFd,
    name: &'d str,
}

impl Staged<'_> {
    fn put(&self, name: &str, expect: Expect<'_>) -> Result<(), Errno> {
        if matches!(expect, Expect::Absent) {
            // A link never replaces, also where somebody came between the look and this.
            match linkat(self.dir, self.name, self.dir, name, AtFlags::empty()) {
                Ok(()) => return Ok(()),
                Err(Errno::EXIST) => return Err(Errno::EXIST),
                // A file system without hard links: the look must do.
                Err(_) => {}
            }
        }
        renameat(self.dir, self.name, self.dir, name)
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        // After a rename nothing bears the name any more, and that is the usual error here.
        let _ = unlinkat(self.dir, self.name, AtFlags::empty());
    }
}

fn entry(name: String, stat: &rustix::fs::Stat) -> Entry {
    let kind = strange(FileType::from_raw_mode(stat.st_mode));
    let seconds = i128::from(stat.st_mtime) * 1_000_000_000;
    let changed = seconds + i128::from(stat.st_mtime_nsec);
    Entry { name, is_file: kind.is_none(), changed, kind: kind.unwrap_or("regular file") }
}

fn not_a_file(name: &str, kind: &'static str) -> MemoryError {
    MemoryError::NotAFile { file: name.to_owned(), kind }
}

/// What it is when it is no regular file.
fn strange(kind: FileType) -> Option<&'static str> {
    match kind {
        FileType::RegularFile => None,
        FileType::Directory => Some("directory"),
        FileType::Symlink => Some("symbolic link"),
        FileType::Fifo => Some("named pipe"),
        FileType::Socket => Some("socket"),
        FileType::CharacterDevice | FileType::BlockDevice => Some("device"),
        FileType::Unknown => Some("special file"),
    }
}

/// A name that no other writer has used, whatever became of it: process numbers come again, so most of it is chance. Who
/// holds the turn is the only one who makes such a file, and one that exists is never opened.
fn unique() -> String {
    let random = RandomState::new().build_hasher().finish();
    format!("{}-{random:016x}", std::process::id())
}

const PRIVATE: Mode = Mode::from_raw_mode(0o600);
const LOCK: &str = ".lock";
const PASSING: &str = ".passing-";
/// More names than this in one directory are no memories.
const ENTRIES: usize = 4_000;
/// How long a writer waits for its turn; a write takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_too_long_is_told_and_the_next_one_gets_it() {
        let dir = tempfile::tempdir().unwrap();
        let (one, other) = (Folder::open(dir.path()).unwrap(), Folder::open(dir.path()).unwrap());
        let turn = one.turn().unwrap();
        let busy = other.turn_within(Duration::from_millis(30)).unwrap_err();
        assert!(matches!(busy, MemoryError::Busy { .. }), "{busy}");
        drop(turn);
        other.turn_within(Duration::ZERO).unwrap();
    }

    #[test]
    fn a_removed_lock_file_lets_nobody_in_beside() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let stale = folder.lock_file().unwrap();
        unlinkat(&folder.dir, LOCK, AtFlags::empty()).unwrap();
        assert!(!folder.is_still(&stale));
        assert!(folder.turn_within(Duration::ZERO).unwrap().folder.holds(LOCK).unwrap());
        assert!(!folder.is_still(&stale), "another file has the name now");
    }

    #[test]
    fn a_write_is_held_against_what_was_expected() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let turn = folder.turn().unwrap();
        turn.write("a", b"one", Expect::Absent).unwrap();
        assert!(matches!(turn.write("a", b"two", Expect::Absent), Err(MemoryError::Exists(_))));
        for seen in [&b"on"[..], b"one!", b"two"] {
            assert!(matches!(turn.write("a", b"two", Expect::Bytes(seen)), Err(MemoryError::Changed(_))));
        }
        assert!(matches!(turn.write("b", b"two", Expect::Bytes(b"")), Err(MemoryError::Changed(_))));
        turn.write("a", b"two", Expect::Bytes(b"one")).unwrap();
        assert_eq!(folder.read("a", 3).unwrap().unwrap(), b"two");
        assert!(matches!(folder.read("a", 2), Err(MemoryError::TooLarge { .. })));
        assert_eq!(folder.entries().unwrap().len(), 1, "nothing is left beside it");
    }

    #[test]
    fn what_a_killed_writer_left_is_swept() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let left = format!("{PASSING}1-1-0");
        drop(File::from(
            openat(&folder.dir, left.as_str(), OFlags::CREATE | OFlags::WRONLY, PRIVATE).unwrap(),
        ));
        drop(folder.turn().unwrap());
        assert!(!folder.holds(&left).unwrap());
    }
}
