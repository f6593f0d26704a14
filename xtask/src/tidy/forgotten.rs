//! Files that nothing reaches: modules without a `mod` line, snapshots without a test, prompts never included.

use std::collections::BTreeSet;

use super::modules::reach;
use super::{Files, Finding, crate_of, is_case, is_rust};

pub(super) fn findings(files: &Files) -> Vec<Finding> {
    let mut found = modules(files);
    for (path, text) in files {
        found.extend(snapshot(path, text, files));
        found.extend(prompt(path, files));
        found.extend(fuzz_target(path, files));
    }
    found
}

/// A file without its `mod` line compiles nowhere, and its tests pass by never running.
fn modules(files: &Files) -> Vec<Finding> {
    let mut reached = BTreeSet::new();
    for root in files.keys().filter(|path| is_root(path, files)) {
        reach(files, root, &mut reached);
    }
    let inside = |path: &str| is_rust(path) && (path.contains("/src/") || path.contains("/tests/"));
    let ours = files.keys().filter(|path| inside(path) && !is_case(path));
    ours.filter(|path| !reached.contains(*path))
        .map(|path| {
            let root = if path.contains("/tests/") { "tests/all.rs" } else { "the root of the crate" };
            Finding::new(
                path,
                format!("is reached by no `mod` line from {root}: add one, or delete the file"),
            )
        })
        .collect()
}

fn is_root(path: &str, files: &Files) -> bool {
    let Some(home) = crate_of(path).or_else(|| path.starts_with("xtask/").then_some("xtask")) else {
        return false;
    };
    let inside = path.get(home.len() + 1..).unwrap_or_default();
    // Fuzz targets are a crate of their own inside the crate they are about, and so are the programs inside xtask.
    let own = ["fuzz/", "bench/", "faults/"].into_iter().find_map(|folder| inside.strip_prefix(folder));
    let inside = own.unwrap_or(inside);
    let is_program = inside.strip_prefix("src/bin/").is_some_and(|file| !file.contains('/'));
    let known = matches!(inside, "src/lib.rs" | "src/main.rs" | "tests/all.rs");
    known || is_program || is_declared_target(home, inside, files)
}

/// Whether a manifest names the file as a target of its own, such as the child program of a crash test.
fn is_declared_target(home: &str, inside: &str, files: &Files) -> bool {
    let manifest = files.get(&format!("{home}/Cargo.toml")).map_or("", String::as_str);
    manifest.lines().any(|line| line.trim() == format!("path = \"{inside}\""))
}

/// A snapshot says which file it belongs to; best effort, since an older header may not.
fn snapshot(path: &str, text: &str, files: &Files) -> Option<Finding> {
    if path.ends_with(".snap.new") {
        return Some(Finding::new(
            path,
            "is a snapshot nobody has accepted or refused yet: run `cargo insta review`",
        ));
    }
    let source = text.lines().take(SNAP_HEADER).find_map(|line| line.strip_prefix("source: "))?;
    let source = source.trim().trim_matches('"');
    let lost = path.ends_with(".snap") && !files.contains_key(source);
    lost.then(|| Finding::new(path, format!("belongs to {source}, which is gone: delete the snapshot")))
}

/// Every instruction text is compiled in by its own crate.
fn prompt(path: &str, files: &Files) -> Option<Finding> {
    let home = crate_of(path)?;
    let name = path.strip_prefix(home)?.strip_prefix("/prompt/").filter(|name| name.ends_with(".md"))?;
    let wanted = format!("prompt/{name}\"");
    let mut sources = files.iter().filter(|(file, _)| is_rust(file) && crate_of(file) == Some(home));
    let included = sources.any(|(_, text)| text.contains("include_str!") && text.contains(&wanted));
    (!included).then(|| {
        Finding::new(path, "no source file of its crate includes it: use include_str!, or delete it")
    })
}

