//! The workspace as a directory handle: every path is opened relative to it, and none leads out.

use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, FileType, FileTypeExt as _, Metadata, OpenOptions};

use super::{FileBytes, SandboxError};

/// The workspace.
#[derive(Debug)]
pub(super) struct Root {
    pub(super) dir: Dir,
    /// The real absolute path; for programs that need one, never to decide what is inside.
    pub(super) path: PathBuf,
    /// The path as the user wrote it, made absolute.
    given: PathBuf,
    /// Held from the last look at a file until its replacement, so that two writers of one sandbox take turns.
    pub(super) commit: Mutex<()>,
}

/// Something that exists in the workspace.
#[derive(Debug)]
pub(super) struct Real {
    /// Path without links and dots, relative to the workspace; `.` for the workspace itself.
    pub(super) path: PathBuf,
    pub(super) meta: Metadata,
}

impl Root {
    pub(super) fn open(root: &Path) -> Result<Self, SandboxError> {
        let shown = root.display().to_string();
        let failed = |source| SandboxError::io(&shown, "opened as a workspace", source);
        let path = root.canonicalize().map_err(failed)?;
        let dir = Dir::open_ambient_dir(&path, ambient_authority()).map_err(failed)?;
        let given = std::path::absolute(root).map_err(failed)?;
        Ok(Self { dir, path, given, commit: Mutex::new(()) })
    }

    /// Makes an absolute path inside the workspace relative. Only a translation: whether a path leads out is decided
    /// when it is opened.
    pub(super) fn relative(&self, path: &str) -> Result<PathBuf, SandboxError> {
        let given = Path::new(path);
        if given.is_relative() {
            return Ok(if path.is_empty() { PathBuf::from(".") } else { given.to_owned() });
        }
        let inside = given.strip_prefix(&self.path).or_else(|_| given.strip_prefix(&self.given));
        match inside {
            Ok(inside) if inside.as_os_str().is_empty() => Ok(PathBuf::from(".")),
            Ok(inside) => Ok(inside.to_owned()),
            Err(_) => Err(SandboxError::Outside { path: path.to_owned() }),
        }
    }

    /// What a path names, links followed inside the workspace.
    pub(super) fn real(&self, path: &str) -> Result<Real, SandboxError> {
        let relative = self.relative(path)?;
        let meta = self.dir.metadata(&relative).map_err(|error| self.explain(path, &relative, error))?;
        let real = self.dir.canonicalize(&relative).map_err(|error| self.explain(path, &relative, error))?;
        let real = if real.as_os_str().is_empty() { PathBuf::from(".") } else { real };
        Ok(Real { path: real, meta })
    }

    /// Where a path leads, whether something is there or not.
    pub(super) fn leads_to(&self, path: &str) -> Result<String, SandboxError> {
        let missing = match self.real(path) {
            Ok(real) => return Ok(shown(&real.path)),
            Err(error @ SandboxError::NotFound { .. }) => error,
            Err(other) => return Err(other),
        };
        let relative = self.relative(path)?;
        // What is not there has no links; but `..` behind it leads who knows where.
        let mut there = relative.as_path();
        while let (Some(parent), Some(name)) = (there.parent(), there.file_name()) {
            there = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            if self.is_link(&there.join(name)) {
                return Err(missing);
            }
            if let Ok(real) = self.dir.canonicalize(there) {
                let rest = relative.strip_prefix(there).unwrap_or(&relative);
                let is_plain =
                    rest.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
                return if is_plain { Ok(shown(&real.join(rest))) } else { Err(missing) };
            }
        }
        Err(missing)
    }

    /// A directory, for a command or a walk.
    pub(super) fn directory(&self, path: &str) -> Result<PathBuf, SandboxError> {
        let real = self.real(path)?;
        if real.meta.is_dir() {
            Ok(real.path)
        } else {
            Err(SandboxError::NotADirectory { path: path.to_owned() })
        }
    }

    /// All bytes of a regular file.
    pub(super) fn read(&self, path: &str, limit: u64) -> Result<FileBytes, SandboxError> {
        let real = self.real(path)?;
        regular(path, real.meta.file_type())?;
        let too_large = |len| SandboxError::TooLarge { path: path.to_owned(), len, limit };
        if real.meta.len() > limit {
            return Err(too_large(real.meta.len()));
        }
        let file = open_file(&self.dir, &real.path);
        let file = file.map_err(|error| self.explain(path, &real.path, error))?;
        let failed = |source| SandboxError::io(path, "read", source);
        // Asked again of the open file: what the path named a moment ago may have been swapped.
        regular(path, file.metadata().map_err(failed)?.file_type())?;
        let mut bytes = Vec::new();
        file.take(limit + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > limit {
            return Err(too_large(bytes.len() as u64));
        }
        Ok(FileBytes { path: shown(&real.path), bytes })
    }

    /// Tells a path that leads out from one that is not there and from other trouble.
    pub(super) fn explain(&self, path: &str, relative: &Path, error: io::Error) -> SandboxError {
        let path = path.to_owned();
        let kind = error.kind();
        // The system's own refusal has a number; one without was made by the confinement.
        if kind == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none() {
            SandboxError::Outside { path }
        } else if kind == io::ErrorKind::NotFound && self.is_link(relative) {
            SandboxError::Dangling { path }
        } else if matches!(kind, io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) {
            SandboxError::NotFound { path }
        } else {
            SandboxError::Io { path, action: "opened", source: error }
        }
    }

    /// Whether the path itself is a symbolic link.
    pub(super) fn is_link(&self, relative: &Path) -> bool {
        self.dir.symlink_metadata(relative).is_ok_and(|meta| meta.is_symlink())
    }
}

/// Opens a file by its real path: a link put there meanwhile is not followed, and a pipe does not block.
pub(super) fn open_file(dir: &Dir, path: &Path) -> io::Result<File> {
    dir.open_with(path, OpenOptions::new().read(true).nonblock(true).follow(FollowSymlinks::No))
}

/// A path as tools and stamps write it.
pub(super) fn shown(path: &Path) -> String {
    let parts = path.components().filter(|part| !matches!(part, Component::CurDir));
    let text = parts.map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/");
    if text.is_empty() { ".".to_owned() } else { text }
}

pub(super) fn regular(path: &str, kind: FileType) -> Result<(), SandboxError> {
    if kind.is_file() {
        return Ok(());
    }
    let special = "It was not opened, because reading it could block for ever; use bash if you must.";
    let (kind, hint) = if kind.is_dir() {
        ("directory", "Use glob to list its files, then name one of them.")
    } else if kind.is_fifo() {
        ("named pipe", special)
    } else if kind.is_socket() {
        ("socket", special)
    } else if kind.is_char_device() || kind.is_block_device() {
        ("device", special)
    } else {
        ("special file", special)
    };
    Err(SandboxError::NotAFile { path: path.to_owned(), kind, hint })
}
