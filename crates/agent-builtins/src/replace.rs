//! Literal replacement in a text, with line endings and the knowledge of what was seen kept.

use std::ops::Range;

use agent_core::ReadExtent;

use crate::text::line_at;

/// One replacement.
#[derive(Debug, Clone, serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct Edit {
    /// The text to replace, exactly as it stands in the file, with its indentation and without line numbers. It
    /// must occur once, so take in enough of its surroundings; or set replace_all.
    pub(crate) old: String,
    /// The text to put there, taken literally.
    pub(crate) new: String,
    /// Whether to replace every occurrence. Default false.
    #[serde(default)]
    pub(crate) replace_all: bool,
}

/// A text being changed.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    text: String,
    /// For each byte of `text`, whether the model knows it. One flag a byte is plain, and moves with the text.
    seen: Vec<bool>,
}

/// Why an edit cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EditError {
    #[error(
        "`old` is empty, so it names no place. To insert, give the neighbouring text as `old` and the same with the addition as `new`; to write a whole file use write_file."
    )]
    Empty,
    #[error("`old` and `new` are equal, so there is nothing to do; line endings stay as the file has them.")]
    Same,
    #[error("`old` was not found.{0}")]
    Missing(String),
    #[error(
        "`old` occurs {count} times, on lines {lines}. Take in more of the surrounding text so that it occurs once, or set replace_all to true."
    )]
    Several { count: usize, lines: String },
    #[error(
        "`old` occurs in places that overlap, beginning on lines {lines}, so it is not clear what to replace. Take in more of the surrounding text."
    )]
    Overlapping { lines: String },
    #[error(
        "The text is on lines {from}-{to}, which you have not seen. Read them with read_file (offset {from}), then repeat the edit."
    )]
    Unseen { from: u64, to: u64 },
}

/// A text with every line ending as `\n`, and where a `\r` was taken out.
struct Plain {
    text: String,
    /// Positions in `text` of the `\n` that had a `\r` before it, ascending.
    returns: Vec<usize>,
}

impl Draft {
    pub(crate) fn new(text: &str, seen: &ReadExtent) -> Self {
        let mut flags = Vec::with_capacity(text.len());
        for (line, number) in text.split_inclusive('\n').zip(1..) {
            flags.extend(std::iter::repeat_n(seen.covers(number, number), line.len()));
        }
        Self { text: text.to_owned(), seen: flags }
    }

    /// The changed text and which of its lines the model knows.
    pub(crate) fn finish(self) -> (String, ReadExtent) {
        let mut extent = ReadExtent::Lines(Vec::new());
        let (mut at, mut all) = (0, true);
        for (line, number) in self.text.split_inclusive('\n').zip(1..) {
            let known = self.seen[at..at + line.len()].iter().all(|seen| *seen);
            at += line.len();
            all &= known;
            if known {
                extent = extent.with(number, number);
            }
        }
        (self.text, if all { ReadExtent::Full } else { extent })
    }

    /// Makes one edit, or changes nothing.
    pub(crate) fn apply(&mut self, edit: &Edit) -> Result<(), EditError> {
        if edit.old.is_empty() {
            return Err(EditError::Empty);
        }
        let old = edit.old.replace("\r\n", "\n");
        if old == edit.new.replace("\r\n", "\n") {
            return Err(EditError::Same);
        }
        let plain = Plain::of(&self.text);
        let found = occurrences(&plain.text, &old);
        let lines = |found: &[usize]| numbers(found.iter().map(|at| line_at(&plain.text, *at)));
        match found.as_slice() {
            [] => return Err(EditError::Missing(hint(&plain.text, &old))),
            [_] => {}
            many if many.windows(2).any(|pair| pair[1] - pair[0] < old.len()) => {
                return Err(EditError::Overlapping { lines: lines(many) });
            }
            many if !edit.replace_all => {
                return Err(EditError::Several { count: many.len(), lines: lines(many) });
            }
            _ => {}
        }
        let ranges = found.iter().map(|at| plain.original(*at..at + old.len()));
        let ranges: Vec<Range<usize>> = ranges.collect();
        if let Some(unseen) = ranges.iter().find(|range| self.seen[(*range).clone()].contains(&false)) {
            let (from, to) = (line_at(&self.text, unseen.start), line_at(&self.text, unseen.end - 1));
            return Err(EditError::Unseen { from, to });
        }
        self.replace(&ranges, edit);
        Ok(())
    }

    /// Replaces ranges that are in order and apart, in one pass.
    fn replace(&mut self, ranges: &[Range<usize>], edit: &Edit) {
        let mut text = String::with_capacity(self.text.len());
        let mut seen = Vec::with_capacity(self.seen.len());
        let mut done = 0;
        for range in ranges {
            let (kept, new) = self.fitted(range, edit);
            text.push_str(&self.text[done..kept.start]);
            seen.extend_from_slice(&self.seen[done..kept.start]);
            text.push_str(&new);
            seen.extend(std::iter::repeat_n(true, new.len()));
            done = kept.end;
        }
        text.push_str(&self.text[done..]);
        seen.extend_from_slice(&self.seen[done..]);
        *self = Self { text, seen };
    }

