//! Where the agent works: the real folder, the workspace around it, and the way from one to the other.

use std::path::{Path, PathBuf};

use agent_prompt::{RulePath, RuleRoot};

use crate::SourceError;

/// The name of what marks the root of a repository: a folder, or the file of a worktree or a submodule.
const MARK: &str = ".git";

/// A folder and the workspace it lies in.
#[derive(Debug)]
pub(super) struct Place {
    /// The real path of the folder.
    pub(super) folder: PathBuf,
    /// The real path of the workspace; the folder or one above it.
    pub(super) root: PathBuf,
    /// Whether the folder lies in a repository, as far as files say.
    pub(super) is_in_repository: bool,
}

/// The way from the root of the workspace to the folder.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Way {
    /// Names with `/` between them, as far as rule files can name them.
    pub(super) names: String,
    /// The first name that they cannot.
    pub(super) unnamed: Option<String>,
}

impl Place {
    /// Looks at the folder; the workspace is `root`, else the nearest folder that holds a repository, else the folder.
    pub(super) fn find(folder: &Path, root: Option<&Path>) -> Result<Self, SourceError> {
        let real = |path: &Path| {
            path.canonicalize().map_err(|cause| SourceError::new(format!("folder {}", path.display()), cause))
        };
        let folder = real(folder)?;
        let repository = folder.ancestors().find(|above| above.join(MARK).symlink_metadata().is_ok());
        let is_in_repository = repository.is_some();
        let root = match root {
            Some(root) => real(root)?,
            None => repository.unwrap_or(&folder).to_owned(),
        };
        if !folder.starts_with(&root) {
            let cause = format!("{} does not lie in it; name a folder above it", folder.display());
            return Err(SourceError::new(format!("workspace {}", root.display()), cause));
        }
        Ok(Self { folder, root, is_in_repository })
    }

    pub(super) fn way(&self) -> Way {
        let below = self.folder.strip_prefix(&self.root).unwrap_or(Path::new(""));
        let names = below.components().map(|name| name.as_os_str());
        let mut way = Way { names: String::new(), unnamed: None };
        for name in names {
            let longer = name.to_str().map(|name| format!("{}{name}/", way.names));
            match longer.filter(|longer| RulePath::new(RuleRoot::Workspace, longer).is_ok()) {
                Some(longer) => way.names = longer,
                None => {
                    way.unnamed = Some(name.to_string_lossy().into_owned());
                    break;
                }
            }
        }
        way
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(folder: &str, names: &str, unnamed: Option<&str>) {
        let (root, folder) = (PathBuf::from("/w"), Path::new("/w").join(folder));
        let way = Place { folder, root, is_in_repository: false }.way();
        assert_eq!(way, Way { names: names.into(), unnamed: unnamed.map(str::to_owned) });
    }

    #[test]
    fn the_way_is_followed_as_far_as_it_can_be_named() {
        check("", "", None);
        check("crates/a b/c", "crates/a b/c/", None);
        check("crates/~c", "crates/~c/", None);
        check("~c/d", "", Some("~c"));
        check("crates/two\nlines/d", "crates/", Some("two\nlines"));
    }

    #[cfg(unix)]
    #[test]
    fn a_name_that_is_not_text_ends_the_way() {
        use std::os::unix::ffi::OsStrExt as _;
        let odd = Path::new(std::ffi::OsStr::from_bytes(b"/w/a/\xFF/b"));
        let place = Place { folder: odd.to_owned(), root: "/w".into(), is_in_repository: false };
        assert_eq!(place.way(), Way { names: "a/".into(), unnamed: Some("\u{FFFD}".into()) });
    }
}
