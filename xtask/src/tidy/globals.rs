//! No state outlives whoever was handed it: globals that can change are named here, with why (requirement K2).

use super::{Files, Finding, is_case, is_rust};

pub(super) fn findings(files: &Files) -> Vec<Finding> {
    let sources = files.iter().filter(|(path, _)| {
        is_rust(path) && path.starts_with("crates/") && path.contains("/src/") && !is_case(path)
    });
    sources.flat_map(|(path, text)| in_file(path, text)).collect()
}

fn in_file(path: &str, text: &str) -> Vec<Finding> {
    let code = text.lines().take_while(|line| *line != "#[cfg(test)]").enumerate();
    let globals = code.filter_map(|(index, line)| Some((index, changing(line)?)));
    let unknown =
        globals.filter(|(_, name)| !KNOWN.iter().any(|(at, known, _)| *at == path && known == name));
    let say = |name: &str| {
        format!(
            "`{name}` is state of the whole process: hand it to who needs it (`agent_harness::Process`), or name it in tidy/globals.rs with why it is none"
        )
    };
    unknown.map(|(index, name)| Finding::new(path, say(name)).at(index)).collect()
}

/// The name of a static on this line that can change.
fn changing(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let behind =
        if line.starts_with("pub") { line.split_once(" static ")?.1 } else { line.strip_prefix("static ")? };
    let (name, kind) = behind.split_once(':')?;
    match name.strip_prefix("mut ") {
        Some(name) => Some(name),
        None => CELLS.iter().any(|cell| kind.contains(cell)).then_some(name),
    }
}

/// What lets a static change.
const CELLS: [&str; 8] =
    ["Atomic", "Cell<", "Condvar", "LazyLock<", "Mutex<", "OnceCell<", "OnceLock<", "RwLock<"];

/// Files and names that are no state of anybody, with why.
const KNOWN: [(&str, &str, &str); 8] = [
    ("crates/agent-builtins/src/sandbox/unique.rs", "NEXT_JOB", "numbers that must not repeat in a process"),
    ("crates/agent-builtins/src/sandbox/unique.rs", "NEXT", "numbers that must not repeat in a process"),
    ("crates/agent-builtins/src/sandbox/unique.rs", "RANDOM", "tells this process from others"),
    ("crates/agent-cache/src/rules/mod.rs", "BUILTIN", "a table that is read once and never changed"),
    ("crates/agent-providers/src/catalog/mod.rs", "BUILTIN", "a table that is read once and never changed"),
    ("crates/agent-store-faults/src/disk.rs", "ALL", "SQLite has one list of file systems a process"),
    ("crates/agent-store-faults/src/vfs.rs", "NEXT", "names that must not repeat in a process"),
    ("crates/agent-store/src/write.rs", "SCRATCH", "a buffer that is empty between uses"),
];

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;

    #[test]
    fn state_of_the_process_is_found() {
        let file = "=== crates/a/src/lib.rs\n//! Says it.\n";
        for line in [
            "static mut COUNT: u32 = 0;",
            "static COUNT: AtomicU32 = AtomicU32::new(0);",
            "pub(crate) static CONFIG: OnceLock<Config> = OnceLock::new();",
            "pub static CONFIG: Mutex<Vec<u8>> = Mutex::new(Vec::new());",
            "    static SEEN: RefCell<u32> = const { RefCell::new(0) };",
            "static PATTERN: LazyLock<Regex> = LazyLock::new(pattern);",
        ] {
            check(findings, &format!("{file}{line}\n"), &["crates/a/src/lib.rs:2: `"]);
            check(findings, &format!("{file}#[cfg(test)]\nmod tests {{\n{line}\n}}\n"), &[]);
            check(findings, &format!("=== crates/a/tests/all.rs\n{line}\n"), &[]);
        }
        for line in
            ["static NAMES: [&str; 1] = [\"a\"];", "const N: u32 = 0;", "fn f(s: &'static Mutex<u8>) {}"]
        {
            check(findings, &format!("{file}{line}\n"), &[]);
        }
        let known =
            "=== crates/agent-cache/src/rules/mod.rs\n//! Says it.\nstatic BUILTIN: LazyLock<u8> = f();\n";
        check(findings, known, &[]);
    }
}
