//! Bytes of foreign programs as text that can neither steer a terminal nor hide what it says.

/// Text made from bytes by a fixed rule (case T05).
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Visible {
    pub(crate) text: String,
    /// Stretches of bytes that were not UTF-8; each became one or more U+FFFD.
    pub(crate) replaced: usize,
}

/// Decodes bytes: what is not UTF-8 becomes U+FFFD, a line ending becomes `\n`, and every other control character
/// and every character that turns the direction of writing becomes a visible one. Letters of right-to-left scripts
/// and the marks that belong to them stay.
pub(crate) fn visible(bytes: &[u8]) -> Visible {
    let replaced = bytes.utf8_chunks().filter(|chunk| !chunk.invalid().is_empty()).count();
    let decoded = String::from_utf8_lossy(bytes);
    let mut text = String::with_capacity(decoded.len());
    let mut rest = decoded.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '\r' if rest.peek() == Some(&'\n') => {}
            '\n' | '\t' => text.push(character),
            // The pictures of the control characters stand in the same order as the characters.
            '\0'..='\u{1f}' => text.extend(char::from_u32(0x2400 + u32::from(character))),
            '\u{7f}' => text.push('\u{2421}'),
            '\u{80}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                text.extend(character.escape_unicode());
            }
            _ => text.push(character),
        }
    }
    Visible { text, replaced }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], text: &str, replaced: usize) {
        assert_eq!(visible(bytes), Visible { text: text.to_owned(), replaced });
    }

    #[test]
    fn bytes_are_shown_by_a_fixed_rule() {
        check(b"plain\ttext\n", "plain\ttext\n", 0);
        check(b"ok\xff\xfe\xc3", "ok\u{fffd}\u{fffd}\u{fffd}", 3);
        check(b"W\0s\0l\0", "W\u{2400}s\u{2400}l\u{2400}", 0);
        check(b"\x1b[?1049h\x1b]0;x\x07red\x7f", "\u{241b}[?1049h\u{241b}]0;x\u{2407}red\u{2421}", 0);
        check("a\u{202e}b\u{2066}c\u{9b}d".as_bytes(), r"a\u{202e}b\u{2066}c\u{9b}d", 0);
        check(b"one\r\ntwo\r50%\r100%\r\n", "one\ntwo\u{240d}50%\u{240d}100%\n", 0);
        check(b"\xc4\xe3\xba\xc3", "\u{fffd}\u{fffd}\u{fffd}", 3);
    }

    #[test]
    fn right_to_left_text_is_untouched() {
        for line in ["مرحبا بالعالم", "שלום עולם", "abc \u{200f}אבג\u{200e} def", "👩\u{200d}🚀"]
        {
            check(line.as_bytes(), line, 0);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_become_harmless(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            let shown = visible(&bytes).text;
            let harmless = shown.chars().all(|c| c == '\n' || c == '\t' || !c.is_control());
            proptest::prop_assert!(harmless, "{shown:?}");
        }
    }
}
