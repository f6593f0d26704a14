//! Listing files: ignore files are respected, links are not followed.

use std::io;
use std::path::{Path, PathBuf};

use agent_core::Cancel;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::{DirEntry, WalkBuilder};

use super::root::{Root, shown};
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
    let start = root.real(&walk.start)?.path;
    let mut walked = Walked::default();
    for entry in builder(root, &start, walk.skip).build() {
        if cancel.is_cancelled() {
            return Err(SandboxError::Cancelled);
        }
        if walked.entries == walk.most {
            walked.more = true;
            break;
        }
        walked.entries += 1;
        match entry {
            Ok(entry) => file(root, &start, walk, &entry).into_iter().for_each(&mut *found),
            Err(error) => walked.unreadable += u64::from(!vanished(&error)),
        }
    }
    Ok(walked)
}

/// What vanished since it was named is as good as not there.
fn vanished(error: &ignore::Error) -> bool {
    error.io_error().is_some_and(|error| error.kind() == io::ErrorKind::NotFound)
}

fn builder(root: &Root, start: &Path, skip: Skip) -> WalkBuilder {
    let absolute = if start == Path::new(".") { root.path.clone() } else { root.path.join(start) };
    let mut builder = WalkBuilder::new(&absolute);
    let ignoring = skip != Skip::Nothing;
    builder
        .follow_links(false)
        // Ignore files above the workspace and in the user's home are not the project's.
        .parents(false)
        .git_global(false)
        .require_git(false)
        .ignore(ignoring)
        .git_ignore(ignoring)
        .git_exclude(ignoring)
        .hidden(skip == Skip::HiddenAndIgnored);
    let above = if ignoring { ignores_above(root, start) } else { Vec::new() };
    builder.filter_entry(move |entry| {
        let own = entry.depth() > 0 && entry.file_name() == ".git";
        !own && (entry.depth() == 0 || !is_ignored(&above, entry))
    });
    builder
}

/// Ignore files between the workspace and where the walk begins, nearest first.
fn ignores_above(root: &Root, start: &Path) -> Vec<Gitignore> {
    let relative = start.strip_prefix(".").unwrap_or(start);
    let above = relative.ancestors().skip(1).map(|folder| root.path.join(folder));
    let read = |folder: PathBuf| {
        let mut builder = GitignoreBuilder::new(&folder);
        // A missing or faulty ignore file ignores nothing.
        let _ = builder.add(folder.join(".gitignore"));
        let _ = builder.add(folder.join(".ignore"));
        builder.build().ok()
    };
    above.filter_map(read).collect()
}

fn is_ignored(above: &[Gitignore], entry: &DirEntry) -> bool {
    let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
    let verdict = above.iter().map(|one| one.matched(entry.path(), is_dir)).find(|found| !found.is_none());
    verdict.is_some_and(|found| found.is_ignore())
}

fn file(root: &Root, start: &Path, walk: &Walk, entry: &DirEntry) -> Option<WalkedFile> {
    let kind = entry.file_type()?;
    let relative = entry.path().strip_prefix(&root.path).ok()?;
    // Asked through the handle: a link is a file only when what it names is one inside the workspace.
    let is_file = |relative: &Path| root.dir.metadata(relative).is_ok_and(|meta| meta.is_file());
    if !(kind.is_file() || kind.is_symlink() && is_file(relative)) {
        return None;
    }
    let within = relative.strip_prefix(start).ok().filter(|within| !within.as_os_str().is_empty());
    let named = within.unwrap_or(relative);
    if walk.glob.as_ref().is_some_and(|glob| !glob.fits(&shown(named))) {
        return None;
    }
    let modified = entry.metadata().ok().and_then(|meta| meta.modified().ok());
    Some(WalkedFile { path: shown(relative), modified })
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
}
