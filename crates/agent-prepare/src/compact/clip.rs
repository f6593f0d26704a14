//! Texts made short: from the middle, to a number of tokens, or to one line.

use std::borrow::Cow;

use agent_core::{Accountant, ceil_boundary, floor_boundary};

/// Head and tail of a text, `bytes` bytes of it together, with a line between that says what is gone.
pub(super) fn clip(text: &str, bytes: usize) -> Cow<'_, str> {
    if text.len() <= bytes {
        return Cow::Borrowed(text);
    }
    let head = floor_boundary(text, bytes.div_ceil(2));
    let tail = ceil_boundary(text, text.len() - bytes / 2).max(head);
    let gone = tail - head;
    Cow::Owned(format!("{}\n[{gone} bytes left out]\n{}", &text[..head], &text[tail..]))
}

/// As much of a text, head and tail, as has at most so many tokens.
pub(super) fn fit<'t>(accountant: &Accountant, text: &'t str, tokens: u64) -> Cow<'t, str> {
    if accountant.text(text) <= tokens {
        return Cow::Borrowed(text);
    }
    let mut bytes = usize::try_from(tokens.saturating_mul(4)).unwrap_or(usize::MAX).min(text.len() - 1);
    loop {
        let clipped = clip(text, bytes);
        if bytes == 0 || accountant.text(&clipped) <= tokens {
            return clipped;
        }
        bytes = bytes * 3 / 4;
    }
}

/// The beginning of a text in one line of at most `bytes` bytes, white space collapsed.
pub(super) fn one_line(text: &str, bytes: usize) -> String {
    // An output can be long, and only its beginning is looked at.
    let text = &text[..floor_boundary(text, bytes.saturating_mul(8))];
    let mut line = String::new();
    for word in text.split_whitespace() {
        if line.len() > bytes {
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        // A word can be as long as the text.
        line.push_str(&word[..floor_boundary(word, bytes + 1)]);
    }
    if line.len() > bytes {
        line.truncate(floor_boundary(&line, bytes));
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn head_and_tail_stay() {
        let check = |text: &str, bytes: usize, expect: &str| assert_eq!(clip(text, bytes), expect);
        check("abcdef", 6, "abcdef");
        check("abcdef", 4, "ab\n[2 bytes left out]\nef");
        check("abcdef", 3, "ab\n[3 bytes left out]\nf");
        check("abcdef", 0, "\n[6 bytes left out]\n");
        check("äöü", 3, "ä\n[4 bytes left out]\n");
    }

    #[test]
    fn lines() {
        let check = |text: &str, bytes: usize, expect: &str| assert_eq!(one_line(text, bytes), expect);
        check("  a\n\tb ", 9, "a b");
        check("one two three", 7, "one two…");
        check("ääää", 3, "ä…");
        check("", 3, "");
    }

    proptest! {
        #[test]
        fn what_fits_fits(text in "\\PC{0,400}", tokens in 0u64..80) {
            let accountant = Accountant::default();
            let fitted = fit(&accountant, &text, tokens);
            // The line that says what is gone takes some tokens itself.
            prop_assert!(accountant.text(&fitted) <= tokens.max(8));
            prop_assert_eq!(fitted == text, accountant.text(&text) <= tokens);
            prop_assert!(one_line(&text, 20).len() <= 20 + '…'.len_utf8());
        }
    }
}
