//! Rules about a crate's manifest: shared lints, a floor, a description, one binary of tests.

use toml::Table;

use super::{Files, Finding, crate_of, is_rust};

pub(super) fn findings(files: &Files) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| is_member(path)) {
        match text.parse::<Table>() {
            Ok(manifest) => found.extend(manifest_findings(path, &manifest, files)),
            Err(error) => found.push(Finding::new(path, format!("is not TOML: {}", error.message()))),
        }
    }
    found
}

fn manifest_findings(path: &str, manifest: &Table, files: &Files) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut demand = |held: bool, say: &str| {
        if !held {
            found.push(Finding::new(path, say));
        }
    };
    let lints = at(manifest, &["lints", "workspace"]).and_then(toml::Value::as_bool);
    demand(lints == Some(true), "add `[lints] workspace = true`");
    let description = at(manifest, &["package", "description"]).and_then(toml::Value::as_str);
    demand(description.is_some_and(|text| !text.trim().is_empty()), "add a `description` to `[package]`");
    if let Some(home) = crate_of(path) {
        let floor =
            at(manifest, &["package", "metadata", "layers", "floor"]).and_then(toml::Value::as_integer);
        demand(floor.is_some(), "add `[package.metadata.layers] floor = N`");
        demand(one_test_binary(home, manifest, files), ONE_BINARY);
        demand(testkit_stays_in_tests(home, manifest, files), TESTKIT_IN_SRC);
    }
    found
}

/// Cargo makes a binary of every file right under `tests/`, also of those that `all.rs` includes.
fn one_test_binary(home: &str, manifest: &Table, files: &Files) -> bool {
    let folder = format!("{home}/tests/");
    let besides_all = files.keys().filter_map(|path| path.strip_prefix(&folder)).any(|file| {
        let is_root = !file.contains('/') && file.ends_with(".rs");
        is_root && file != "all.rs"
    });
    let found_by_cargo = at(manifest, &["package", "autotests"]).and_then(toml::Value::as_bool);
    !besides_all || found_by_cargo == Some(false)
}

/// A library whose own unit tests used the testkit would meet itself as a second, different crate.
fn testkit_stays_in_tests(home: &str, manifest: &Table, files: &Files) -> bool {
    if manifest.get("dependencies").and_then(|table| table.get(TESTKIT)).is_some() {
        return true;
    }
    if home.ends_with(TESTKIT) {
        return true;
    }
    let sources = files.iter().filter(|(path, _)| path.starts_with(&format!("{home}/src/")) && is_rust(path));
    let mut code = sources.flat_map(|(_, text)| text.lines()).map(str::trim_start);
    !code.any(|line| !line.starts_with("//") && line.contains("agent_testkit::"))
}

fn at<'t>(manifest: &'t Table, keys: &[&str]) -> Option<&'t toml::Value> {
    let (first, rest) = keys.split_first()?;
    rest.iter().try_fold(manifest.get(*first)?, |value, key| value.get(key))
}

fn is_member(path: &str) -> bool {
    let folder = path.strip_suffix("/Cargo.toml");
    folder.is_some_and(|folder| folder.starts_with("xtask") || crate_of(path) == Some(folder))
}

const TESTKIT: &str = "agent-testkit";
const ONE_BINARY: &str = "set `autotests = false` and `[[test]] name = \"all\"`: a file beside tests/all.rs is built as a second test binary";
const TESTKIT_IN_SRC: &str =
    "a file of src/ uses agent-testkit: move that test to tests/, where it meets the one real crate";

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;

    const GOOD: &str = "=== crates/a/Cargo.toml\n[package]\nname = \"a\"\ndescription = \"A.\"\n\
                        metadata.layers.floor = 1\nlints.workspace = true\n[lints]\nworkspace = true\n";

    #[test]
    fn a_sound_manifest_has_no_findings() {
        check(findings, GOOD, &[]);
        check(
            findings,
            "=== xtask/Cargo.toml\n[package]\ndescription = \"x\"\n[lints]\nworkspace = true\n",
            &[],
        );
        check(findings, "=== crates/a/fuzz/Cargo.toml\n[package]\n", &[]);
    }

    #[test]
    fn each_missing_part_is_named() {
        check(findings, &GOOD.replace("[lints]\nworkspace = true", ""), &["add `[lints] workspace = true`"]);
        check(findings, &GOOD.replace("\"A.\"", "\" \""), &["add a `description`"]);
        check(findings, &GOOD.replace("floor = 1", "stairs = 1"), &["floor = N"]);
        check(findings, "=== xtask/Cargo.toml\n[package]\n", &["[lints]", "description"]);
        check(findings, "=== xtask/bench/Cargo.toml\n[package]\n", &["[lints]", "description"]);
        check(findings, "=== crates/a/Cargo.toml\n[package\n", &["is not TOML"]);
    }

    #[test]
    fn tests_make_one_binary() {
        let more = "=== crates/a/tests/all.rs\nmod b;\n=== crates/a/tests/b.rs\n";
        check(findings, &format!("{GOOD}{more}"), &["set `autotests = false`"]);
        let told = GOOD.replace("name = \"a\"", "name = \"a\"\nautotests = false");
        check(findings, &format!("{told}{more}"), &[]);
        check(
            findings,
            &format!("{GOOD}=== crates/a/tests/all.rs\nmod b;\n=== crates/a/tests/b/mod.rs\n"),
            &[],
        );
    }

    #[test]
    fn the_testkit_is_for_tests_folders() {
        let used = "=== crates/a/src/lib.rs\n//! A.\nuse agent_testkit::Script;\n";
        check(findings, &format!("{GOOD}{used}"), &["a file of src/ uses agent-testkit"]);
        check(findings, &format!("{GOOD}[dependencies]\nagent-testkit = \"1\"\n{used}"), &[]);
        check(findings, &format!("{GOOD}=== crates/a/src/lib.rs\n/// use agent_testkit::Script;\n"), &[]);
        check(findings, &format!("{GOOD}=== crates/a/tests/all.rs\nuse agent_testkit::Script;\n"), &[]);
    }
}
