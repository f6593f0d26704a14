//! Names that a misspelt path may have meant.

use agent_core::Cancel;
use agent_tools::Permit;

use crate::blocking::blocking;
use crate::sandbox::{Sandbox, SandboxError, Skip, Walk};

/// An error, with near file names added when the file is missing.
pub(crate) async fn explain(
    sandbox: &dyn Sandbox,
    permit: &Permit,
    cancel: &Cancel,
    error: SandboxError,
) -> SandboxError {
    let SandboxError::NotFound { path } = error else { return error };
    // A hint that cannot be had is left out; the error itself is what counts.
    let walk = Walk { skip: Skip::Ignored, most: HINT_ENTRIES, ..Walk::default() };
    let files = sandbox.walk(permit, walk, cancel).await.map(|walked| walked.files).unwrap_or_default();
    let wanted = path.clone();
    let work = move |_: &Cancel| {
        let mut paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        paths.sort_unstable();
        near(&wanted, &paths)
    };
    let hint = match blocking(cancel, work).await.unwrap_or_default() {
        close if close.is_empty() => "Use glob to find the right path.".to_owned(),
        close => format!("Did you mean {}?", close.join(" or ")),
    };
    SandboxError::NoSuchFile { path, hint }
}

/// At most three paths, in backticks: the same name elsewhere first, then names that look alike.
fn near(path: &str, paths: &[&str]) -> Vec<String> {
    let same = paths.iter().filter(|other| name(other).eq_ignore_ascii_case(name(path))).copied();
    let mut found: Vec<&str> = same.take(MOST).collect();
    let mut names: Vec<&str> = paths.iter().map(|other| name(other)).collect();
    names.sort_unstable();
    names.dedup();
    for close in similar::get_close_matches(name(path), &names, MOST, ALIKE) {
        let of_that_name = paths.iter().filter(|other| name(other) == close && !found.contains(other));
        found.extend(of_that_name.copied().collect::<Vec<_>>());
    }
    found.truncate(MOST);
    found.into_iter().map(|other| format!("`{other}`")).collect()
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Entries of the workspace that are looked at for a hint, which is not worth more.
pub(crate) const HINT_ENTRIES: u64 = 20_000;
const MOST: usize = 3;
const ALIKE: f32 = 0.7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_name_comes_before_a_like_one() {
        let paths = ["docs/main.md", "src/lib.rs", "src/mains.rs", "tests/main.rs"];
        let check = |path: &str, expect: &[&str]| assert_eq!(near(path, &paths), expect, "{path}");
        check("main.rs", &["`tests/main.rs`", "`src/mains.rs`", "`docs/main.md`"]);
        check("src/Lib.rs", &["`src/lib.rs`"]);
        check("zzz", &[]);
    }
}
