//! Reads the text files of the checkout, build output and hidden folders left out.

use std::fs;
use std::path::Path;

use super::Files;
use crate::error::Error;

pub(super) fn files(root: &Path) -> Result<Files, Error> {
    let mut files = Files::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let fault = |source| Error::Read { path: folder.clone(), source };
        for entry in fs::read_dir(&folder).map_err(fault)? {
            let entry = entry.map_err(fault)?;
            let kind = entry.file_type().map_err(fault)?;
            if kind.is_dir() && is_ours(&entry.path()) {
                folders.push(entry.path());
            } else if kind.is_file() && entry.file_name() != ".git" {
                // In a second worktree `.git` is a file that says where the first one lies.
                read(root, &entry.path(), &mut files)?;
            }
        }
    }
    Ok(files)
}

fn is_ours(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    match &*name {
        ".github" | ".ci" | ".cargo" => true,
        "target" | "wip" => false,
        // Made by fuzzers, in any bytes.
        "corpus" | "found" | "artifacts" | "coverage" => {
            !folder.parent().is_some_and(|home| home.ends_with("fuzz"))
        }
        name => !name.starts_with('.'),
    }
}

/// Adds a file if it is text; recordings and pictures are nobody's prose.
fn read(root: &Path, path: &Path, files: &mut Files) -> Result<(), Error> {
    let fault = |source| Error::Read { path: path.to_path_buf(), source };
    let bytes = match fs::read(path) {
        // Editors and builds drop files between the listing and the reading.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(fault)?,
    };
    if let Ok(text) = String::from_utf8(bytes) {
        let inside = path.strip_prefix(root).unwrap_or(path);
        files.insert(inside.to_string_lossy().replace('\\', "/"), text);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace;

    #[test]
    fn the_checkout_is_read_without_its_build_output() {
        let files = files(&workspace::root()).unwrap();
        assert!(files["xtask/src/tidy/read.rs"].starts_with("//! Reads"));
        assert!(files.keys().all(|path| !path.starts_with("target/") && !path.starts_with(".git/")));
        assert!(is_ours(Path::new("a/tests/corpus")) && !is_ours(Path::new("a/fuzz/corpus")));
    }
}
