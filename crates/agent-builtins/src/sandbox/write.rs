//! Writing a file in one step: beside it, to disk, and into its place if it still is what the writer saw.

use std::io::{self, Read as _, Write as _};
use std::path::{Component, Path, PathBuf};
use std::sync::PoisonError;

use agent_tools::ToolError;
use cap_std::fs::{Dir, File, Metadata, OpenOptions, OpenOptionsExt as _};

use super::root::{Root, open_file, regular, shown};
use super::unique::unique;
use super::{Expect, FileWrite, Fingerprint, SandboxError};

/// Where a file goes: a directory that exists and a name in it.
struct Target {
    parent: Dir,
    name: PathBuf,
    /// Real path relative to the workspace.
    path: PathBuf,
    existing: Option<Metadata>,
}

/// A finished file under a passing name; removed unless it was put in place.
struct Staged<'d> {
    dir: &'d Dir,
    name: String,
}

/// `checked` is the real path that permission was given for.
pub(super) fn write(root: &Root, write: &FileWrite, checked: Option<&str>) -> Result<String, SandboxError> {
    let target = locate(root, &write.path)?;
    if let Some(checked) = checked.filter(|checked| *checked != shown(&target.path)) {
        let (checked, found) = (checked.to_owned(), shown(&target.path));
        return Err(SandboxError::Permit(ToolError::MovedPath { checked, found }));
    }
    if target.existing.as_ref().is_some_and(|meta| meta.permissions().readonly()) {
        return Err(SandboxError::ReadOnly { path: write.path.clone() });
    }
    let failed = |source| SandboxError::io(&write.path, "written", source);
    let staged = stage(&target, &write.bytes).map_err(failed)?;
    {
        let _turn = root.commit.lock().unwrap_or_else(PoisonError::into_inner);
        verify(&target, write)?;
        staged.put(&target, write)?;
    }
    // Without this the new name may be lost with the power, although the bytes are on disk.
    target.parent.open(".").and_then(|dir| dir.sync_all()).map_err(failed)?;
    Ok(shown(&target.path))
}

fn locate(root: &Root, path: &str) -> Result<Target, SandboxError> {
    let failed = |source| SandboxError::io(path, "written", source);
    let (real, existing) = match root.real(path) {
        Ok(real) => {
            regular(path, real.meta.file_type())?;
            (real.path, Some(real.meta))
        }
        Err(SandboxError::NotFound { .. }) => (fresh(root, path)?, None),
        Err(other) => return Err(other),
    };
    let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else {
        return Err(SandboxError::Outside { path: path.to_owned() });
    };
    let opened = if parent.as_os_str().is_empty() { root.dir.try_clone() } else { root.dir.open_dir(parent) };
    Ok(Target { parent: opened.map_err(failed)?, name: name.into(), existing, path: real.clone() })
}

/// The real path of a file to be, with its directories made.
fn fresh(root: &Root, path: &str) -> Result<PathBuf, SandboxError> {
    let relative = root.relative(path)?;
    let missing = || SandboxError::NotFound { path: path.to_owned() };
    let name = relative.file_name().ok_or_else(missing)?;
    if path.ends_with('/') {
        return Err(SandboxError::NotAFile {
            path: path.to_owned(),
            kind: "directory name",
            hint: "Name a file in it; directories are made as needed.",
        });
    }
    let parent = match relative.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => return Ok(PathBuf::from(name)),
    };
    let explain = |error| root.explain(path, parent, error);
    if root.dir.metadata(parent).is_err() {
        // Directories are made only along a plain path: `new/../x` would leave `new` behind.
        if parent.components().any(|part| matches!(part, Component::ParentDir)) {
            return Err(root.dir.metadata(parent).map_or_else(explain, |_| missing()));
        }
        root.dir.create_dir_all(parent).map_err(explain)?;
    }
    let parent = root.dir.canonicalize(parent).map_err(explain)?;
    Ok(parent.join(name))
}

