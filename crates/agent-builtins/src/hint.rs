//! What to try after a text to replace was not found.

use crate::text::line_at;

/// What helps after a miss, to follow the error: pasted line numbers, other white space, or the lines that are most alike.
///
/// `reader` is the tool or command that showed the text.
pub(crate) fn hint(text: &str, old: &str, reader: &str) -> String {
    if let Some(stripped) = without_line_numbers(old) {
        let at = text
            .find(&stripped)
            .map_or_else(String::new, |at| format!(" Without them it is on line {}.", line_at(text, at)));
        return format!(
            " It seems to hold the line numbers that {reader} puts before each line; leave out each number and the tab after it.{at}"
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
    if wanted.is_empty() || lines.len().saturating_mul(wanted.len()) > COMPARISONS {
        return None;
    }
    lines.windows(wanted.len()).position(|window| window == wanted).map(|at| at + 1)
}

/// At most three lines that are most like the first words of `old`, in the order of the file.
///
/// A real comparison is slow, so it is made only with the lines that could be most alike by their letters.
fn nearest<'t>(text: &'t str, old: &str) -> Vec<(usize, &'t str)> {
    let Some(wanted) = old.lines().map(str::trim).find(|line| !line.is_empty()) else { return Vec::new() };
    let wanted: String = wanted.chars().take(COMPARED).collect();
    let letters = Letters::of(&wanted);
    let lines = text.lines().enumerate().take(LOOKED_AT).map(|(at, line)| (at + 1, line));
    let likely =
        lines.filter_map(|(number, line)| Some((letters.at_most(&wanted, line.trim())?, number, line)));
    let alike = best(likely.collect(), CANDIDATES).into_iter().filter_map(|(_, number, line)| {
        let ratio = similar::TextDiff::from_chars(wanted.as_str(), line.trim()).ratio();
        (ratio >= ALIKE).then_some(((ratio * 1000.0) as u32, number, line))
    });
    let mut best = best(alike.collect(), 3);
    best.sort_unstable_by_key(|(_, number, _)| *number);
    let clip = |line: &'t str| &line[..agent_core::floor_boundary(line, COMPARED)];
    best.into_iter().map(|(_, number, line)| (number, clip(line))).collect()
}

/// The lines with the highest scores; of equal ones the first.
fn best(mut lines: Vec<(u32, usize, &str)>, most: usize) -> Vec<(u32, usize, &str)> {
    lines.sort_unstable_by_key(|(score, number, _)| (std::cmp::Reverse(*score), *number));
    lines.truncate(most);
    lines
}

/// How often each byte occurs.
struct Letters([u32; 256]);

impl Letters {
    fn of(text: &str) -> Self {
        let mut counts = [0; 256];
        text.bytes().for_each(|byte| counts[usize::from(byte)] += 1);
        Self(counts)
    }

    /// The most, in thousandths, that a real comparison could find two lines alike; nothing when that is too little to
    /// be worth showing.
    fn at_most(&self, wanted: &str, line: &str) -> Option<u32> {
        if line.len() * 3 < wanted.len() || wanted.len() * 3 < line.len() {
            return None;
        }
        let theirs = Self::of(line);
        let shared: u32 = self.0.iter().zip(theirs.0).map(|(ours, theirs)| (*ours).min(theirs)).sum();
        let all = wanted.chars().count() + line.chars().count();
        let ratio = 2.0 * shared as f32 / all as f32;
        (ratio >= ALIKE).then_some((ratio * 1000.0) as u32)
    }
}

const COMPARED: usize = 200;
/// Comparing is slow, and a hint is not worth seconds.
const LOOKED_AT: usize = 20_000;
const CANDIDATES: usize = 100;
const ALIKE: f32 = 0.5;
/// Comparisons of lines for one hint.
const COMPARISONS: usize = 20_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_for_a_large_file_comes_in_time() {
        // All lines have much the same letters, and only one has them in the order of what is looked for.
        let line = |number: u32| {
            let mut state = number;
            let letter = |_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                char::from(b'a' + (state >> 29) as u8)
            };
            (0..190).map(letter).collect::<String>()
        };
        let text: String = (0..20_000).map(|number| line(number) + "\n").collect();
        let old = format!("{}, and more", line(777));
        let (ended, ends) = std::sync::mpsc::channel();
        std::thread::spawn(move || ended.send(hint(&text, &old, "read_file")).unwrap());
        let said = ends.recv_timeout(std::time::Duration::from_secs(10)).expect("it ends in time");
        let wanted = format!("\n   778\t{}\n", line(777));
        assert!(said.contains(&wanted), "{said}");
    }

    #[test]
    fn letters_never_underrate_a_line() {
        for (one, other) in [("abc", "cba"), ("äöü", "öäü"), ("let x = 1;", "let y = 12;"), ("🌍a", "a🌍")]
        {
            let real = similar::TextDiff::from_chars(one, other).ratio();
            let most = Letters::of(one).at_most(one, other);
            assert!(
                most.is_some_and(|most| most >= (real * 1000.0) as u32),
                "{one} {other}: {most:?} < {real}"
            );
        }
        assert_eq!(Letters::of("abc").at_most("abc", "xyz"), None);
        assert_eq!(Letters::of("abc").at_most("abc", "abcabcabcabc"), None);
    }

    #[test]
    fn many_lines_that_begin_alike_are_not_compared_for_ever() {
        let text = "x\n".repeat(1_000_000);
        let old = format!("{}y", " x\n".repeat(100_000));
        let (ended, ends) = std::sync::mpsc::channel();
        std::thread::spawn(move || ended.send(but_for_white_space(&text, &old)).unwrap());
        assert_eq!(ends.recv_timeout(std::time::Duration::from_secs(10)), Ok(None));
    }
}
