//! Globs over paths: a pattern without `/` means a file name anywhere.

use globset::{GlobBuilder, GlobMatcher};

use super::SandboxError;

/// A glob that was checked. `*` stays within one name, `**/` crosses directories.
#[derive(Debug, Clone)]
pub struct Glob {
    matcher: GlobMatcher,
    names_only: bool,
    hidden: bool,
}

impl Glob {
    /// Checks a pattern; the error says what is wrong with it.
    pub fn new(pattern: &str) -> Result<Self, SandboxError> {
        let bad = |why: String| SandboxError::Glob { pattern: pattern.to_owned(), why };
        let trimmed = pattern.strip_prefix("./").unwrap_or(pattern);
        if trimmed.is_empty() {
            return Err(bad("it is empty".to_owned()));
        }
        if trimmed.starts_with('/') || trimmed.split('/').any(|part| part == "..") {
            return Err(bad("it must lie inside the workspace; name the directory in `path`".to_owned()));
        }
        let glob = GlobBuilder::new(trimmed).literal_separator(true).build();
        let matcher = glob.map_err(|error| bad(error.kind().to_string()))?.compile_matcher();
        let hidden = trimmed.split('/').any(|part| part.starts_with('.'));
        Ok(Self { matcher, names_only: !trimmed.contains('/'), hidden })
    }

    /// Whether a path, relative to where the walk began, fits.
    pub fn fits(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        self.matcher.is_match(if self.names_only { name } else { path })
    }

    /// Whether the pattern itself names something hidden, as `.github/**` does.
    pub fn names_hidden(&self) -> bool {
        self.hidden
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stays_within_a_name() {
        let check = |pattern: &str, path: &str, expect: bool| {
            assert_eq!(Glob::new(pattern).unwrap().fits(path), expect, "{pattern} {path}");
        };
        check("*.rs", "src/deep/a.rs", true);
        check("src/*.rs", "src/a.rs", true);
        check("src/*.rs", "src/deep/a.rs", false);
        check("src/**/*.rs", "src/deep/a.rs", true);
        check("src/**/*.rs", "src/a.rs", true);
        check("./src/{a,b}.rs", "src/b.rs", true);
        check("[[]x]", "[x]", true);
    }

    #[test]
    fn a_bad_glob_explains_itself() {
        let check = |pattern: &str| Glob::new(pattern).unwrap_err().to_string();
        insta::assert_snapshot!(check("a["), @"`a[` is not a glob: unclosed character class; missing ']'. Use `*` within a name, `**/` for any directories, `{a,b}` for alternatives and `[x]` for a literal character x.");
        insta::assert_snapshot!(check("../*"), @"`../*` is not a glob: it must lie inside the workspace; name the directory in `path`. Use `*` within a name, `**/` for any directories, `{a,b}` for alternatives and `[x]` for a literal character x.");
        assert!(Glob::new("").is_err() && Glob::new("/etc/*").is_err());
        assert!(Glob::new(".github/*.yml").unwrap().names_hidden());
    }
}
