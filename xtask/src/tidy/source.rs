//! Rules about the text of one file: its header, its length, its attributes, its paths.

use super::{Files, Finding, is_case, is_rust};

pub(super) fn findings(files: &Files) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, text) in files {
        found.extend(machine_paths(path, text));
        if !is_rust(path) || is_case(path) {
            continue;
        }
        found.extend(header(path, text));
        found.extend(length(path, text));
        found.extend(allows(path, text));
    }
    found
}

/// The file opens with a sentence that says what it is about.
fn header(path: &str, text: &str) -> Option<Finding> {
    let lines = text.lines().map_while(|line| line.strip_prefix("//!"));
    let opening: Vec<&str> = lines.map(str::trim).take_while(|line| !line.is_empty()).collect();
    let is_sentence = opening.last().is_some_and(|line| line.ends_with(['.', ':', '?', '!', ')']));
    (!is_sentence)
        .then(|| Finding::new(path, "open the file with one `//!` sentence about what it holds").at(0))
}

/// Lines before the unit tests stay under the ceiling; files of `tests/` and a `tests.rs` are tests altogether.
fn length(path: &str, text: &str) -> Option<Finding> {
    if path.contains("/tests/") || path.ends_with("/tests.rs") {
        return None;
    }
    let length = code_lines(text);
    (length > CEILING).then(|| {
        Finding::new(
            path,
            format!("{length} lines before its tests, the ceiling is {CEILING}: split it by noun"),
        )
    })
}

/// How many lines come before the first module that is compiled for tests only.
fn code_lines(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let opens_tests = |index: &usize| {
        let mut below = lines.iter().skip(*index).skip_while(|line| line.starts_with("#["));
        lines.get(*index) == Some(&"#[cfg(test)]")
            && below.next().is_some_and(|line| line.starts_with("mod "))
    };
    (0..lines.len()).find(opens_tests).unwrap_or(lines.len())
}

fn allows(path: &str, text: &str) -> Vec<Finding> {
    let silenced = |line: &str| {
        let line = line.trim_start();
        line.starts_with(ALLOW_OUTER) || line.starts_with(ALLOW_INNER)
    };
    let lines = text.lines().enumerate().filter(|(_, line)| silenced(line));
    let say = "write `expect` with a reason, which complains when it is no longer needed";
    lines.map(|(index, _)| Finding::new(path, say).at(index)).collect()
}

/// No file knows where its author's checkout lies.
fn machine_paths(path: &str, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for root in MACHINE_ROOTS.iter().filter(|root| holds_path(line, root)) {
            let say = format!(
                "holds an absolute path under {root}: name it relative to the checkout, or use a made-up root such as /srv/"
            );
            found.push(Finding::new(path, say).at(index));
        }
    }
    found
}

/// Whether a line holds an absolute path under `root`, not a longer path that merely contains it.
fn holds_path(line: &str, root: &str) -> bool {
    line.match_indices(root).any(|(start, _)| {
        let before = line.get(..start).and_then(|head| head.chars().next_back());
        before.is_none_or(|last| !last.is_alphanumeric() && !"._-~*}>)]$\\/".contains(last))
    })
}

const CEILING: usize = 600;
// Written in two parts, so that this file keeps its own rules.
const ALLOW_OUTER: &str = concat!("#[", "allow(");
const ALLOW_INNER: &str = concat!("#![", "allow(");
const MACHINE_ROOTS: [&str; 4] =
    [concat!("/", "work/"), concat!("/", "root/"), concat!("/", "home/"), concat!("/", "Users/")];

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;

    const FILE: &str = "=== crates/a/src/lib.rs\n";

    #[test]
    fn a_file_opens_with_a_sentence() {
        let header = "open the file with one `//!` sentence";
        check(findings, &format!("{FILE}//! Says what it is.\n"), &[]);
        check(findings, &format!("{FILE}//! Says it\n//! in two lines.\n//!\n//! - more\n"), &[]);
        check(findings, &format!("{FILE}use std::fmt;\n"), &[header]);
        check(findings, &format!("{FILE}\n//! Late.\n"), &[header]);
        check(findings, &format!("{FILE}//! a title\n"), &[header]);
        check(findings, "=== crates/a/tests/all.rs\nmod b;\n", &["crates/a/tests/all.rs:1: open"]);
        check(findings, "=== crates/a/tests/ui/x.rs\nfn main() {}\n", &[]);
        check(findings, "=== xtask/src/x.rs\nfn main() {}\n", &[header]);
    }

    #[test]
    fn a_file_stops_at_the_ceiling() {
        let code = |lines: usize| format!("//! Long.\n{}", "fn f() {}\n".repeat(lines - 1));
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "// test\n".repeat(900));
        check(findings, &format!("{FILE}{}{tests}", code(600)), &[]);
        check(findings, &format!("{FILE}{}{tests}", code(601)), &["601 lines before its tests"]);
        let expecting = tests.replace("\nmod", "\n#[expect(dead_code, reason = \"why\")]\nmod");
        check(findings, &format!("{FILE}{}{expecting}", code(600)), &[]);
        let helper = "#[cfg(test)]\nfn helper() {}\n";
        check(findings, &format!("{FILE}{}{helper}{tests}", code(599)), &["601 lines"]);
        check(findings, &format!("=== crates/a/tests/all.rs\n{}", code(900)), &[]);
        check(findings, &format!("=== crates/a/src/b/tests.rs\n{}", code(900)), &[]);
    }

    #[test]
    fn lints_are_expected_with_a_reason() {
        for attribute in [ALLOW_OUTER, ALLOW_INNER] {
            check(
                findings,
                &format!("{FILE}//! One.\n  {attribute}dead_code)]\n"),
                &["lib.rs:2: write `expect`"],
            );
        }
        check(findings, &format!("{FILE}//! One.\n// the attribute `{ALLOW_OUTER}` is not used here\n"), &[]);
    }

    #[test]
    fn no_file_names_a_machine() {
        for root in MACHINE_ROOTS {
            check(
                findings,
                &format!("=== docs/a.md\nsee `{root}x`\n"),
                &["docs/a.md:1: holds an absolute path"],
            );
            check(findings, &format!("=== .ci/run\ncd {root}x\n"), &[".ci/run:1: holds"]);
            check(findings, &format!("=== docs/a.md\nsee src{root}x and https://example.com{root}x\n"), &[]);
        }
    }
}
