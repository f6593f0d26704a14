//! Literal replacement in a text, with line endings and the knowledge of what was seen kept.

use std::ops::Range;

use agent_core::ReadExtent;

use crate::hint::hint;
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
        "`old` occurs {count} times, and with `new` in each place the file would be too large to read. Replace fewer places, or put less there."
    )]
    Large { count: usize },
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
        let known = |number: u64| match seen {
            ReadExtent::Full => true,
            ReadExtent::Lines(ranges) => {
                let at = ranges.partition_point(|(_, to)| *to < number);
                ranges.get(at).is_some_and(|(from, _)| *from <= number)
            }
        };
        let mut flags = Vec::with_capacity(text.len());
        for (line, number) in text.split_inclusive('\n').zip(1..) {
            flags.extend(std::iter::repeat_n(known(number), line.len()));
        }
        Self { text: text.to_owned(), seen: flags }
    }

    /// The changed text and which of its lines the model knows.
    pub(crate) fn finish(self) -> (String, ReadExtent) {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        let (mut at, mut all) = (0, true);
        for (line, number) in self.text.split_inclusive('\n').zip(1..) {
            let known = !self.seen[at..at + line.len()].contains(&false);
            at += line.len();
            all &= known;
            match runs.last_mut() {
                _ if !known => {}
                Some((_, to)) if *to + 1 == number => *to = number,
                Some(_) | None => runs.push((number, number)),
            }
        }
        (self.text, if all { ReadExtent::Full } else { ReadExtent::Lines(runs) })
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
        let places = plain.places(&old, edit)?;
        let ranges: Vec<Range<usize>> = places.iter().map(|at| plain.original(*at..at + old.len())).collect();
        let added = edit.new.len().saturating_sub(old.len()).saturating_mul(ranges.len());
        if added > LARGEST.saturating_sub(self.text.len()) {
            return Err(EditError::Large { count: ranges.len() });
        }
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
        let mut endings = Nearest::new(&self.text);
        let mut done = 0;
        for range in ranges {
            let (kept, new) = self.fitted(range, edit, &mut endings);
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
    fn fitted(&self, range: &Range<usize>, edit: &Edit, endings: &mut Nearest<'_>) -> (Range<usize>, String) {
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
        let windows = endings.windows_at(start);
        let new = match (windows, edit.old.contains("\r\n")) {
            (true, _) => new.replace("\r\n", "\n").replace('\n', "\r\n"),
            // The model wrote an ending that this file does not have, and got its match in spite of it.
            (false, true) => new.replace("\r\n", "\n"),
            (false, false) => new,
        };
        (start..end, new)
    }
}

/// The line ending nearest to places that are asked for in ascending order, so that a text is gone through once.
struct Nearest<'t> {
    text: &'t str,
    /// The ending found for the last place.
    next: Option<usize>,
    last: Option<usize>,
}

impl<'t> Nearest<'t> {
    fn new(text: &'t str) -> Self {
        Self { text, next: text.find('\n'), last: text.rfind('\n') }
    }