    /// The part of a range that really changes, and the new text for it in the line endings of the place.
    ///
    /// Whole lines that `old` and `new` share at both ends keep the endings they have, which may be mixed.
    fn fitted(&self, range: &Range<usize>, edit: &Edit) -> (Range<usize>, String) {
        let matched = &self.text[range.clone()];
        let new: Vec<&str> = edit.new.split_inclusive('\n').collect();
        let lines: Vec<&str> = matched.split_inclusive('\n').collect();
        // A line without an ending is only a part of one, and never equal to a whole one.
        let same = |(a, b): &(&&str, &&str)| a.ends_with('\n') && bare(a) == bare(b) && b.ends_with('\n');
        let head = lines.iter().zip(&new).take_while(same).count();
        let rest = (lines.iter().skip(head).rev()).zip(new.iter().skip(head).rev());
        let tail = rest.take_while(same).count();
        let bytes = |lines: &[&str]| lines.iter().map(|line| line.len()).sum::<usize>();
        let start = range.start + bytes(&lines[..head]);
        let end = range.end - bytes(&lines[lines.len() - tail..]);
        let new = new[head..new.len() - tail].concat();
        let windows = self.windows_at(start);
        let new = match (windows, edit.old.contains("\r\n")) {
            (true, _) => new.replace("\r\n", "\n").replace('\n', "\r\n"),
            // The model wrote an ending that this file does not have, and got its match in spite of it.
            (false, true) => new.replace("\r\n", "\n"),
            (false, false) => new,
        };
        (start..end, new)
    }

    /// Whether the line ending at or after a place, or else the last one before it, is `\r\n`.
    fn windows_at(&self, at: usize) -> bool {
        let next = self.text[at..].find('\n').map(|offset| at + offset);
        let end = next.or_else(|| self.text[..at].rfind('\n'));
        end.is_some_and(|end| self.text[..end].ends_with('\r'))
    }
}

impl Plain {
    fn of(text: &str) -> Self {
        let mut plain = Self { text: String::with_capacity(text.len()), returns: Vec::new() };
        for line in text.split_inclusive('\n') {
            match line.strip_suffix("\r\n") {
                Some(line) => {
                    plain.text.push_str(line);
                    plain.returns.push(plain.text.len());
                    plain.text.push('\n');
                }
                None => plain.text.push_str(line),
            }
        }
        plain
    }

    /// The range of the original text; a `\r\n` is taken whole or not at all.
    fn original(&self, range: Range<usize>) -> Range<usize> {
        let shifted = |at: usize| at + self.returns.partition_point(|newline| *newline < at);
        shifted(range.start)..shifted(range.end)
    }
}

/// Where a text occurs, overlapping occurrences too.
fn occurrences(text: &str, wanted: &str) -> Vec<usize> {
    let step = wanted.chars().next().map_or(1, char::len_utf8);
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find(wanted) {
        found.push(from + at);
        from += at + step;
    }
    found
}

fn numbers(lines: impl Iterator<Item = u64>) -> String {
    let mut lines: Vec<u64> = lines.collect();
    lines.dedup();
    let shown = lines.iter().take(SHOWN).map(u64::to_string).collect::<Vec<_>>().join(", ");
    if lines.len() > SHOWN { format!("{shown}, …") } else { shown }
}

/// A line without its one line ending.
fn bare(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

/// What helps after a miss: pasted line numbers, other white space, or the lines that are most alike.
fn hint(text: &str, old: &str) -> String {
    if let Some(stripped) = without_line_numbers(old) {
        let at = text
            .find(&stripped)
            .map_or_else(String::new, |at| format!(" Without them it is on line {}.", line_at(text, at)));
        return format!(
            " It seems to hold the line numbers that read_file puts before each line; leave out each number and the tab after it.{at}"
        );
    }
    if let Some(line) = but_for_white_space(text, old) {
        return format!(
            " Line {line} has the same words with other white space; copy it exactly, with its tabs and spaces."
        );
    }
    let near = nearest(text, old);
    if near.is_empty() {
        return " Nothing in the file is like it; read the file again and copy the text from there."
            .to_owned();
    }
    let shown = near.iter().map(|(number, line)| format!("\n{number:>6}\t{line}")).collect::<String>();
    format!(" Nearest lines:{shown}\nCopy the text exactly from the file and try again.")
}

fn without_line_numbers(old: &str) -> Option<String> {
    let strip = |line: &str| -> Option<String> {
        let (number, rest) = line.split_once('\t')?;
        number.trim_start().parse::<u64>().ok().map(|_| rest.to_owned())
    };
    let lines: Option<Vec<String>> = old.split_inclusive('\n').map(strip).collect();
    lines.map(|lines| lines.concat())
}

/// The line where `old` begins when white space at the ends of lines does not count.
fn but_for_white_space(text: &str, old: &str) -> Option<usize> {
    let wanted: Vec<&str> = old.trim().lines().map(str::trim).collect();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    if wanted.is_empty() {
        return None;
    }
    lines.windows(wanted.len()).position(|window| window == wanted).map(|at| at + 1)
}

/// At most three lines that are most like the first words of `old`, in the order of the file.
fn nearest<'t>(text: &'t str, old: &str) -> Vec<(usize, &'t str)> {
    let Some(wanted) = old.lines().map(str::trim).find(|line| !line.is_empty()) else { return Vec::new() };
    let wanted: String = wanted.chars().take(COMPARED).collect();
    let lines = text.lines().enumerate().take(LOOKED_AT).map(|(at, line)| (at + 1, line.trim()));
    let alike = lines.filter_map(|(number, line)| Some((alike(&wanted, line)?, number)));
    let mut best: Vec<(u32, usize)> = alike.collect();
    best.sort_unstable_by_key(|(score, number)| (std::cmp::Reverse(*score), *number));
    best.truncate(3);
    best.sort_unstable_by_key(|(_, number)| *number);
    let line = |number: usize| text.lines().nth(number - 1).unwrap_or_default();
    let clip = |line: &'t str| &line[..agent_core::floor_boundary(line, COMPARED)];
    best.into_iter().map(|(_, number)| (number, clip(line(number)))).collect()
}

