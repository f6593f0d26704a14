//! How far the memories of a session were extracted, on disk, and what that cost.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use agent_core::{SessionId, Usage};
use serde::{Deserialize, Serialize};

use crate::folder::Folder;
use crate::notes_file::put;
use crate::place::session_dir;
use crate::{AutoState, MemoryError};

/// `<data>/tmp/<session>/auto-memory.json`, beside the notes of the session, with which it goes (requirement C3).
///
/// Nothing is made on disk before the first write. The file is replaced as a whole, no link is followed, and calls block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AutoFile {
    dir: PathBuf,
}

/// What is kept of the runs that extracted memories of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "a record, extended only with serde defaults")]
pub struct AutoRecord {
    /// How far they came.
    #[serde(default)]
    pub state: AutoState,
    /// How many there were, those that failed included.
    #[serde(default)]
    pub runs: u64,
    /// Their tokens by model, as `PROVIDER/MODEL`; in no sum of the session.
    #[serde(default)]
    pub usage: BTreeMap<String, Usage>,
}

impl AutoFile {
    /// The record of a session of the program with this data directory.
    pub fn new(data: &Path, session: &SessionId) -> Self {
        Self { dir: session_dir(data, session) }
    }

    /// What was kept; the default before there was anything, and where it is no such record.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(&self) -> Result<AutoRecord, MemoryError> {
        let folder = match Folder::existing(&self.dir) {
            Ok(folder) => folder,
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(AutoRecord::default()),
            Err(cause) => return Err(MemoryError::Open { path: self.dir.clone(), cause }),
        };
        Ok(parsed(folder.text(FILE, BYTES)?.as_deref()))
    }

    /// Changes what is kept, while no other writer can come between.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub fn update(&self, change: impl FnOnce(&mut AutoRecord)) -> Result<AutoRecord, MemoryError> {
        let folder = Folder::open(&self.dir)?;
        let turn = folder.turn()?;
        let before = folder.text(FILE, BYTES)?;
        let mut record = parsed(before.as_deref());
        change(&mut record);
        let text = serde_json::to_string(&record).map_err(MemoryError::Sidecar)?;
        put(&turn, FILE, text.as_bytes(), before.as_deref())?;
        Ok(record)
    }
}

/// What cannot be read is lost already, and begins anew: a run that looks at old entries again does less harm than none.
fn parsed(text: Option<&str>) -> AutoRecord {
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

const FILE: &str = "auto-memory.json";
const BYTES: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use agent_core::EntryId;

    use super::*;
    use crate::NotesFile;

    #[test]
    fn what_is_kept_lives_and_goes_with_its_session() {
        let data = tempfile::tempdir().unwrap();
        let session = SessionId::new("one").unwrap();
        let file = AutoFile::new(data.path(), &session);
        assert_eq!(file.read().unwrap(), AutoRecord::default());
        assert!(!data.path().join("tmp").exists(), "looking makes nothing");
        for _ in 0..2 {
            let change = |record: &mut AutoRecord| {
                record.runs += 1;
                record.state.cursor = EntryId::at(7);
                *record.usage.entry("a/b".into()).or_default() += &Usage { output: 3, ..Usage::default() };
            };
            let record = file.update(change).unwrap();
            assert_eq!(AutoFile::new(data.path(), &session).read().unwrap(), record);
        }
        let record = file.read().unwrap();
        assert_eq!((record.runs, record.state.cursor, record.usage["a/b"].output), (2, EntryId::at(7), 6));
        let beside = NotesFile::new(data.path(), &session).path().with_file_name(FILE);
        #[expect(clippy::disallowed_methods, reason = "the test breaks the file")]
        std::fs::write(beside, "{").unwrap();
        assert_eq!(file.read().unwrap(), AutoRecord::default(), "what cannot be read begins anew");
        assert_eq!(file.update(|record| record.runs = 9).unwrap().runs, 9);
        NotesFile::new(data.path(), &session).remove().unwrap();
        assert_eq!(file.read().unwrap(), AutoRecord::default());
    }
}