    /// Whether the line ending at or after a place, or else the last one before it, is `\r\n`.
    fn windows_at(&mut self, at: usize) -> bool {
        if self.last.is_some_and(|last| last < at) {
            self.next = self.last;
        } else if self.next.is_some_and(|next| next < at) {
            self.next = self.text[at..].find('\n').map(|offset| at + offset);
        }
        self.next.is_some_and(|end| self.text[..end].ends_with('\r'))
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

    /// Where the edit is to be made: one place, or with replace_all every one.
    fn places(&self, old: &str, edit: &Edit) -> Result<Vec<usize>, EditError> {
        let (found, overlap) = occurrences(&self.text, old);
        if found.is_empty() {
            return Err(EditError::Missing(hint(&self.text, old, "read_file")));
        }
        if overlap {
            return Err(EditError::Overlapping { lines: lines_of(&self.text, &found) });
        }
        if found.len() > 1 && !edit.replace_all {
            return Err(EditError::Several { count: found.len(), lines: lines_of(&self.text, &found) });
        }
        Ok(found)
    }

    /// The range of the original text; a `\r\n` is taken whole or not at all.
    fn original(&self, range: Range<usize>) -> Range<usize> {
        let shifted = |at: usize| at + self.returns.partition_point(|newline| *newline < at);
        shifted(range.start)..shifted(range.end)
    }
}

/// Where a text occurs, and whether two of the places overlap; then only the first of them are looked for, because
/// each costs a look at the whole of what is wanted.
fn occurrences(text: &str, wanted: &str) -> (Vec<usize>, bool) {
    let step = wanted.chars().next().map_or(1, char::len_utf8);
    let (mut found, mut overlap): (Vec<usize>, bool) = (Vec::new(), false);
    let mut from = 0;
    while let Some(offset) = text[from..].find(wanted) {
        let at = from + offset;
        overlap |= found.last().is_some_and(|last| at - last < wanted.len());
        found.push(at);
        if overlap && found.len() >= ENOUGH {
            break;
        }
        from = at + step;
    }
    (found, overlap)
}

/// The lines of ascending places, the first few of them.
fn lines_of(text: &str, places: &[usize]) -> String {
    let mut lines: Vec<u64> = Vec::new();
    let (mut from, mut line) = (0, 1);
    for place in places {
        line += line_at(&text[from..], place - from) - 1;
        from = *place;
        if lines.last() != Some(&line) {
            lines.push(line);
        }
        if lines.len() > SHOWN {
            break;
        }
    }
    let shown = lines.iter().take(SHOWN).map(u64::to_string).collect::<Vec<_>>().join(", ");
    if lines.len() > SHOWN { format!("{shown}, …") } else { shown }
}

/// A line without its one line ending.
fn bare(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

/// Places listed in an error.
const SHOWN: usize = 10;
/// Places that overlap are not replaced, so this many of them tell enough.
const ENOUGH: usize = 1_000;
/// As much as read_file can show.
const LARGEST: usize = 64 * 1024 * 1024;

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

    /// In the time this takes, work that grows with the square of a text would not come far.
    fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
        let (ended, ends) = std::sync::mpsc::channel();
        std::thread::spawn(move || ended.send(work()).unwrap());
        ends.recv_timeout(std::time::Duration::from_secs(40)).expect("it ends in time")
    }

    #[test]
    fn many_places_in_a_large_text_cost_one_pass() {
        let (one_line, lines) = ("ab".repeat(1_000_000), "ab\n".repeat(1_000_000));
        let several = in_time(move || apply(&lines, "a", "x"));
        assert_eq!(
            several,
            Err(EditError::Several {
                count: 1_000_000,
                lines: "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …".to_owned()
            })
        );
        let every = |text: String, old: &str, new: String| {
            let edit = Edit { old: old.to_owned(), new, replace_all: true };
            in_time(move || {
                let mut draft = Draft::new(&text, &ReadExtent::Full);
                draft.apply(&edit).map(|()| draft.finish().0.len())
            })
        };
        assert_eq!(every(one_line.clone(), "a", "cd".to_owned()), Ok(3_000_000));
        let large = EditError::Large { count: 1_000_000 };
        assert_eq!(every(one_line, "a", "x".repeat(100_000)), Err(large));
        let overlapping = EditError::Overlapping { lines: "1".to_owned() };
        assert_eq!(every("a".repeat(4_000_000), &"a".repeat(50_000), String::new()), Err(overlapping));
    }

    #[test]
    fn lines_known_in_many_parts_cost_one_pass() {
        let text = "x\n".repeat(300_000);
        let odd: Vec<(u64, u64)> = (0..150_000).map(|half| (2 * half + 1, 2 * half + 1)).collect();
        let extent = ReadExtent::Lines(odd.clone());
        let (after, seen) = in_time(move || Draft::new(&text, &extent).finish());
        assert_eq!((after.len(), seen), (600_000, ReadExtent::Lines(odd)));
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
        fn the_nearest_ending_is_found_in_one_pass(text in "[a\r\n]{0,30}", mut places in proptest::collection::vec(0usize..31, 0..8)) {
            places.sort_unstable();
            let mut nearest = Nearest::new(&text);
            for at in places.into_iter().filter(|at| *at <= text.len()) {
                let end = text[at..].find('\n').map(|offset| at + offset).or_else(|| text[..at].rfind('\n'));
                prop_assert_eq!(nearest.windows_at(at), end.is_some_and(|end| text[..end].ends_with('\r')));
            }
        }

        #[test]
        fn any_text_any_edit_never_panics(text in "[aé🌍\r\n\t1 ]{0,60}", old in "[aé🌍\r\n\t1 ]{0,6}", new in "\\PC{0,6}") {
            if let Ok(after) = apply(&text, &old, &new) {
                prop_assert_ne!(after, text);
            }
        }
    }
}
