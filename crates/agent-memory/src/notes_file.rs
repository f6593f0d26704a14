//! The notes of a session on disk, and what is kept beside them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use agent_core::{SessionId, Usage};
use serde::{Deserialize, Serialize};

use crate::beside::{Beside, RunClaim, put};
use crate::front::tidy;
use crate::{MemoryError, NotesState};

/// The session notes: `<data>/tmp/<session>/session-memory.md`, and the record of the last run beside it (requirement C2).
///
/// Nothing is made on disk before the first write. As with [`crate::MemoryDir`], writers take turns, files are replaced as a
/// whole, no link is followed, and calls block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotesFile(Beside);

/// What is kept beside the notes.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Sidecar {
    #[serde(flatten)]
    state: NotesState,
    /// Tokens of the runs that wrote, by model.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    usage: BTreeMap<String, Usage>,
}

/// Most bytes of the notes: they stand in for the conversation when it is compacted.
pub const NOTES_BYTES: usize = 48 * 1024;

impl NotesFile {
    /// The notes of a session of the program with this data directory.
    pub fn new(data: &Path, session: &SessionId) -> Self {
        Self(Beside::new(data, session))
    }

    /// Where the notes are, or would be.
    pub fn path(&self) -> PathBuf {
        self.0.path(NOTES)
    }

    /// The notes with `\n` line endings; `None` before they are first written.
    ///
    /// # Errors
    /// When there is something that cannot be read.
    pub fn read(&self) -> Result<Option<String>, MemoryError> {
        Ok(self.0.text(NOTES, NOTES_BYTES)?.map(|text| tidy(&text)))
    }

    /// Writes the notes, whatever they said before.
    ///
    /// # Errors
    /// When they are too long, or cannot be written.
    pub fn write(&self, text: &str) -> Result<(), MemoryError> {
        self.change(|_| Ok(text.to_owned()))
    }

    /// Changes the notes to what `edit` makes of them, while no other writer can come between. It is given `None` before they
    /// are first written.
    ///
    /// # Errors
    /// What `edit` says; when they become too long, or cannot be written.
    pub fn change(
        &self,
        edit: impl FnOnce(Option<&str>) -> Result<String, MemoryError>,
    ) -> Result<(), MemoryError> {
        let folder = self.0.open()?;
        let turn = folder.turn()?;
        let before = folder.text(NOTES, NOTES_BYTES)?;
        let text = tidy(&edit(before.as_deref().map(tidy).as_deref())?);
        if text.len() > NOTES_BYTES {
            return Err(MemoryError::LongNotes(text.len()));
        }
        put(&turn, NOTES, text.as_bytes(), before.as_deref())
    }

    /// What was kept of the last run; the default before there was one.
    ///
    /// # Errors
    /// When it cannot be read; [`MemoryError::Record`] when it is damaged.
    pub fn state(&self) -> Result<NotesState, MemoryError> {
        Ok(self.0.record::<Sidecar>(SIDECAR)?.state)
    }

    /// Tokens of the runs that wrote the notes, by model as `PROVIDER/MODEL`; they are in no sum of the session.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn usage(&self) -> Result<BTreeMap<String, Usage>, MemoryError> {
        Ok(self.0.record::<Sidecar>(SIDECAR)?.usage)
    }

    /// Keeps what is known of the last run. Call it after the notes are written: a program that dies between the two leaves
    /// notes that cover more than is said, which loses nothing.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn save(&self, state: &NotesState) -> Result<(), MemoryError> {
        self.0.keep(SIDECAR, |sidecar: &mut Sidecar| sidecar.state = *state).map(drop)
    }

    /// [`NotesFile::save`], and in the same write what the run spent on which model.
    ///
    /// # Errors
    /// As there.
    pub fn save_run(&self, state: &NotesState, model: &str, spent: &Usage) -> Result<(), MemoryError> {
        let change = |sidecar: &mut Sidecar| {
            sidecar.state = *state;
            *sidecar.usage.entry(model.to_owned()).or_default() += spent;
        };
        self.0.keep(SIDECAR, change).map(drop)
    }

    /// Claims the notes for a run that brings them up to date; `None` while another process has them. Writing does not wait
    /// for it: it keeps two runs from undoing what the other one says is covered.
    ///
    /// # Errors
    /// When the lock beside them cannot be had.
    pub fn claim(&self) -> Result<Option<RunClaim>, MemoryError> {
        self.0.claim(CLAIM)
    }

    /// Removes all that is kept beside the session, the notes and what was extracted of it: they go with it. A session without notes is no error.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove(&self) -> Result<(), MemoryError> {
        self.0.remove()
    }
}

