//! Reading the text of a file below a folder that nothing leads out of.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};

/// Bytes of a rule file that are read at most. It is far above what a prompt takes of one, and keeps a file that was put
/// there by mistake out of memory.
pub(super) const FILE_BYTES: u64 = 1024 * 1024;

/// A folder as a handle: every path is opened relative to it.
#[derive(Debug)]
pub(super) struct Folder(Dir);

/// A text, and where it really is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileText {
    /// Relative to the folder, without symbolic links.
    pub(super) real: PathBuf,
    pub(super) text: String,
}

/// A file that is there and gives no text.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unread {
    #[error(
        "a symbolic link on its path leads out of the folder or is absolute; link relative to a file inside, or copy \
         the text"
    )]
    Outside,
    #[error("it is a symbolic link to a file that is not there; mend the link or remove it")]
    Dangling,
    #[error("it is not a regular file; put the text into a file of this name")]
    NotAFile,
    #[error("it has more than {FILE_BYTES} bytes; keep what the model must know and move the rest elsewhere")]
    TooLarge,
    #[error("its byte {at} is not UTF-8; save it as UTF-8")]
    NotUtf8 { at: usize },
    #[error("{0}; mend that, or remove it")]
    Io(#[from] io::Error),
}

impl Folder {
    /// `None` when there is no such folder.
    pub(super) fn open(path: &Path) -> Result<Option<Self>, Unread> {
        match Dir::open_ambient_dir(path, ambient_authority()) {
            Ok(dir) => Ok(Some(Self(dir))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if path.is_symlink() {
                    Err(Unread::Dangling)
                } else {
                    Ok(None)
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The text of a file; `None` when there is none.
    pub(super) fn read(&self, path: &str) -> Result<Option<FileText>, Unread> {
        let Some(real) = self.real(path)? else { return Ok(None) };
        if !self.0.metadata(&real)?.is_file() {
            return Err(Unread::NotAFile);
        }
        // A link put there meanwhile is not followed, and a pipe does not block.
        let mut options = OpenOptions::new();
        let file = self.0.open_with(&real, options.read(true).nonblock(true).follow(FollowSymlinks::No))?;
        // Asked again of the open file: what the path named a moment ago may have been swapped.
        if !file.metadata()?.is_file() {
            return Err(Unread::NotAFile);
        }
        let mut bytes = Vec::new();
        file.take(FILE_BYTES + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > FILE_BYTES {
            return Err(Unread::TooLarge);
        }
        let text = String::from_utf8(bytes)
            .map_err(|error| Unread::NotUtf8 { at: error.utf8_error().valid_up_to() })?;
        Ok(Some(FileText { real, text }))
    }

    /// The path with its links followed; `None` when nothing is there.
    fn real(&self, path: &str) -> Result<Option<PathBuf>, Unread> {
        let error = match self.0.canonicalize(path) {
            Ok(real) => return Ok(Some(real)),
            Err(error) => error,
        };
        let kind = error.kind();
        if matches!(kind, io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) {
            let is_link = self.0.symlink_metadata(path).is_ok_and(|meta| meta.is_symlink());
            return if is_link { Err(Unread::Dangling) } else { Ok(None) };
        }
        // The system's own refusal has a number; one without was made by the confinement.
        let is_confined = kind == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none();
        Err(if is_confined { Unread::Outside } else { error.into() })
    }
}
