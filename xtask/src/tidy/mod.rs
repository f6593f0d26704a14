//! The habits of the house that no compiler watches, checked over the text of the checkout.

mod forgotten;
mod globals;
mod manifest;
mod modules;
mod read;
mod source;

use std::collections::BTreeMap;
use std::fmt;

use crate::Shop;
use crate::error::Error;

pub(crate) fn run(shop: &mut Shop<'_>) -> Result<(), Error> {
    let files = read::files(&shop.root)?;
    let findings = findings(&files);
    for finding in &findings {
        writeln!(shop.out, "tidy: {finding}")?;
    }
    match findings.len() {
        0 => Ok(writeln!(shop.out, "tidy: {} files, nothing to mend", files.len())?),
        count => Err(Error::Findings { verb: "tidy", count }),
    }
}

/// Text by path from the root, with forward slashes.
type Files = BTreeMap<String, String>;

/// One thing to mend.
#[derive(Debug)]
struct Finding {
    path: String,
    line: Option<usize>,
    say: String,
}

fn findings(files: &Files) -> Vec<Finding> {
    let mut found = Vec::new();
    if !files.keys().any(|path| is_rust(path)) {
        found.push(Finding::new("crates", "no Rust files found: run this inside the checkout"));
    }
    found.extend(source::findings(files));
    found.extend(manifest::findings(files));
    found.extend(forgotten::findings(files));
    found.extend(globals::findings(files));
    found
}

impl Finding {
    fn new(path: &str, say: impl Into<String>) -> Self {
        Finding { path: path.to_owned(), line: None, say: say.into() }
    }

    /// The same at a line, which is counted from zero here and shown from one.
    fn at(mut self, index: usize) -> Self {
        self.line = Some(index + 1);
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.say),
            None => write!(f, "{}: {}", self.path, self.say),
        }
    }
}

fn is_rust(path: &str) -> bool {
    path.ends_with(".rs") && (path.starts_with("crates/") || path.starts_with("xtask/"))
}

/// Whether a file is input of a test, not a part of a program: trybuild cases and the like.
fn is_case(path: &str) -> bool {
    let inside = path.split_once("/tests/").map_or("", |(_, inside)| inside);
    inside.split('/').rev().skip(1).any(|folder| CASE_FOLDERS.contains(&folder))
}

/// `crates/NAME` of a file inside it.
fn crate_of(path: &str) -> Option<&str> {
    let rest = path.strip_prefix("crates/")?;
    let name = rest.find('/')?;
    path.get(.."crates/".len() + name)
}

const CASE_FOLDERS: [&str; 3] = ["compile_fail", "ui", "fixtures"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace;

    /// Files written as one text: `=== PATH` opens each.
    pub(super) fn files(text: &str) -> Files {
        let parts = text.split("=== ").skip(1);
        parts
            .map(|part| part.split_once('\n').unwrap_or((part, "")))
            .map(|(path, body)| (path.trim().to_owned(), body.to_owned()))
            .collect()
    }

    /// Runs one family of rules and compares what it says, a line each, by its parts.
    #[track_caller]
    pub(super) fn check(rules: fn(&Files) -> Vec<Finding>, text: &str, expect: &[&str]) {
        let found: Vec<String> = rules(&files(text)).iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), expect.len(), "{found:#?}");
        for (finding, part) in found.iter().zip(expect) {
            assert!(finding.contains(part), "{finding:?} does not say {part:?}");
        }
    }

    #[test]
    fn no_files_is_a_finding() {
        check(findings, "", &["no Rust files found"]);
        check(findings, "=== README.md\nhello\n", &["no Rust files found"]);
    }

    #[test]
    fn paths_are_understood() {
        assert_eq!(crate_of("crates/agent/src/lib.rs"), Some("crates/agent"));
        assert_eq!(crate_of("xtask/src/main.rs"), None);
        assert!(is_case("crates/a/tests/compile_fail/x.rs") && is_case("crates/a/tests/ui/deep/x.rs"));
        assert!(!is_case("crates/a/tests/ui.rs") && !is_case("crates/a/src/ui/x.rs"));
    }

    #[test]
    fn this_checkout_is_tidy() {
        let mut out = Vec::new();
        let result = run(&mut Shop { root: workspace::root(), out: &mut out });
        assert!(result.is_ok(), "{}", String::from_utf8_lossy(&out));
    }
}
