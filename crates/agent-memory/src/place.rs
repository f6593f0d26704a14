//! Where memories and session notes lie: by priority, from trusted sources only.

use std::fs::OpenOptions;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use agent_core::SessionId;
use sha2::{Digest as _, Sha256};

/// Who may say where the memories lie (requirement C4). Settings that come with a project are none of them: a project that
/// somebody else wrote could point them at the user's keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "the sources that are trusted, in their order")]
pub enum TrustedSource {
    /// The program or the one who started it.
    Override,
    /// Settings of the machine's administrator.
    Managed,
    /// The user's settings for this workspace, which no repository holds.
    Local,
    /// The user's settings.
    User,
}

/// The directory of memories, and who chose it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryPlace {
    /// The directory; absolute.
    pub path: PathBuf,
    /// Who said so; `None` for the default of the project.
    pub said_by: Option<TrustedSource>,
}

/// A directory that cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the memory directory {path:?} ({source:?}) cannot be used: {why}", source = .said_by)]
#[non_exhaustive]
pub struct PlaceError {
    /// What was said.
    pub path: PathBuf,
    /// By whom.
    pub said_by: TrustedSource,
    /// What is wrong with it.
    pub why: &'static str,
}

impl MemoryPlace {
    /// The first directory that was said, in the order of [`TrustedSource`]; else `<data>/projects/<slug>/memory` with the
    /// [`project_slug`] of the project, which is the root of its main working tree, or the workspace where there is no git.
    ///
    /// # Errors
    /// When what was said first cannot be used. Nothing else is tried then, so that memories never land where nobody looks.
    pub fn resolve(
        said: &[(TrustedSource, PathBuf)],
        data: &Path,
        project: &Path,
    ) -> Result<Self, PlaceError> {
        let Some((said_by, path)) = said.iter().min_by_key(|(source, _)| *source) else {
            let path = data.join("projects").join(project_slug(project)).join("memory");
            return Ok(Self { path, said_by: None });
        };
        match fault(path) {
            Some(why) => Err(PlaceError { path: path.clone(), said_by: *said_by, why }),
            None => Ok(Self { path: path.clone(), said_by: Some(*said_by) }),
        }
    }
}

fn fault(path: &Path) -> Option<&'static str> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.starts_with(b"~") {
        return Some("`~` is not read here; write the whole path");
    }
    if !path.is_absolute() {
        return Some(
            "it is not absolute; write the whole path, so that it does not depend on where the program starts",
        );
    }
    if bytes.contains(&0) {
        return Some("it holds a NUL");
    }
    if path.components().any(|part| part == Component::ParentDir) {
        return Some("it holds `..`; write where it leads");
    }
    let parts = path.components().filter(|part| matches!(part, Component::Normal(_))).count();
    (parts < 2).then_some("it is the root of the disk or lies right below; name a folder of its own")
}

/// The folder name for a project: its path with all but letters, digits, `.` and `_` as `-`, the last 80 characters of
/// that, and eight digits of its hash, because `/a/b` and `/a-b` look alike.
///
/// ```
/// # use std::path::Path;
/// let slug = agent_memory::project_slug(Path::new("/srv/work/my app"));
/// assert!(slug.starts_with("srv-work-my-app-"));
/// ```
pub fn project_slug(root: &Path) -> String {
    let bytes = root.as_os_str().as_bytes();
    let plain = |byte: &u8| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_') { char::from(*byte) } else { '-' }
    };
    let slug: String = bytes.iter().map(plain).collect();
    let tail = slug.len().saturating_sub(SLUG_CHARS);
    let tail = slug[tail..].trim_matches(['-', '.']);
    let hash = agent_core::hex(&Sha256::digest(bytes)[..4]);
    if tail.is_empty() { hash } else { format!("{tail}-{hash}") }
}

/// The root of the project that a directory belongs to: the main working tree of its git repository, so that all working
/// trees share one memory; the directory itself where there is no git. Links are followed first.
///
/// A working tree that says it belongs to another repository is believed only when that one says so too: a folder that
/// somebody sent cannot ask for another project's memories.
pub fn project_root(dir: &Path) -> PathBuf {
    let dir = dir.canonicalize().or_else(|_| std::path::absolute(dir)).unwrap_or_else(|_| dir.to_owned());
    for tree in dir.ancestors() {
        let git = tree.join(".git");
        if git.is_dir() {
            return tree.to_owned();
        }
        if git.is_file() {
            return main_tree(&git).unwrap_or_else(|| tree.to_owned());
        }
    }
    dir
}

