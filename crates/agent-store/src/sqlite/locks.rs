//! One lock of the operating system for each session, free at once when its process dies (case D02).

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use agent_core::SessionId;

use crate::StoreError;

/// The lock files of a store. They are never deleted: a file that comes and goes would lock nothing.
#[derive(Debug)]
pub(super) struct Locks {
    dir: PathBuf,
}

/// A lock that is held; dropping it frees it.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Locks {
    /// Makes the directory of the store, and the one for locks in it.
    pub(super) fn open(dir: &Path) -> Result<Self, StoreError> {
        let locks = dir.join("locks");
        private_dirs().create(&locks).map_err(|cause| StoreError::Io { path: locks.clone(), cause })?;
        Ok(Self { dir: locks })
    }

    /// Takes the lock of a session, or says who has it.
    pub(super) fn take(&self, session: &SessionId) -> Result<Lock, StoreError> {
        let path = self.dir.join(format!("{session}.lock"));
        let io = |cause| StoreError::Io { path: path.clone(), cause };
        let mut file = lock_file(&path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => {
                let lock = Lock(file);
                lock.sign().map_err(io)?;
                Ok(lock)
            }
            Err(TryLockError::WouldBlock) => {
                Err(StoreError::Busy { session: session.clone(), pid: signature(&mut file) })
            }
            Err(TryLockError::Error(cause)) => Err(io(cause)),
        }
    }

    /// Waits for the lock under which a store is opened. No session has this name.
    pub(super) fn opening(&self) -> Result<Lock, StoreError> {
        let path = self.dir.join(".open");
        let locked = lock_file(&path).and_then(|file| file.lock().map(|()| Lock(file)));
        locked.map_err(|cause| StoreError::Io { path, cause })
    }
}

impl Lock {
    /// Writes this process's number for others to show; who holds the lock does not depend on it.
    fn sign(&self) -> std::io::Result<()> {
        self.0.set_len(0)?;
        (&self.0).write_all(std::process::id().to_string().as_bytes())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing alone would leave the lock to a child that is just being started. An error here means that
        // the file is gone, and its lock with it.
        drop(self.0.unlock());
    }
}

/// Files that only their owner can read.
pub(super) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

fn private_dirs() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

fn lock_file(path: &Path) -> std::io::Result<File> {
    private(OpenOptions::new().read(true).write(true).create(true).truncate(false)).open(path)
}

/// The number in the file; `None` when its owner has not written it yet, or the system does not let us read.
fn signature(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.parse().ok()
}