const NOTES: &str = "session-memory.md";
const SIDECAR: &str = "session-memory.json";
/// Locked while the notes are claimed.
const CLAIM: &str = ".session-memory.claim";

#[cfg(test)]
mod tests {
    use agent_core::EntryId;

    use super::*;

    #[test]
    fn notes_live_and_go_with_their_session() {
        let data = tempfile::tempdir().unwrap();
        let notes = |session: &str| NotesFile::new(data.path(), &SessionId::new(session).unwrap());
        let (one, other) = (notes("one"), notes("other"));
        assert_eq!((one.read().unwrap(), one.state().unwrap()), (None, NotesState::default()));
        assert!(!data.path().join("tmp").exists(), "looking makes nothing");

        one.write("# Task\r\nMend it.\n").unwrap();
        one.change(|text| Ok(format!("{}Mended.\n", text.unwrap_or_default()))).unwrap();
        let state = NotesState { covers_to: Some(EntryId::at(9)), tokens: 1, calls: 2, runs: 3 };
        one.save(&state).unwrap();
        other.write("x").unwrap();
        assert_eq!(one.read().unwrap().as_deref(), Some("# Task\nMend it.\nMended.\n"));
        assert_eq!(one.state().unwrap(), state);

        let long = one.write(&"x".repeat(NOTES_BYTES + 1)).unwrap_err();
        assert!(matches!(long, MemoryError::LongNotes(_)), "{long}");
        one.remove().unwrap();
        one.remove().unwrap();
        assert_eq!((one.read().unwrap(), one.state().unwrap()), (None, NotesState::default()));
        assert_eq!(other.read().unwrap().as_deref(), Some("x"));
    }

    #[test]
    fn one_has_the_claim_and_what_runs_spent_is_kept_with_the_state() {
        let data = tempfile::tempdir().unwrap();
        let file = NotesFile::new(data.path(), &SessionId::new("one").unwrap());
        let claim = file.claim().unwrap().unwrap();
        assert!(file.claim().unwrap().is_none());
        file.write("x").unwrap();
        drop(claim);
        let claim = file.claim().unwrap().unwrap();

        let state = NotesState { covers_to: Some(EntryId::at(9)), tokens: 1, calls: 2, runs: 3 };
        let spent = Usage { input: 5, ..Usage::default() };
        file.save_run(&state, "a/b", &spent).unwrap();
        file.save_run(&state, "a/b", &spent).unwrap();
        let later = NotesState { runs: 4, ..state };
        file.save(&later).unwrap();
        assert_eq!(file.state().unwrap(), later);
        assert_eq!(file.usage().unwrap()["a/b"].input, 10);

        let folder = file.0.open().unwrap();
        let before = file.0.text(SIDECAR, NOTES_BYTES).unwrap();
        put(&folder.turn().unwrap(), SIDECAR, b"{", before.as_deref()).unwrap();
        assert!(matches!(file.state(), Err(MemoryError::Record { file: SIDECAR, .. })));
        file.save(&later).unwrap();
        assert_eq!((file.state().unwrap(), file.usage().unwrap()), (later, BTreeMap::new()));

        file.remove().unwrap();
        assert!(file.claim().unwrap().is_some(), "a lock on what was removed keeps nobody out");
        drop(claim);
    }
}