/// The main working tree behind a file `.git`, which says `gitdir: MAIN/.git/worktrees/NAME`; there `gitdir` says where the
/// file is. `None` for a submodule, which is a project of its own, and for what does not hold.
fn main_tree(git: &Path) -> Option<PathBuf> {
    let tree = git.parent()?;
    let given = first_line(git)?;
    let there = tree.join(given.strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
    let back = there.join(first_line(&there.join("gitdir"))?).canonicalize().ok()?;
    let worktrees = there.parent().filter(|parent| parent.ends_with(".git/worktrees"))?;
    let main = worktrees.parent()?.parent()?;
    (back == git.canonicalize().ok()?).then(|| main.to_owned())
}

fn first_line(file: &Path) -> Option<String> {
    if !file.is_file() {
        return None;
    }
    let mut text = String::new();
    let file = OpenOptions::new().read(true).open(file).ok()?;
    file.take(LINE_BYTES).read_to_string(&mut text).ok()?;
    text.lines().next().map(|line| line.trim().to_owned())
}

/// The directory of a session's own files, `<data>/tmp/<session>`, which goes with the session (requirement C2).
pub fn session_dir(data: &Path, session: &SessionId) -> PathBuf {
    // The name of a session is one part of a path: its type sees to that.
    data.join("tmp").join(session.as_str())
}

const SLUG_CHARS: usize = 80;
/// A path of the disk is not longer.
const LINE_BYTES: u64 = 8 * 1024;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn who_is_trusted_more_is_heard_first() {
        use TrustedSource::{Local, Managed, Override, User};
        let check = |said: &[(TrustedSource, &str)], expect: &str, by: Option<TrustedSource>| {
            let said: Vec<_> = said.iter().map(|(source, path)| (*source, PathBuf::from(path))).collect();
            let place = MemoryPlace::resolve(&said, Path::new("/data"), Path::new("/src/app")).unwrap();
            assert_eq!((place.path.to_str().unwrap(), place.said_by), (expect, by));
        };
        check(&[], "/data/projects/src-app-c0167fc9/memory", None);
        check(&[(User, "/u/m")], "/u/m", Some(User));
        check(&[(User, "/u/m"), (Local, "/l/m")], "/l/m", Some(Local));
        check(&[(User, "/u/m"), (Managed, "/m/m"), (Local, "/l/m")], "/m/m", Some(Managed));
        check(&[(Managed, "/m/m"), (Override, "/o/m")], "/o/m", Some(Override));
    }

    #[test]
    fn a_place_that_cannot_be_used_is_an_error() {
        let check = |path: &str, expect: &str| {
            let said = [(TrustedSource::User, PathBuf::from(path)), (TrustedSource::User, "/fine/m".into())];
            let error = MemoryPlace::resolve(&said, Path::new("/data"), Path::new("/p")).unwrap_err();
            assert!(error.to_string().contains(expect), "{path:?}: {error}");
        };
        check("", "not absolute");
        check("memory", "not absolute");
        check("./a", "not absolute");
        check("~/memory", "whole path");
        check("/", "root of the disk");
        check("/etc", "root of the disk");
        check("/a/../etc/x", "where it leads");
        check("/a/b\0", "NUL");
    }

    #[test]
    fn projects_that_look_alike_have_folders_of_their_own() {
        let slugs = ["/a/b", "/a-b", "/a b", "/A/b", "/a/b/"].map(|path| project_slug(Path::new(path)));
        for (at, slug) in slugs.iter().enumerate() {
            assert!(!slugs[..at].contains(slug), "{slugs:?}");
        }
    }

    #[test]
    fn working_trees_of_one_repository_are_one_project() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        let (main, tree, thief) = (base.join("main"), base.join("tree"), base.join("thief"));
        for dir in [
            main.join(".git/worktrees/tree"),
            main.join("src/deep"),
            tree.join("src"),
            thief.clone(),
            base.join("none"),
        ] {
            std::fs::DirBuilder::new().recursive(true).create(dir).unwrap();
        }
        let put = |path: PathBuf, text: String| {
            use std::io::Write as _;
            let file = OpenOptions::new().write(true).create(true).truncate(true).open(path);
            file.unwrap().write_all(text.as_bytes()).unwrap();
        };
        let admin = main.join(".git/worktrees/tree");
        put(admin.join("gitdir"), format!("{}\n", tree.join(".git").display()));
        put(tree.join(".git"), format!("gitdir: {}\n", admin.display()));
        put(thief.join(".git"), format!("gitdir: {}\n", admin.display()));
        assert_eq!(project_root(&main.join("src/deep")), main);
        assert_eq!(project_root(&tree.join("src")), main);
        assert_eq!(project_root(&thief), thief, "nobody said that it is one of its trees");
        put(tree.join(".git"), "gitdir: ../main/.git/modules/tree\n".to_owned());
        assert_eq!(project_root(&tree), tree);
        put(tree.join(".git"), String::new());
        assert_eq!(project_root(&tree), tree);
        assert_eq!(project_root(&base.join("none")), base.join("none"));
    }

    proptest! {
        #[test]
        fn a_slug_is_one_plain_name(path in "\\PC{0,200}") {
            let slug = project_slug(Path::new(&path));
            prop_assert!(slug.len() <= 90 && !slug.starts_with(['.', '-']));
            prop_assert!(slug.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)));
        }
    }
}
