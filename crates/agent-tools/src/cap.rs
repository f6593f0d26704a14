//! Caps on what a tool's output may bring into the history: head and tail stay, the middle goes.

use agent_core::{ceil_boundary, floor_boundary};
use memchr::memchr_iter;

/// Largest output of a tool (requirement T5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a config struct: a literal with ..Default")]
pub struct OutputCap {
    /// Most lines.
    pub lines: usize,
    /// Most bytes.
    pub bytes: usize,
    /// Most characters of one line.
    pub line_chars: usize,
}

/// An output after the cap.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capped {
    /// What enters the history.
    pub text: String,
    /// Bytes that were left out; 0 when the text is whole.
    pub cut_bytes: usize,
}

impl Default for OutputCap {
    fn default() -> Self {
        Self { lines: 2_000, bytes: 51_200, line_chars: 2_000 }
    }
}

impl OutputCap {
    /// Cuts `text` to the cap: long lines first, then the middle. `more` tells where the rest can be read; it is
    /// added to the mark where the cut is.
    pub fn apply(&self, text: &str, more: &str) -> Capped {
        if self.fits(text) {
            return Capped { text: text.to_owned(), cut_bytes: 0 };
        }
        let (clipped, cut_in_lines) = self.clip_lines(text);
        let lines = clipped.lines().count();
        if clipped.len() <= self.bytes && lines <= self.lines {
            return Capped { text: with_note(&clipped, cut_in_lines, more), cut_bytes: cut_in_lines };
        }
        let (head, tail) = self.head_and_tail(&clipped);
        let cut_bytes = clipped.len() - head.len() - tail.len() + cut_in_lines;
        let mark =
            format!("[… {cut_bytes} bytes left out{}{more} …]", if more.is_empty() { "" } else { "; " });
        let gap = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
        Capped { text: format!("{head}{gap}{mark}\n{tail}"), cut_bytes }
    }

    /// Whether the text may stay as it is.
    pub fn fits(&self, text: &str) -> bool {
        text.len() <= self.bytes && self.fits_lines(text)
    }

    /// Whether there are few enough lines, all of them short enough.
    fn fits_lines(&self, text: &str) -> bool {
        let breaks = memchr_iter(b'\n', text.as_bytes()).count();
        let is_open = !text.is_empty() && !text.ends_with('\n');
        if breaks + usize::from(is_open) > self.lines {
            return false;
        }
        // Most outputs have only lines of fewer bytes than the characters that are allowed: no line is looked at then.
        text.len() <= self.line_chars
            || breaks_often(text.as_bytes(), self.line_chars)
            || text.lines().all(|line| line.chars().count() <= self.line_chars)
    }

    fn clip_lines(&self, text: &str) -> (String, usize) {
        let mut out = String::with_capacity(text.len().min(self.bytes.saturating_mul(2)));
        let mut cut = 0;
        for line in text.split_inclusive('\n') {
            let body = line.trim_end_matches('\n');
            match body.char_indices().nth(self.line_chars) {
                Some((at, _)) => {
                    cut += body.len() - at;
                    out.push_str(&body[..at]);
                    out.push_str(" [… line cut]");
                    out.push_str(&line[body.len()..]);
                }
                None => out.push_str(line),
            }
        }
        (out, cut)
    }

    /// Two thirds head, one third tail, cut at line borders where there are any near, else at characters.
    fn head_and_tail<'t>(&self, text: &'t str) -> (&'t str, &'t str) {
        let (head_lines, tail_lines) = (self.lines - self.lines / 3, self.lines / 3);
        let by_lines = nth_line_start(text, head_lines);
        let head_end = floor_boundary(text, by_lines.min(self.bytes - self.bytes / 3));
        let head_end = text[..head_end].rfind('\n').map_or(head_end, |at| at + 1);
        let tail_by_bytes = ceil_boundary(text, text.len().saturating_sub(self.bytes / 3));
        let tail_start = tail_by_bytes.max(nth_line_start_from_end(text, tail_lines)).max(head_end);
        let at_line_start = text[..tail_start].ends_with('\n');
        let tail_start = match text[tail_start..].find('\n') {
            Some(at) if !at_line_start && tail_start + at + 1 < text.len() => tail_start + at + 1,
            _ => tail_start,
        };
        (&text[..head_end], &text[tail_start..])
    }
}

/// Whether every stretch of more than `most` bytes holds a line break.
fn breaks_often(mut text: &[u8], most: usize) -> bool {
    while text.len() > most {
        match text[..=most].iter().rposition(|byte| *byte == b'\n') {
            Some(at) => text = &text[at + 1..],
            None => return false,
        }
    }
    true
}

fn with_note(text: &str, cut: usize, more: &str) -> String {
    let gap = if text.ends_with('\n') { "" } else { "\n" };
    let more = if more.is_empty() { String::new() } else { format!("; {more}") };
    format!("{text}{gap}[{cut} bytes of long lines left out{more}]")
}

fn nth_line_start(text: &str, n: usize) -> usize {
    if n == 0 {
        return 0;
    }
    text.match_indices('\n').nth(n - 1).map_or(text.len(), |(at, _)| at + 1)
}