/// How alike two lines are in thousandths, when they are alike enough to be worth showing.
fn alike(wanted: &str, line: &str) -> Option<u32> {
    let length = line.len();
    if length * 3 < wanted.len() || wanted.len() * 3 < length {
        return None;
    }
    let ratio = similar::TextDiff::from_chars(wanted, line).ratio();
    (ratio >= 0.5).then_some((ratio * 1000.0) as u32)
}

const SHOWN: usize = 10;
const COMPARED: usize = 200;
/// Comparing is slow, and a hint is not worth seconds.
const LOOKED_AT: usize = 20_000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn apply(text: &str, old: &str, new: &str) -> Result<String, EditError> {
        let mut draft = Draft::new(text, &ReadExtent::Full);
        let edit = Edit { old: old.to_owned(), new: new.to_owned(), replace_all: false };
        draft.apply(&edit).map(|()| draft.finish().0)
    }

    #[test]
    fn knowledge_moves_with_the_text() {
        let check = |seen: &[(u64, u64)], old: &str, new: &str, expect: ReadExtent| {
            let mut draft = Draft::new("1\n2\n3\n4\n", &ReadExtent::Lines(seen.to_vec()));
            draft.apply(&Edit { old: old.into(), new: new.into(), replace_all: true }).unwrap();
            assert_eq!(draft.finish().1, expect, "{old:?} -> {new:?}");
        };
        check(&[(2, 3)], "2\n", "", ReadExtent::Lines(vec![(2, 2)]));
        check(&[(2, 3)], "2\n3", "a\nb\nc", ReadExtent::Lines(vec![(2, 4)]));
        check(&[(2, 3)], "3\n", "3", ReadExtent::Lines(vec![(2, 2)]));
        check(&[(1, 4)], "\n", "\n\n", ReadExtent::Full);
    }

    #[test]
    fn an_edit_outside_what_was_seen_is_refused() {
        let mut draft = Draft::new("1\n2\n3\n", &ReadExtent::Lines(vec![(1, 1)]));
        let edit = Edit { old: "2\n3".into(), new: "x".into(), replace_all: false };
        assert_eq!(draft.apply(&edit), Err(EditError::Unseen { from: 2, to: 3 }));
    }

    proptest! {
        /// Whatever the endings: the words change as asked, and no ending outside the change does.
        #[test]
        fn an_edit_changes_words_and_keeps_endings(
            lines in proptest::collection::vec(("[ab]{0,2}", prop::bool::ANY), 1..8),
            at in 0usize..8, count in 1usize..4, new in "[abc\n]{0,6}",
        ) {
            let text: String = lines.iter().zip(0..).map(|((line, windows), number)| {
                format!("{number}{line}{}", if *windows { "\r\n" } else { "\n" })
            }).collect();
            let plain: Vec<&str> = text.lines().collect();
            let (from, to) = (at.min(lines.len() - 1), (at + count).min(lines.len()));
            let old = plain[from..to.max(from + 1)].join("\n");
            prop_assume!(old != new);
            let after = apply(&text, &old, &new).unwrap();
            let expect = text.replace("\r\n", "\n").replacen(&old, &new, 1);
            prop_assert_eq!(after.replace("\r\n", "\n"), expect);
            let before_it: usize = text.split_inclusive('\n').take(from).map(str::len).sum();
            prop_assert_eq!(&after[..before_it], &text[..before_it]);
            let behind: usize = text.split_inclusive('\n').skip(to.max(from + 1)).map(str::len).sum();
            prop_assert_eq!(&after[after.len() - behind..], &text[text.len() - behind..]);
        }

        #[test]
        fn any_text_any_edit_never_panics(text in "[aé🌍\r\n\t1 ]{0,60}", old in "[aé🌍\r\n\t1 ]{0,6}", new in "\\PC{0,6}") {
            if let Ok(after) = apply(&text, &old, &new) {
                prop_assert_ne!(after, text);
            }
        }
    }
}
