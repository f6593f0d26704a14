//! Ignore files of the workspace, read through its handle and in bounded size.

use std::iter::successors;
use std::path::Path;
use std::rc::Rc;

use cap_std::fs::Dir;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::root::Root;

/// What the ignore files of a folder and of those above it say. Files above the workspace and in the user's home are
/// not the project's.
#[derive(Debug)]
pub(super) struct Ignores {
    above: Option<Rc<Ignores>>,
    /// One a name in `NAMES`.
    own: [Gitignore; NAMES.len()],
}

impl Ignores {
    /// Adds the folder's own, if it has any, to those above it.
    pub(super) fn enter(root: &Root, dir: &Dir, folder: &Path, above: Option<Rc<Self>>) -> Option<Rc<Self>> {
        let own = NAMES.map(|name| read(root, dir, folder, name));
        if own.iter().all(Gitignore::is_empty) {
            return above;
        }
        Some(Rc::new(Self { above, own }))
    }

    /// The word on a path below that folder. A nearer file outweighs a farther one, but an earlier name always a later.
    pub(super) fn verdict(&self, path: &Path, is_dir: bool) -> Match<()> {
        let said = (0..NAMES.len()).flat_map(|name| {
            let folders = successors(Some(self), |ignores| ignores.above.as_deref());
            folders.map(move |ignores| ignores.own[name].matched(path, is_dir).map(drop))
        });
        said.into_iter().find(|word| !word.is_none()).unwrap_or(Match::None)
    }
}

/// A file that is missing, faulty, too large or no file of the workspace ignores nothing.
fn read(root: &Root, dir: &Dir, folder: &Path, name: &str) -> Gitignore {
    let path = folder.join(name);
    let there = dir.symlink_metadata(name).is_ok_and(|meta| meta.is_file() || meta.is_symlink());
    let Some(path) = path.to_str().filter(|_| there) else { return Gitignore::empty() };
    let Ok(file) = root.read(path, LARGEST) else { return Gitignore::empty() };
    let text = String::from_utf8_lossy(&file.bytes);
    let top = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let mut builder = GitignoreBuilder::new(top);
    for line in text.trim_start_matches('\u{feff}').lines().take(MOST_LINES) {
        // A faulty line says nothing; the others still do.
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

const NAMES: [&str; 3] = [".ignore", ".gitignore", ".git/info/exclude"];
/// Bytes of one file; what is larger was not written to be read line by line.
const LARGEST: u64 = 1024 * 1024;
/// Each line costs far more memory than its bytes.
const MOST_LINES: usize = 20_000;
