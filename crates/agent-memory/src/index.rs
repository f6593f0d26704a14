//! The index `MEMORY.md`: a line for each memory, what a session is shown of it, and what is off about it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::{Memory, MemoryName};

/// The index as a session is shown it, with all that is off about it (requirement C1, case E02).
///
/// The shown lines are chosen anew at each load, so take them once per session: a prompt must not move.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexView {
    /// Whole lines, each with its line ending: at most [`INDEX_LINES`] of them and [`INDEX_BYTES`] bytes.
    pub text: String,
    /// What is not shown because it is over these caps, in the order of the index.
    pub left_out: Vec<LeftOut>,
    /// Entries without a file; they are not shown.
    pub dangling: Vec<MemoryName>,
    /// Memories without an entry, for example because a program died between the two writes. They are shown, and the next
    /// write enters them.
    pub unlisted: Vec<MemoryName>,
    /// Files that are no memories, and why. Where one has an entry, the entry is shown.
    pub strange: Vec<StrangeFile>,
    /// Why `MEMORY.md` itself could not be read; then the lines were made of the memories.
    pub fault: Option<String>,
}

/// A line that is over the caps.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// Its number in `MEMORY.md`, counted from 1; `None` for a memory without an entry.
    pub line: Option<usize>,
    /// The memory, where the line is an entry.
    pub name: Option<MemoryName>,
    /// How it begins, for any other line.
    pub begins: String,
}

/// A file that is no memory.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StrangeFile {
    /// Its name in the directory, with what is no letter of it escaped.
    pub file: String,
    /// Why, in words that say what to do.
    pub why: String,
}

/// Most lines of the index that a session is shown.
pub const INDEX_LINES: usize = 200;
/// Most bytes of them.
pub const INDEX_BYTES: usize = 25_000;
/// The file.
pub const INDEX_FILE: &str = "MEMORY.md";
/// More of it is not read.
pub(crate) const INDEX_READ: usize = 1024 * 1024;

/// The file as lines; what is no entry is kept as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Index {
    lines: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    text: String,
    name: Option<MemoryName>,
}

impl Index {
    pub(crate) fn parse(text: &str) -> Self {
        let text = crate::front::tidy(text);
        Self { lines: text.lines().map(|text| Line { text: text.to_owned(), name: entry(text) }).collect() }
    }

    pub(crate) fn render(&self) -> String {
        self.lines.iter().flat_map(|line| [line.text.as_str(), "\n"]).collect()
    }

    pub(crate) fn lists(&self, name: &MemoryName) -> bool {
        self.lines.iter().any(|line| line.name.as_ref() == Some(name))
    }

    /// Enters a memory as the newest: before all other entries. A line that a person wrote for it keeps its words until
    /// the description changes.
    pub(crate) fn put(&mut self, memory: &Memory, before: Option<&Memory>) {
        let own = self.lines.iter().find(|line| line.name.as_ref() == Some(memory.name()));
        let is_same = before.is_some_and(|before| before.description() == memory.description());
        let text = own.filter(|_| is_same).map_or_else(|| entry_line(memory), |line| line.text.clone());
        self.drop(memory.name());
        let top = self.lines.iter().position(|line| line.name.is_some()).unwrap_or(self.lines.len());
        self.lines.insert(top, Line { text, name: Some(memory.name().clone()) });
    }

    pub(crate) fn drop(&mut self, name: &MemoryName) {
        self.lines.retain(|line| line.name.as_ref() != Some(name));
    }

    /// Takes out entries in our own words whose file is gone. What a person wrote stays, and is told at each load.
    pub(crate) fn drop_dangling(&mut self, exists: &BTreeSet<MemoryName>) -> Vec<MemoryName> {
        let is_left = |line: &Line| {
            let gone = line.name.as_ref().filter(|name| !exists.contains(*name));
            gone.filter(|name| line.text.starts_with(&format!("- [{name}]({}): ", name.file()))).cloned()
        };
        let dropped: Vec<MemoryName> = self.lines.iter().filter_map(is_left).collect();
        self.lines.retain(|line| is_left(line).is_none());
        dropped
    }

    pub(crate) fn size(&self) -> (usize, usize) {
        (self.lines.len(), self.lines.iter().map(|line| line.text.len() + 1).sum())
    }

