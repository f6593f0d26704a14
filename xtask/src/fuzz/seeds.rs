//! The seed corpus of a target, made of the fixtures each time: copies are never committed.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::HOME;
use crate::error::Error;

/// Fills `fuzz/corpus/TARGET/` anew and gives its path. No seed at all is a fault.
pub(super) fn fill(root: &Path, target: &str) -> Result<PathBuf, Error> {
    let corpus = root.join(HOME).join("corpus").join(target);
    let seeds = seeds(root, target)?;
    if seeds.is_empty() {
        return Err(Error::Gate {
            problem: format!("the target {target} has no seeds"),
            next: "put fixtures of its format into fixtures/wire/FORMAT/, or seeds into fuzz/seeds/TARGET/",
        });
    }
    let fault = |path: &Path| {
        let path = path.to_path_buf();
        move |source| Error::Write { path, source }
    };
    if corpus.is_dir() {
        fs::remove_dir_all(&corpus).map_err(fault(&corpus))?;
    }
    fs::create_dir_all(&corpus).map_err(fault(&corpus))?;
    for (name, bytes) in seeds {
        let path = corpus.join(name);
        fs::write(&path, bytes).map_err(fault(&path))?;
    }
    Ok(corpus)
}

type Seed = (String, Vec<u8>);

fn seeds(root: &Path, target: &str) -> Result<Vec<Seed>, Error> {
    let fixtures = root.join("fixtures");
    let mut seeds = match target.strip_prefix("decode_") {
        Some(format) => bodies(&fixtures.join("wire").join(format.replace('_', "-")))?,
        None if target == "import_request" => requests(&fixtures.join("exchanges"))?,
        None => {
            let mut all = Vec::new();
            for folder in list(&fixtures.join("wire"))? {
                all.extend(bodies(&folder)?);
            }
            all.extend(lines(&fixtures.join("errors"))?);
            all
        }
    };
    for path in list(&root.join(HOME).join("seeds").join(target))? {
        seeds.push((format!("seed-{}", name(&path)), read(&path)?));
    }
    Ok(seeds)
}

/// The recorded bodies in a folder, without what they are expected to say.
fn bodies(folder: &Path) -> Result<Vec<Seed>, Error> {
    let mut seeds = Vec::new();
    for path in list(folder)?.into_iter().filter(|path| path.is_file()) {
        let file = name(&path);
        if !file.ends_with(".md") && !file.contains(".expect.") {
            seeds.push((format!("{}-{file}", name(folder)), read(&path)?));
        }
    }
    Ok(seeds)
}

/// The bodies of the requests in recorded conversations.
fn requests(folder: &Path) -> Result<Vec<Seed>, Error> {
    let mut seeds = Vec::new();
    for vendor in list(folder)? {
        seeds.extend(lines(&vendor)?);
    }
    Ok(seeds)
}

/// The bodies in the JSON Lines files of a folder: of a request, or of the failed response that a line holds.
fn lines(folder: &Path) -> Result<Vec<Seed>, Error> {
    let mut seeds = Vec::new();
    for path in list(folder)?.into_iter().filter(|path| name(path).ends_with(".jsonl")) {
        let text = read(&path)?;
        let lines = text.split(|byte| *byte == b'\n').enumerate();
        for (number, line) in lines.filter(|(_, line)| !line.is_empty()) {
            let line: Line = serde_json::from_slice(line)
                .map_err(|source| Error::Read { path: path.clone(), source: source.into() })?;
            let body = line.request.map(|request| request.body).or(line.body).unwrap_or_default();
            seeds.push((format!("{}-{}-{number}", name(folder), name(&path)), body.into_bytes()));
        }
    }
    Ok(seeds)
}

#[derive(Deserialize)]
struct Line {
    request: Option<Request>,
    body: Option<String>,
}

#[derive(Deserialize)]
struct Request {
    body: String,
}

/// What lies in a folder, sorted; nothing where there is none.
fn list(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let fault = |source| Error::Read { path: folder.to_path_buf(), source };
    let entries = fs::read_dir(folder).map_err(fault)?;
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| Ok(entry?.path())).collect::<Result<_, _>>().map_err(fault)?;
    paths.sort();
    Ok(paths)
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|source| Error::Read { path: path.to_path_buf(), source })
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace;

    #[test]
    fn fixtures_are_seeds_and_expectations_are_not() {
        let names = |target: &str| -> Vec<String> {
            seeds(&workspace::root(), target).unwrap().into_iter().map(|(name, _)| name).collect()
        };
        for target in ["decode_anthropic", "sse", "classify"] {
            let names = names(target);
            assert!(names.contains(&"anthropic-text.sse".to_owned()), "{target}: {names:?}");
            assert!(!names.iter().any(|name| name.contains("expect") || name.contains("README")));
        }
        assert!(names("import_request").len() >= 5);
        assert_eq!(names("decode_no_such_format"), [""; 0]);
    }

    #[test]
    fn no_seed_is_a_fault() {
        let error = fill(&workspace::root(), "decode_no_such_format").unwrap_err();
        assert!(error.to_string().contains("has no seeds"), "{error}");
    }
}
