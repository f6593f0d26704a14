//! Follows `mod` lines from a root file, as the compiler would.

use std::collections::BTreeSet;

use super::Files;

/// Adds every file that `root` reaches, itself included.
pub(super) fn reach(files: &Files, root: &str, reached: &mut BTreeSet<String>) {
    let mut waiting = vec![(root.to_owned(), true)];
    while let Some((path, is_root)) = waiting.pop() {
        let Some(text) = files.get(&path).filter(|_| !reached.contains(&path)) else {
            continue;
        };
        for child in children(&path, is_root, text) {
            waiting
                .extend(child.into_iter().filter(|file| files.contains_key(file)).map(|file| (file, false)));
        }
        reached.insert(path);
    }
}

/// For each `mod NAME;` of a file, the paths at which its body may lie.
fn children(path: &str, is_root: bool, text: &str) -> Vec<Vec<String>> {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let below = match file.strip_suffix(".rs") {
        Some(stem) if !is_root && stem != "mod" => format!("{folder}/{stem}"),
        _ => folder.to_owned(),
    };
    let mut found = Vec::new();
    let mut told = None;
    for line in text.lines().map(str::trim) {
        if let Some(place) = line.strip_prefix("#[path = \"").and_then(|rest| rest.strip_suffix("\"]")) {
            told = Some(join(folder, place));
        } else if let Some(name) = declared(line) {
            let usual = || vec![format!("{below}/{name}.rs"), format!("{below}/{name}/mod.rs")];
            found.push(told.take().map_or_else(usual, |place| vec![place]));
        }
    }
    found
}

fn declared(line: &str) -> Option<&str> {
    let line = match line.strip_prefix("pub(") {
        Some(rest) => rest.split_once(") ")?.1,
        None => line.strip_prefix("pub ").unwrap_or(line),
    };
    line.strip_prefix("mod ")?.split_once(';').map(|(name, _)| name)
}

fn join(folder: &str, place: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').collect();
    for part in place.split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::super::tests::files;
    use super::*;

    fn check(text: &str, root: &str, expect: &[&str]) {
        let mut reached = BTreeSet::new();
        reach(&files(text), root, &mut reached);
        assert_eq!(reached.iter().map(String::as_str).collect::<Vec<_>>(), expect);
    }

    #[test]
    fn mod_lines_are_followed() {
        check(
            "=== t/all.rs\nmod a;\npub(crate) mod b;\n#[path = \"../far/c.rs\"]\nmod c;\nmod inline {}\n// mod d;\n\
             === t/a.rs\npub mod deep;\n=== t/a/deep.rs\n=== t/b/mod.rs\nmod e; // why\n=== t/b/e.rs\n\
             === far/c.rs\n=== t/d.rs\n=== t/deep.rs\n",
            "t/all.rs",
            &["far/c.rs", "t/a.rs", "t/a/deep.rs", "t/all.rs", "t/b/e.rs", "t/b/mod.rs"],
        );
    }
}