fn nth_line_start_from_end(text: &str, n: usize) -> usize {
    let body = text.strip_suffix('\n').unwrap_or(text);
    if n == 0 {
        return text.len();
    }
    body.rmatch_indices('\n').nth(n - 1).map_or(0, |(at, _)| at + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SMALL: OutputCap = OutputCap { lines: 6, bytes: 60, line_chars: 20 };

    #[test]
    fn head_and_tail_stay() {
        let check = |text: &str, expect: &str| assert_eq!(SMALL.apply(text, "").text, expect, "{text:?}");
        check("short", "short");
        check("1\n2\n3\n4\n5\n6\n", "1\n2\n3\n4\n5\n6\n");
        check("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\n[… 6 bytes left out …]\n8\n9\n");
        check(&"x".repeat(30), "xxxxxxxxxxxxxxxxxxxx [… line cut]\n[10 bytes of long lines left out]");
    }

    #[test]
    fn a_cap_without_limits_cuts_nothing() {
        let none = OutputCap { lines: usize::MAX, bytes: usize::MAX, line_chars: usize::MAX };
        assert_eq!(none.apply(&"x\n".repeat(9_000), "").cut_bytes, 0);
        let long_lines = OutputCap { line_chars: 3, ..none };
        assert_eq!(long_lines.apply("abcdef", "").cut_bytes, 3);
    }

    #[test]
    fn what_fits_is_counted_in_lines_and_characters() {
        let cap = OutputCap { lines: 3, bytes: 90, line_chars: 4 };
        let check = |text: &str, expect: bool| assert_eq!(cap.fits(text), expect, "{text:?}");
        for text in ["", "\n", "abcd", "abcd\n", "abcd\nabcd\nabcd\n", "éééé\néééé", "ab\r\nabcd\r\n"]
        {
            check(text, true);
        }
        for text in ["abcde", "abcd\nabcd\nabcd\n\n", "a\nb\nc\nd", "a\nééééé", "abcd\nabcde\n"] {
            check(text, false);
        }
        check(&"a\n".repeat(46), false);
    }

    #[test]
    fn the_mark_says_where_the_rest_is() {
        let capped = SMALL.apply(&"line\n".repeat(50), "read blob:x");
        assert!(capped.text.contains("bytes left out; read blob:x …]"), "{}", capped.text);
        assert!(capped.cut_bytes > 0);
    }

    /// Any text: pieces that are easily cut in two, among any characters at all.
    fn text() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            4 => "[a-zé ]{0,12}",
            2 => proptest::sample::select(vec![
                "\n", "\r\n", "\r", "e\u{301}\u{302}", "👩\u{200d}👩\u{200d}👧", "🏳\u{fe0f}\u{200d}🌈", "\u{202e}", "\0",
                "\u{2028}", "\u{feff}", "[… 3 bytes left out …]",
            ]).prop_map(str::to_owned),
            1 => any::<String>(),
        ];
        proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    fn cap() -> impl Strategy<Value = OutputCap> {
        let small = (0usize..12, 0usize..90, 0usize..40);
        small.prop_map(|(lines, bytes, line_chars)| OutputCap { lines, bytes, line_chars })
    }

    proptest::proptest! {
        #[test]
        fn any_text_any_cap(text in text(), cap in cap()) {
            let Capped { text: shown, cut_bytes } = cap.apply(&text, "");
            prop_assert!(shown.len() <= cap.bytes + 20 * cap.lines + 120, "bounded: {}", shown.len());
            prop_assert_eq!(cut_bytes == 0, cap.fits(&text), "it says whether it cut");
            if cut_bytes == 0 {
                prop_assert_eq!(shown, text);
            }
        }

        /// Without long lines what is left is a head and a tail, and what is missing is between them.
        #[test]
        fn head_and_tail_are_of_the_text(text in text(), cap in cap()) {
            let cap = OutputCap { line_chars: usize::MAX, ..cap };
            let Capped { text: shown, cut_bytes } = cap.apply(&text, "");
            if cut_bytes > 0 {
                let mark = format!("[… {cut_bytes} bytes left out …]\n");
                let fits = shown.match_indices(&mark).any(|(at, _)| {
                    let (head, tail) = (&shown[..at], &shown[at + mark.len()..]);
                    let begins = |head: &str| text.starts_with(head)
                        && head.len() + cut_bytes + tail.len() == text.len();
                    text.ends_with(tail) && (begins(head) || head.strip_suffix('\n').is_some_and(begins))
                });
                prop_assert!(fits, "{:?}", shown);
            }
        }

        /// With long lines alone, each is the beginning of what it was.
        #[test]
        fn long_lines_are_cut_at_their_ends(text in text(), line_chars in 0usize..40) {
            let cap = OutputCap { lines: usize::MAX, bytes: usize::MAX, line_chars };
            let (clipped, cut) = cap.clip_lines(&text);
            prop_assert_eq!(clipped.split('\n').count(), text.split('\n').count());
            let mut left = 0;
            for (now, before) in clipped.split('\n').zip(text.split('\n')) {
                if now != before {
                    let head = now.strip_suffix(" [… line cut]").unwrap_or("not cut");
                    prop_assert!(before.starts_with(head), "{:?} of {:?}", now, before);
                    prop_assert_eq!(head.chars().count(), line_chars);
                    left += before.len() - head.len();
                }
            }
            prop_assert_eq!(left, cut);
        }
    }
}