fn stage<'t>(target: &'t Target, bytes: &[u8]) -> io::Result<Staged<'t>> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    if target.existing.is_some() {
        // Nobody may read it before it has the mode of the file it replaces.
        options.mode(0o600);
    }
    let (name, mut file) = passing(&mut || {
        let name = format!(".agent-{}.tmp", unique());
        target.parent.open_with(&name, &options).map(|file| (name, file))
    })?;
    let staged = Staged { dir: &target.parent, name };
    file.write_all(bytes)?;
    if let Some(meta) = &target.existing {
        file.set_permissions(meta.permissions())?;
    }
    file.sync_all()?;
    Ok(staged)
}

/// Tries again while the name is taken: what a killed process left behind is in nobody's way.
fn passing<T>(create: &mut dyn FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 1..TRIES {
        match create() {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => return other,
        }
    }
    create()
}

/// The last look before the replacement (case T09).
fn verify(target: &Target, write: &FileWrite) -> Result<(), SandboxError> {
    let now = open_file(&target.parent, &target.name).and_then(fingerprint);
    let changed = || SandboxError::Changed { path: write.path.clone() };
    match (&write.expect, now) {
        (Expect::Same(seen), Ok(now)) if *seen == now => Ok(()),
        (Expect::Same(_), Ok(_)) => Err(changed()),
        (Expect::Same(_), Err(error)) if error.kind() == io::ErrorKind::NotFound => Err(changed()),
        (Expect::Absent, Err(error)) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        (Expect::Absent, Ok(_)) => Err(SandboxError::Appeared { path: write.path.clone() }),
        (_, Err(source)) => Err(SandboxError::io(&write.path, "checked before writing", source)),
    }
}

fn fingerprint(mut file: File) -> io::Result<Fingerprint> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(Fingerprint::of(&bytes))
}

impl Staged<'_> {
    fn put(&self, target: &Target, write: &FileWrite) -> Result<(), SandboxError> {
        let name: &Path = &target.name;
        if write.expect == Expect::Absent {
            // A link never replaces: of two creators one wins and the other is told.
            match self.dir.hard_link(&self.name, self.dir, name) {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    return Err(SandboxError::Appeared { path: write.path.clone() });
                }
                // A file system without hard links: the look above must do.
                Err(_) => {}
            }
        }
        let renamed = self.dir.rename(&self.name, self.dir, name);
        renamed.map_err(|source| SandboxError::io(&write.path, "put in place", source))
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        // After a rename nothing bears the name any more, and that is the usual error here.
        let _ = self.dir.remove_file(&self.name);
    }
}

const TRIES: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_name_is_passed_over_and_other_trouble_is_told() {
        let check = |errors: &[io::ErrorKind], expect: Result<usize, io::ErrorKind>| {
            let mut tried = 0;
            let made = passing(&mut || {
                tried += 1;
                errors.get(tried - 1).map_or(Ok(tried), |kind| Err((*kind).into()))
            });
            assert_eq!(made.map_err(|error| error.kind()), expect);
        };
        use io::ErrorKind::{AlreadyExists, PermissionDenied};
        check(&[], Ok(1));
        check(&[AlreadyExists, AlreadyExists], Ok(3));
        check(&[AlreadyExists, PermissionDenied], Err(PermissionDenied));
        check(&[AlreadyExists; TRIES], Err(AlreadyExists));
    }

    /// What killed processes of the same number would have left behind, had they begun to count at nothing.
    #[test]
    fn what_a_killed_process_left_behind_is_in_nobodys_way() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        for number in 0..100 {
            drop(root.dir.create(format!(".agent-{}-{number}.tmp", std::process::id())).unwrap());
        }
        let file = FileWrite { path: "f".to_owned(), bytes: b"x".to_vec(), expect: Expect::Absent };
        assert_eq!(write(&root, &file, None).unwrap(), "f");
    }
}
