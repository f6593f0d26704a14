//! Listing files: ignore files are respected, links are not followed.

use std::path::{Path, PathBuf};

use agent_core::Cancel;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::{DirEntry, WalkBuilder};

use super::root::{Root, shown};
use super::{SandboxError, Skip, Walk, Walked, WalkedFile};

pub(super) fn walk(root: &Root, walk: &Walk, cancel: &Cancel) -> Result<Walked, SandboxError> {
    let start = root.real(&walk.start)?.path;
    let mut walked = Walked { files: Vec::new(), start: shown(&start) };
    for entry in builder(root, &start, walk.skip).build() {
        if cancel.is_cancelled() {
            return Err(SandboxError::Cancelled);
        }
        // What cannot be listed (no permission, vanished meanwhile) is as good as not there.
        let Ok(entry) = entry else { continue };
        walked.files.extend(file(root, &start, walk, &entry));
    }
    Ok(walked)
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