/// Cargo finds no program in `fuzz_targets/` by itself.
fn fuzz_target(path: &str, files: &Files) -> Option<Finding> {
    let (home, file) = path.split_once("/fuzz/fuzz_targets/")?;
    let manifest = files.get(&format!("{home}/fuzz/Cargo.toml")).map_or("", String::as_str);
    let wanted = format!("path = \"fuzz_targets/{file}\"");
    (!manifest.lines().any(|line| line.trim() == wanted)).then(|| {
        Finding::new(path, format!("is no [[bin]] of {home}/fuzz/Cargo.toml: add one, or delete the file"))
    })
}

const SNAP_HEADER: usize = 8;

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;

    #[test]
    fn no_test_file_is_forgotten() {
        let all = "=== crates/a/tests/all.rs\nmod b;\n=== crates/a/tests/b.rs\n";
        check(findings, all, &[]);
        check(
            findings,
            &format!("{all}=== crates/a/tests/c.rs\n"),
            &["tests/c.rs: is reached by no `mod` line"],
        );
        check(
            findings,
            &format!("{all}=== crates/a/tests/b/deep.rs\n"),
            &["tests/b/deep.rs: is reached by no"],
        );
        check(findings, &format!("{all}=== crates/a/tests/compile_fail/x.rs\n"), &[]);
        let child = "=== crates/a/tests/crash.rs\n=== crates/a/Cargo.toml\n[[test]]\nname = \"crash\"\n";
        check(findings, &format!("{all}{child}path = \"tests/crash.rs\"\n"), &[]);
        check(findings, "=== crates/a/tests/b.rs\n", &["from tests/all.rs"]);
    }

    #[test]
    fn no_source_file_is_forgotten() {
        check(findings, "=== crates/a/src/lib.rs\nmod b;\n=== crates/a/src/b.rs\n", &[]);
        check(findings, "=== crates/a/src/lib.rs\n=== crates/a/src/b.rs\n", &["from the root of the crate"]);
        check(findings, "=== crates/a/src/bin/tool.rs\n=== xtask/src/main.rs\n", &[]);
        let helper = "=== xtask/bench/src/main.rs\nmod b;\n=== xtask/bench/src/b.rs\n";
        check(findings, helper, &[]);
        check(findings, &helper.replace("mod b;", ""), &["xtask/bench/src/b.rs: is reached by no"]);
    }

    #[test]
    fn no_fuzz_target_is_forgotten() {
        let all = "=== crates/a/fuzz/src/lib.rs\nmod b;\n=== crates/a/fuzz/src/b.rs\n=== crates/a/fuzz/src/bin/run.rs\n\
                   === crates/a/fuzz/fuzz_targets/c.rs\n=== crates/a/fuzz/Cargo.toml\n";
        check(findings, &format!("{all}[[bin]]\npath = \"fuzz_targets/c.rs\"\n"), &[]);
        check(findings, all, &["fuzz_targets/c.rs: is no [[bin]] of crates/a/fuzz/Cargo.toml"]);
        check(findings, "=== crates/a/fuzz/src/d.rs\n", &["from the root of the crate"]);
    }

    #[test]
    fn no_snapshot_outlives_its_test() {
        let snap =
            "=== crates/a/src/snapshots/x.snap\n---\nsource: crates/a/src/lib.rs\nexpression: x\n---\ntext\n";
        check(findings, snap, &["belongs to crates/a/src/lib.rs, which is gone"]);
        check(findings, &format!("{snap}=== crates/a/src/lib.rs\n"), &[]);
        check(findings, "=== crates/a/src/snapshots/x.snap.new\n", &["accepted or refused"]);
    }

    #[test]
    fn every_prompt_is_compiled_in() {
        let prompt = "=== crates/a/prompt/grep.md\nSearch.\n=== crates/a/src/lib.rs\n";
        check(findings, prompt, &["crates/a/prompt/grep.md: no source file"]);
        check(findings, &format!("{prompt}const TEXT: &str = include_str!(\"../prompt/grep.md\");\n"), &[]);
    }
}