    pub(crate) fn is_over(&self) -> bool {
        let (lines, bytes) = self.size();
        lines > INDEX_LINES || bytes > INDEX_BYTES
    }

    /// The names that stand last, which are those that were not written for the longest.
    pub(crate) fn oldest(&self, most: usize) -> Vec<String> {
        self.lines
            .iter()
            .rev()
            .filter_map(|line| line.name.as_ref())
            .take(most)
            .map(ToString::to_string)
            .collect()
    }

    /// What is shown. `ages` are the memories that exist, with the time of their last change; `unlisted` those of them that
    /// the file lacks.
    pub(crate) fn view(&self, ages: &BTreeMap<MemoryName, i128>, unlisted: &[Memory]) -> IndexView {
        let mut view = IndexView::default();
        let mut rows: Vec<Row> = Vec::new();
        for memory in unlisted {
            let age = ages.get(memory.name()).copied();
            rows.push(Row { text: entry_line(memory), number: None, name: Some(memory.name().clone()), age });
            view.unlisted.push(memory.name().clone());
        }
        for (line, number) in self.lines.iter().zip(1..) {
            let age = line.name.as_ref().and_then(|name| ages.get(name)).copied();
            match &line.name {
                Some(name) if age.is_none() => view.dangling.push(name.clone()),
                name => {
                    rows.push(Row { text: line.text.clone(), number: Some(number), name: name.clone(), age })
                }
            }
        }
        let kept = keep(&rows);
        for (at, row) in rows.into_iter().enumerate() {
            if kept.contains(&at) {
                view.text.push_str(&row.text);
                view.text.push('\n');
            } else if !row.text.trim().is_empty() {
                view.left_out.push(row.left_out());
            }
        }
        view
    }
}

/// A line that may be shown.
struct Row {
    text: String,
    number: Option<usize>,
    name: Option<MemoryName>,
    age: Option<i128>,
}

impl Row {
    fn left_out(self) -> LeftOut {
        let end = agent_core::floor_boundary(&self.text, BEGINNING);
        let begins = if self.name.is_some() { String::new() } else { self.text[..end].to_owned() };
        LeftOut { line: self.number, name: self.name, begins }
    }
}

/// Which rows fit: memories by their last change, the newest first; then other lines, of which people write the newest
/// last; blank ones only where all fits.
fn keep(rows: &[Row]) -> BTreeSet<usize> {
    let bytes: usize = rows.iter().map(|row| row.text.len() + 1).sum();
    if rows.len() <= INDEX_LINES && bytes <= INDEX_BYTES {
        return (0..rows.len()).collect();
    }
    let mut order: Vec<usize> = (0..rows.len()).filter(|at| !rows[*at].text.trim().is_empty()).collect();
    order.sort_by(|one, other| {
        let (first, second) = (&rows[*one], &rows[*other]);
        let by_age = second.age.cmp(&first.age);
        // Of one age, and that is common after a copy, the one that stands first was written last.
        by_age.then_with(|| if first.age.is_some() { one.cmp(other) } else { other.cmp(one) })
    });
    let (mut kept, mut left) = (BTreeSet::new(), INDEX_BYTES);
    for at in order {
        let needed = rows[at].text.len() + 1;
        if kept.len() < INDEX_LINES && needed <= left {
            left -= needed;
            kept.insert(at);
        }
    }
    kept
}

impl IndexView {
    /// Whether every memory is shown and nothing is off.
    pub fn is_whole(&self) -> bool {
        let Self { text: _, left_out, dangling, unlisted, strange, fault } = self;
        left_out.is_empty()
            && dangling.is_empty()
            && unlisted.is_empty()
            && strange.is_empty()
            && fault.is_none()
    }

    /// The index for the prompt's layer `Auto`: the lines, then what the model must know of what is not shown. Empty when
    /// there is nothing to say.
    pub fn prompt(&self) -> String {
        let mut text = self.text.clone();
        let mut tell = |about: &str, names: Vec<String>| {
            if !names.is_empty() {
                // Writing to a text does not fail.
                let _ = writeln!(text, "[{about}: {}]", some(&names));
            }
        };
        tell(
            "not shown, because the index is full; view them, and merge or delete what no longer holds",
            self.left_out_names(),
        );
        tell("listed, and the file is gone", self.dangling.iter().map(ToString::to_string).collect());
        tell(
            "no memories, so not shown; mend them or tell the user",
            self.strange.iter().map(|file| file.file.clone()).collect(),
        );
        if let Some(fault) = &self.fault {
            let _ = writeln!(
                text,
                "[the index could not be read, so these lines were made of the memories: {fault}]"
            );
        }
        text
    }

