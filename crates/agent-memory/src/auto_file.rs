//! How far the memories of a session were extracted, on disk, and what that cost.

use std::collections::BTreeMap;
use std::path::Path;

use agent_core::{SessionId, Usage};
use serde::{Deserialize, Serialize};

use crate::beside::{Beside, RunClaim};
use crate::{AutoState, MemoryError};

/// `<data>/tmp/<session>/auto-memory.json`, beside the notes of the session, with which it goes (requirement C3).
///
/// Nothing is made on disk before the first write. The file is replaced as a whole, no link is followed, and calls block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AutoFile(Beside);

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
        Self(Beside::new(data, session))
    }

    /// What was kept; the default before there was anything.
    ///
    /// # Errors
    /// When the file cannot be read; [`MemoryError::Record`] when it is damaged.
    pub fn read(&self) -> Result<AutoRecord, MemoryError> {
        self.0.record(FILE)
    }

    /// Changes what is kept, while no other writer can come between. A damaged record begins anew: a run that looks at old
    /// entries again does less harm than none.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub fn update(&self, change: impl FnOnce(&mut AutoRecord)) -> Result<AutoRecord, MemoryError> {
        self.0.keep(FILE, change)
    }

    /// Claims the session for runs that extract memories; `None` while another process is at it.
    ///
    /// # Errors
    /// When the lock beside the record cannot be had.
    pub fn claim(&self) -> Result<Option<RunClaim>, MemoryError> {
        self.0.claim(CLAIM)
    }
}

const FILE: &str = "auto-memory.json";
/// Locked while the session is claimed.
const CLAIM: &str = ".auto-memory.claim";

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
        let damaged = file.read().unwrap_err().to_string();
        assert!(damaged.starts_with("`auto-memory.json` beside the session is damaged"), "{damaged}");
        let anew = file.update(|record| record.runs = 9).unwrap();
        assert_eq!(anew, AutoRecord { runs: 9, ..AutoRecord::default() }, "it begins anew");
        let claim = file.claim().unwrap();
        assert!(claim.is_some() && AutoFile::new(data.path(), &session).claim().unwrap().is_none());
        drop(claim);
        assert!(file.claim().unwrap().is_some());
        NotesFile::new(data.path(), &session).remove().unwrap();
        assert_eq!(file.read().unwrap(), AutoRecord::default());
    }
}
