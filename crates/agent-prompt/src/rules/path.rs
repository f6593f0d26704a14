//! Paths of rule files, which cannot lead out of the folder they are relative to.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The folder a rule file's path is relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RuleRoot {
    /// The user's folder of settings.
    User,
    /// The workspace.
    Workspace,
    /// The folder of whoever runs the agent.
    Managed,
}

/// A path below a root: `/` between names, no `.` or `..`, never absolute.
///
/// That a name on the way is a symbolic link is for whoever reads the file to refuse.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RulePath {
    root: RuleRoot,
    /// Invariant: normalised; empty only for the root itself.
    names: Vec<String>,
}

/// Why a path is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathRefusal {
    /// It begins at the root of a file system, a drive or a home folder.
    #[error("it is absolute; write it relative to the file that names it")]
    Absolute,
    /// It leads out of its root.
    #[error("it leads out of the folder that the rules may come from; move the file inside")]
    Escape,
    /// It holds a backslash or a control character.
    #[error("it holds a backslash or a control character; write it with `/` between names")]
    Characters,
    /// It names no file.
    #[error("it names no file")]
    Empty,
}

impl RulePath {
    /// A file below a root.
    pub fn new(root: RuleRoot, path: &str) -> Result<Self, PathRefusal> {
        Self { root, names: Vec::new() }.joined(path)?.named()
    }

    /// The file that `target`, written in this file, means.
    pub fn import(&self, target: &str) -> Result<Self, PathRefusal> {
        let (_, folder) = self.names.split_last().ok_or(PathRefusal::Empty)?;
        Self { root: self.root, names: folder.to_vec() }.joined(target)?.named()
    }

    /// The folder it is relative to.
    pub fn root(&self) -> RuleRoot {
        self.root
    }

    /// The path relative to its root, with `/` between names.
    pub fn relative(&self) -> String {
        self.names.join("/")
    }

    /// The folders from the root down to `folder`, as prefixes for a name: `""`, `"a/"`, `"a/b/"`.
    pub(crate) fn prefixes(folder: &str) -> Result<Vec<String>, PathRefusal> {
        let folder = Self { root: RuleRoot::Workspace, names: Vec::new() }.joined(folder)?;
        let prefix = |depth: usize| folder.names.iter().take(depth).map(|name| format!("{name}/")).collect();
        Ok((0..=folder.names.len()).map(prefix).collect())
    }

    fn joined(mut self, path: &str) -> Result<Self, PathRefusal> {
        if path.starts_with(['/', '~']) || path.get(1..2) == Some(":") {
            return Err(PathRefusal::Absolute);
        }
        if path.chars().any(|character| character == '\\' || character.is_control()) {
            return Err(PathRefusal::Characters);
        }
        for name in path.split('/') {
            match name {
                "" | "." => {}
                ".." => drop(self.names.pop().ok_or(PathRefusal::Escape)?),
                name => self.names.push(name.to_owned()),
            }
        }
        Ok(self)
    }

    fn named(self) -> Result<Self, PathRefusal> {
        if self.names.is_empty() { Err(PathRefusal::Empty) } else { Ok(self) }
    }
}

impl fmt::Display for RulePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.root {
            RuleRoot::Workspace => f.write_str(&self.relative()),
            RuleRoot::User => write!(f, "user:{}", self.relative()),
            RuleRoot::Managed => write!(f, "managed:{}", self.relative()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(target: &str, expect: Result<&str, PathRefusal>) {
        let file = RulePath::new(RuleRoot::Workspace, "crates/a/AGENTS.md").unwrap();
        assert_eq!(file.import(target).map(|path| path.to_string()), expect.map(str::to_owned), "{target:?}");
    }

    #[test]
    fn imports_stay_below_their_root() {
        check("style.md", Ok("crates/a/style.md"));
        check("./docs//style.md", Ok("crates/a/docs/style.md"));
        check("../b/style.md", Ok("crates/b/style.md"));
        check("../../style.md", Ok("style.md"));
        check("../../../style.md", Err(PathRefusal::Escape));
        check("x/../../../../style.md", Err(PathRefusal::Escape));
        check("/etc/hosts", Err(PathRefusal::Absolute));
        check("~/notes.md", Err(PathRefusal::Absolute));
        check("C:/notes.md", Err(PathRefusal::Absolute));
        check("..\\..\\notes.md", Err(PathRefusal::Characters));
        check("a\u{0}b", Err(PathRefusal::Characters));
        check("../..", Err(PathRefusal::Empty));
        check("", Ok("crates/a"));
    }

    #[test]
    fn prefixes_go_down() {
        assert_eq!(RulePath::prefixes("").unwrap(), [""]);
        assert_eq!(RulePath::prefixes("a/./b/").unwrap(), ["", "a/", "a/b/"]);
        assert_eq!(RulePath::prefixes("../b"), Err(PathRefusal::Escape));
    }

    proptest::proptest! {
        #[test]
        fn no_import_escapes(target in "(\\.\\./|\\./|a/|/|~|b){0,8}") {
            let file = RulePath::new(RuleRoot::User, "a/AGENTS.md").unwrap();
            if let Ok(path) = file.import(&target) {
                let relative = path.relative();
                proptest::prop_assert!(!relative.starts_with('/') && !relative.is_empty());
                proptest::prop_assert!(relative.split('/').all(|name| !matches!(name, "" | "." | "..")));
                proptest::prop_assert_eq!(path.root(), RuleRoot::User);
            }
        }
    }
}
