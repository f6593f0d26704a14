//! Listing files: ignore files are respected, links are not followed, and every folder is opened by the workspace's
//! handle, so that one which is swapped for a link meanwhile leads nowhere.

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use agent_core::Cancel;
use cap_fs_ext::DirExt as _;
use cap_std::fs::{Dir, DirEntry, FileType, Metadata};

use super::ignores::Ignores;
use super::root::{Root, regular, shown};
use super::{SandboxError, Skip, Walk, Walked, WalkedFile};

pub(super) fn walk(root: &Root, walk: &Walk, cancel: &Cancel) -> Result<Walked, SandboxError> {
    let mut files = Vec::new();
    let walked = visit(root, walk, cancel, &mut |file| files.push(file))?;
    Ok(Walked { files, ..walked })
}

/// Hands on each file as it is found. It stops at the bound, and at the next entry once it is cancelled.
fn visit(
    root: &Root,
    walk: &Walk,
    cancel: &Cancel,
    found: &mut dyn FnMut(WalkedFile),
) -> Result<Walked, SandboxError> {
    let real = root.real(&walk.start)?;
    let start = real.path.strip_prefix(".").unwrap_or(&real.path).to_owned();
    let mut visit = Visit { root, walk, cancel, start: &start, walked: Walked::default(), found };
    if !visit.counts()? {
        return Ok(visit.walked);
    }
    if real.meta.is_dir() {
        visit.folders()?;
    } else {
        regular(&walk.start, real.meta.file_type())?;
        visit.file(&start, &real.meta);
    }
    Ok(visit.walked)
}

/// A walk on its way.
struct Visit<'v> {
    root: &'v Root,
    walk: &'v Walk,
    cancel: &'v Cancel,
    /// Relative to the workspace, empty for the workspace itself; as all paths here.
    start: &'v Path,
    walked: Walked,
    found: &'v mut dyn FnMut(WalkedFile),
}

/// A folder that is still to be listed. It is named and not held open: there may be more of them than handles.
struct Folder {
    path: PathBuf,
    /// What the folders above it ignore.
    above: Option<Rc<Ignores>>,
}

impl Visit<'_> {
    /// Counts an entry; whether there was room for it.
    fn counts(&mut self) -> Result<bool, SandboxError> {
        if self.cancel.is_cancelled() {
            return Err(SandboxError::Cancelled);
        }
        self.walked.more |= self.walked.entries == self.walk.most;
        self.walked.entries += u64::from(!self.walked.more);
        Ok(!self.walked.more)
    }

    fn folders(&mut self) -> Result<(), SandboxError> {
        let above = self.ignores_above();
        let mut waiting = vec![Folder { path: self.start.to_owned(), above }];
        while let Some(folder) = waiting.pop() {
            self.folder(folder, &mut waiting)?;
            if self.walked.more {
                break;
            }
        }
        Ok(())
    }

    /// Lists one folder; those in it wait for their turn.
    fn folder(&mut self, folder: Folder, waiting: &mut Vec<Folder>) -> Result<(), SandboxError> {
        let (dir, entries) = match open(self.root, &folder.path).and_then(|dir| Ok((dir.entries()?, dir))) {
            Ok((entries, dir)) => (dir, entries),
            Err(error) => return self.trouble(&error),
        };
        let ignores = self.enter(&dir, &folder.path, folder.above);
        for entry in entries {
            waiting.extend(self.entry(entry, &folder.path, ignores.as_ref())?);
            if self.walked.more {
                break;
            }
        }
        Ok(())
    }

    /// Looks at one entry; if it is a folder, that is to be listed too.
    fn entry(
        &mut self,
        entry: io::Result<DirEntry>,
        folder: &Path,
        ignores: Option<&Rc<Ignores>>,
    ) -> Result<Option<Folder>, SandboxError> {
        if self.cancel.is_cancelled() {
            return Err(SandboxError::Cancelled);
        }
        let (entry, kind) = match entry.and_then(|entry| Ok((kind(&entry)?, entry))) {
            Ok((kind, entry)) => (entry, kind),
            Err(error) => return self.trouble(&error).map(|()| None),
        };
        let path = folder.join(entry.file_name());
        if self.skips(&path, kind.is_dir(), ignores) || !self.counts()? {
            return Ok(None);
        }
        if kind.is_dir() {
            return Ok(Some(Folder { path, above: ignores.cloned() }));
        }
        // Asked through the handle: a link is a file only when what it names is one inside the workspace.
        let is_file = |path: &Path| self.root.dir.metadata(path).is_ok_and(|meta| meta.is_file());
        if kind.is_file() || kind.is_symlink() && is_file(&path) {
            match entry.metadata() {
                Ok(meta) => self.file(&path, &meta),
                Err(error) => self.trouble(&error)?,
            }
        }
        Ok(None)
    }

    fn skips(&self, path: &Path, is_dir: bool, ignores: Option<&Rc<Ignores>>) -> bool {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        if name == b".git" {
            return true;
        }
        let verdict = ignores.map_or(ignore::Match::None, |ignores| ignores.verdict(path, is_dir));
        // What an ignore file names as an exception is shown although it is hidden.
        let hidden = self.walk.skip == Skip::HiddenAndIgnored && name.starts_with(b".");
        verdict.is_ignore() || hidden && !verdict.is_whitelist()
    }

    fn file(&mut self, path: &Path, meta: &Metadata) {
        let within = path.strip_prefix(self.start).ok().filter(|within| !within.as_os_str().is_empty());
        let named = within.unwrap_or(path);
        if self.walk.glob.as_ref().is_none_or(|glob| glob.fits(&shown(named))) {
            let modified = meta.modified().ok().map(cap_std::time::SystemTime::into_std);
            (self.found)(WalkedFile { path: shown(path), modified });
        }
    }

    /// What vanished since it was named is as good as not there.
    fn trouble(&mut self, error: &io::Error) -> Result<(), SandboxError> {
        if self.counts()? {
            self.walked.unreadable += u64::from(error.kind() != io::ErrorKind::NotFound);
        }
        Ok(())
    }

    /// Ignore files of the folders from the workspace to where the walk begins.
    fn ignores_above(&self) -> Option<Rc<Ignores>> {
        let mut folders: Vec<&Path> = self.start.ancestors().skip(1).collect();
        folders.reverse();
        folders.into_iter().fold(None, |above, folder| match open(self.root, folder) {
            Ok(dir) => self.enter(&dir, folder, above),
            Err(_) => above,
        })
    }

    fn enter(&self, dir: &Dir, folder: &Path, above: Option<Rc<Ignores>>) -> Option<Rc<Ignores>> {
        if self.walk.skip == Skip::Nothing { None } else { Ignores::enter(self.root, dir, folder, above) }
    }
}

