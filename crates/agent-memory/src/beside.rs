//! The folder beside a session, `<data>/tmp/<session>`: records that runs beside it keep, and claims that one of all processes
//! has.

use std::fs::File;
use std::path::{Path, PathBuf};

use agent_core::SessionId;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::MemoryError;
use crate::folder::{Expect, Folder, Turn};
use crate::place::session_dir;

/// The folder. Nothing is made on disk before the first write or claim; records are replaced as a whole, no link is followed,
/// and calls block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Beside {
    dir: PathBuf,
}

/// The right to be the only run of one kind beside a session, held by one of all processes; dropping it lets it go, and so does
/// the death of the process.
#[derive(Debug)]
pub struct RunClaim {
    _lock: File,
}

impl Beside {
    pub(crate) fn new(data: &Path, session: &SessionId) -> Self {
        Self { dir: session_dir(data, session) }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The folder for a write, made where there is none.
    pub(crate) fn open(&self) -> Result<Folder, MemoryError> {
        Folder::open(&self.dir)
    }

    /// A file as text; `None` before it is first written.
    pub(crate) fn text(&self, name: &str, most: usize) -> Result<Option<String>, MemoryError> {
        match Folder::existing(&self.dir) {
            Ok(folder) => folder.text(name, most),
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(MemoryError::Open { path: self.dir.clone(), cause }),
        }
    }

    /// A record; the default before it is first written, and [`MemoryError::Record`] when it is damaged.
    pub(crate) fn record<T: DeserializeOwned + Default>(&self, name: &'static str) -> Result<T, MemoryError> {
        let text = self.text(name, RECORD_BYTES)?;
        text.map_or_else(
            || Ok(T::default()),
            |text| serde_json::from_str(&text).map_err(|cause| MemoryError::Record { file: name, cause }),
        )
    }

    /// Changes a record while no other writer can come between. One that is damaged is lost already, and begins anew: whoever
    /// goes by it reads it first, and is told.
    pub(crate) fn keep<T: Serialize + DeserializeOwned + Default>(
        &self,
        name: &'static str,
        change: impl FnOnce(&mut T),
    ) -> Result<T, MemoryError> {
        let folder = self.open()?;
        let turn = folder.turn()?;
        let before = folder.text(name, RECORD_BYTES)?;
        let mut record: T =
            before.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        change(&mut record);
        let text =
            serde_json::to_string(&record).map_err(|cause| MemoryError::Record { file: name, cause })?;
        put(&turn, name, text.as_bytes(), before.as_deref())?;
        Ok(record)
    }

    /// `None` while another process, or another run of this one, has it.
    pub(crate) fn claim(&self, name: &str) -> Result<Option<RunClaim>, MemoryError> {
        Ok(self.open()?.held(name)?.map(|_lock| RunClaim { _lock }))
    }

    /// Removes the folder. Where there is none, that is no error.
    pub(crate) fn remove(&self) -> Result<(), MemoryError> {
        #[expect(
            clippy::disallowed_methods,
            reason = "this crate owns the directory; links in it are removed, not followed"
        )]
        let removed = std::fs::remove_dir_all(&self.dir);
        match removed {
            Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => {
                Err(MemoryError::io(&self.dir.display().to_string(), "removed", cause))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// Writes a file in the place of what it was.
pub(crate) fn put(
    turn: &Turn<'_>,
    name: &str,
    bytes: &[u8],
    before: Option<&str>,
) -> Result<(), MemoryError> {
    turn.write(name, bytes, before.map_or(Expect::Absent, |before| Expect::Bytes(before.as_bytes())))
}

/// Most bytes of a record.
const RECORD_BYTES: usize = 64 * 1024;