    /// What is left out, by name, or by number and beginning for a line that is no entry.
    pub fn left_out_names(&self) -> Vec<String> {
        let name = |left: &LeftOut| match (&left.name, left.line) {
            (Some(name), _) => name.to_string(),
            (None, Some(line)) => format!("line {line} ({}…)", left.begins),
            (None, None) => format!("{}…", left.begins),
        };
        self.left_out.iter().map(name).collect()
    }
}

/// The first names, and how many more there are.
fn some(names: &[String]) -> String {
    let short = |name: &String| name[..agent_core::floor_boundary(name, NAME_BYTES)].to_owned();
    let shown = names.iter().take(NAMED).map(short).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// The line for a memory: `- [name](name.md): description`.
pub(crate) fn entry_line(memory: &Memory) -> String {
    format!("- [{}]({}): {}", memory.name(), memory.name().file(), memory.description())
}

/// The memory that a line points to, whatever its title and what follows.
fn entry(line: &str) -> Option<MemoryName> {
    let item = line.trim_start().strip_prefix(['-', '*', '+'])?.trim_start();
    let target = item.strip_prefix('[')?.split_once("](")?.1.split_once(')')?.0;
    let file = target.strip_prefix("./").unwrap_or(target);
    file.ends_with(crate::name::SUFFIX).then(|| MemoryName::of_file(file).ok()).flatten()
}

/// Names that the prompt spells out of each thing that is off.
const NAMED: usize = 12;
/// Bytes of each of them, so that the prompt stays below what a fragment of it may have, whatever lies in the directory.
const NAME_BYTES: usize = 80;
/// Bytes of a line that stand for it.
const BEGINNING: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryType;

    fn name(name: &str) -> MemoryName {
        MemoryName::new(name).unwrap()
    }

    fn memory(title: &str, description: &str) -> Memory {
        Memory::new(name(title), MemoryType::User, description, "x").unwrap()
    }

    #[test]
    fn lines_that_point_to_memories_are_entries() {
        let check = |line: &str, expect: Option<&str>| {
            assert_eq!(entry(line).map(|name| name.to_string()).as_deref(), expect, "{line:?}");
        };
        check("- [user_role](user_role.md): Writes compilers", Some("user_role"));
        check("* [The user](./user_role.md) — writes compilers", Some("user_role"));
        check("  - [a](a.md)", Some("a"));
        for other in [
            "# Memories",
            "",
            "- plain",
            "- [a](b/a.md)",
            "- [a](../a.md)",
            "- [a](a.txt)",
            "- [a](MEMORY.md)",
            "[a](a.md)",
        ] {
            check(other, None);
        }
    }

    #[test]
    fn the_newest_stands_first_and_other_lines_stay() {
        let mut index = Index::parse("# Mine\n\n- [a](a.md): as I wrote it\n- [b](b.md): b\n\nA fact.\n");
        index.put(&memory("c", "new: it"), None);
        insta::assert_snapshot!(index.render(), @r"
        # Mine

        - [c](c.md): new: it
        - [a](a.md): as I wrote it
        - [b](b.md): b

        A fact.
        ");
        index.put(&memory("a", "same"), Some(&memory("a", "same")));
        index.put(&memory("b", "changed"), Some(&memory("b", "before")));
        index.drop(&name("c"));
        insta::assert_snapshot!(index.render(), @r"
        # Mine

        - [b](b.md): changed
        - [a](a.md): as I wrote it

        A fact.
        ");
        let dropped = index.drop_dangling(&BTreeSet::from([name("b")]));
        assert_eq!(dropped, [name("a")]);
    }

    #[test]
    fn only_our_own_dangling_lines_are_dropped() {
        let mut index = Index::parse("- [Mine](a.md) by hand\n- [b](b.md): ours\n");
        assert_eq!(index.drop_dangling(&BTreeSet::new()), [name("b")]);
        assert_eq!(index.render(), "- [Mine](a.md) by hand\n");
    }
}