/// Opens a folder, and no link that took its place.
fn open(root: &Root, folder: &Path) -> io::Result<Dir> {
    root.dir.open_dir_nofollow(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
}

fn kind(entry: &DirEntry) -> io::Result<FileType> {
    match entry.file_type()? {
        known if known.is_file() || known.is_dir() || known.is_symlink() => Ok(known),
        // Some file systems do not say it in the listing.
        _ => Ok(entry.metadata()?.file_type()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A workspace with these empty files.
    fn workspace(files: u32) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        (0..files).for_each(|number| drop(root.dir.create(number.to_string()).unwrap()));
        (dir, root)
    }

    #[test]
    fn a_walk_stops_at_its_bound_and_says_so() {
        let (_dir, root) = workspace(5);
        let check = |most: u64, files: usize, more: bool| {
            let walked = walk(&root, &Walk { most, ..Walk::default() }, &Cancel::new()).unwrap();
            assert_eq!((walked.files.len(), walked.more, walked.unreadable), (files, more, 0), "{most}");
            assert!(walked.entries <= most);
        };
        // The directory itself is an entry.
        check(0, 0, true);
        check(1, 0, true);
        check(4, 3, true);
        check(6, 5, false);
        check(1_000, 5, false);
    }

    #[test]
    fn a_cancelled_walk_looks_at_nothing_more() {
        let (_dir, root) = workspace(50);
        let (cancel, mut seen) = (Cancel::new(), 0);
        let ended = visit(&root, &Walk::default(), &cancel, &mut |_| {
            seen += 1;
            if seen == 3 {
                cancel.cancel();
            }
        });
        assert!(matches!(ended, Err(SandboxError::Cancelled)));
        assert_eq!(seen, 3);
    }

    #[test]
    fn what_cannot_be_listed_is_counted() {
        let (_dir, root) = workspace(1);
        // A folder whose absolute path is longer than the system takes; not even an administrator can list it.
        let mut folder = root.dir.try_clone().unwrap();
        for _ in 0..17 {
            let name = "d".repeat(250);
            folder.create_dir(&name).unwrap();
            folder = folder.open_dir(&name).unwrap();
        }
        let walked = walk(&root, &Walk::default(), &Cancel::new()).unwrap();
        assert_eq!((walked.files.len(), walked.unreadable, walked.more), (1, 1, false));
    }

    /// Puts links out of the workspace in the place of all these folders but the one this path begins with.
    fn swap(root: &Root, folders: &[String], outside: &Path, but: &str) {
        let aside = Dir::open_ambient_dir(outside, cap_std::ambient_authority()).unwrap();
        for folder in folders.iter().filter(|folder| !but.starts_with(folder.as_str())) {
            root.dir.rename(folder, &aside, folder).unwrap();
            std::os::unix::fs::symlink(outside.join("secrets"), root.path.join(folder)).unwrap();
        }
    }

    /// Between the naming of a folder and its listing somebody puts a link in its place.
    #[test]
    fn a_folder_swapped_for_a_link_leads_nowhere() {
        let (outside, (_dir, root)) = (tempfile::tempdir().unwrap(), workspace(0));
        let folders: Vec<String> = (10..40).map(|number| format!("d{number}")).collect();
        let beside = Dir::open_ambient_dir(outside.path(), cap_std::ambient_authority()).unwrap();
        beside.create_dir_all("secrets/deep").unwrap();
        drop(beside.create("secrets/deep/secret").unwrap());
        for folder in &folders {
            root.dir.create_dir_all(format!("{folder}/deep")).unwrap();
            drop(root.dir.create(format!("{folder}/deep/f")).unwrap());
        }
        let mut names = Vec::new();
        let walked = visit(&root, &Walk::default(), &Cancel::new(), &mut |file| {
            if names.is_empty() {
                swap(&root, &folders, outside.path(), &file.path);
            }
            names.push(file.path);
        });
        assert_eq!((names.len(), walked.unwrap().unreadable), (1, 29), "{names:?}");
    }
}
