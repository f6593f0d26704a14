//! Lines of a rule file that take in another file.

use std::collections::BTreeSet;

use super::RuleFiles;
use super::path::{PathRefusal, RulePath};

/// Why the line of an import stays in the rules as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImportRefusal {
    /// The path is not taken.
    #[error("{0}")]
    Path(#[from] PathRefusal),
    /// The file takes in itself, by way of others or directly.
    #[error("it takes in the file that it is taken into; remove one of the two imports")]
    Cycle,
    /// Too many imports lead to it.
    #[error("more than {0} imports in a row lead to it; import it from a file nearer to the rules")]
    Depth(usize),
    /// The rule file takes in too many files.
    #[error("the rule file takes in {0} files already, which is the most allowed; join some of them")]
    TooMany(usize),
    /// There is no such file, or it cannot be read.
    #[error("no file is there that can be read; check the path, which is relative to the file that names it")]
    Missing,
}

/// An import that was not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedImport {
    /// The file with the line.
    pub file: RulePath,
    /// The line, counted from 1.
    pub line: usize,
    /// What it names.
    pub target: String,
    /// Why it was not followed.
    pub refusal: ImportRefusal,
}

/// The text of one rule file while its imports are put in.
#[derive(Debug)]
pub(super) struct Expansion<'f> {
    files: &'f RuleFiles,
    /// The files that are being taken in, the rule file first.
    stack: Vec<RulePath>,
    taken: BTreeSet<RulePath>,
    pub(super) text: String,
    pub(super) refused: Vec<RefusedImport>,
    pub(super) wanted: BTreeSet<RulePath>,
}

/// What an import leads to.
enum Found<'f> {
    Text(RulePath, &'f str),
    /// The text stands in the prompt already, so that the line is left out.
    Present,
    /// Nobody looked for the file yet.
    Unread(RulePath),
}

impl<'f> Expansion<'f> {
    pub(super) fn of(files: &'f RuleFiles, path: &RulePath, text: &str) -> Self {
        let mut expansion = Self {
            files,
            stack: vec![path.clone()],
            taken: BTreeSet::new(),
            text: String::new(),
            refused: Vec::new(),
            wanted: BTreeSet::new(),
        };
        expansion.take(path, text);
        expansion
    }

    fn take(&mut self, file: &RulePath, text: &str) {
        let mut fence = Fence::default();
        for (number, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let is_code = fence.holds(line);
            match import_target(line).filter(|_| !is_code) {
                Some(target) => self.import(file, number + 1, (target, line)),
                None => self.write(line),
            }
        }
    }

    fn import(&mut self, file: &RulePath, number: usize, (target, line): (&str, &str)) {
        match self.find(file, target) {
            Ok(Found::Text(path, text)) => {
                self.write(&format!("From {path}:"));
                self.stack.push(path.clone());
                self.take(&path, text);
                self.stack.pop();
            }
            Ok(Found::Present) => {}
            Ok(Found::Unread(path)) => {
                self.wanted.insert(path);
                self.refuse(file, number, (target, line), ImportRefusal::Missing);
            }
            Err(refusal) => self.refuse(file, number, (target, line), refusal),
        }
    }

    fn find(&mut self, file: &RulePath, target: &str) -> Result<Found<'f>, ImportRefusal> {
        let path = file.import(target)?;
        if self.stack.contains(&path) {
            return Err(ImportRefusal::Cycle);
        }
        if self.taken.contains(&path) || self.files.is_rule_file(&path) {
            return Ok(Found::Present);
        }
        let limits = self.files.config();
        if self.stack.len() > limits.import_depth {
            return Err(ImportRefusal::Depth(limits.import_depth));
        }
        if self.taken.len() >= limits.imports {
            return Err(ImportRefusal::TooMany(limits.imports));
        }
        let Some(known) = self.files.library.get(&path) else { return Ok(Found::Unread(path)) };
        let text = known.as_deref().ok_or(ImportRefusal::Missing)?;
        self.taken.insert(path.clone());
        Ok(Found::Text(path, text))
    }

    /// The line stays, so that nothing disappears and the model can look for the file itself.
    fn refuse(&mut self, file: &RulePath, line: usize, (target, text): (&str, &str), refusal: ImportRefusal) {
        self.write(text);
        self.refused.push(RefusedImport { file: file.clone(), line, target: target.to_owned(), refusal });
    }

    fn write(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }
}

/// What a line takes in: all of it is `@import PATH`, or `@PATH` with a `.` or `/` in it.
fn import_target(line: &str) -> Option<&str> {
    let is_code = line.starts_with('\t') || line.starts_with("    ");
    let words = line.trim().strip_prefix('@').filter(|_| !is_code)?;
    if let Some(path) = words.strip_prefix("import").filter(|rest| rest.starts_with(char::is_whitespace)) {
        return Some(path.trim());
    }
    let is_path = words.contains(['.', '/']) && !words.contains(char::is_whitespace);
    is_path.then_some(words)
}

/// Whether a line stands in a fenced block of code.
#[derive(Debug, Default)]
struct Fence(Option<(char, usize)>);

impl Fence {
    /// Whether the next line belongs to a block; its borders do.
    fn holds(&mut self, line: &str) -> bool {
        let line = line.trim();
        let run = |mark: char| line.chars().take_while(|character| *character == mark).count();
        match self.0 {
            Some((mark, length)) => {
                if run(mark) >= length && line.chars().all(|character| character == mark) {
                    self.0 = None;
                }
                true
            }
            None => {
                let opened = ['`', '~'].into_iter().map(|mark| (mark, run(mark))).find(|(_, run)| *run >= 3);
                self.0 = opened;
                opened.is_some()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_import() {
        let cases = [
            ("@docs/style.md", Some("docs/style.md")),
            ("  @./a.md  ", Some("./a.md")),
            ("@import docs/my style.md", Some("docs/my style.md")),
            ("@import", None),
            ("@importer", None),
            ("@alice", None),
            ("@docs/style.md and more", None),
            ("see @docs/style.md", None),
            ("    @docs/style.md", None),
            ("me@example.com", None),
        ];
        for (line, expect) in cases {
            assert_eq!(import_target(line), expect, "{line:?}");
        }
    }

    #[test]
    fn code_is_left_alone() {
        let text = "a\n```md\n@x.md\n~~~\n```\nb\n~~~~\n```\n~~~\n~~~~ \nc";
        let mut fence = Fence::default();
        let outside: Vec<_> = text.lines().filter(|line| !fence.holds(line)).collect();
        assert_eq!(outside, ["a", "b", "c"]);
    }
}
