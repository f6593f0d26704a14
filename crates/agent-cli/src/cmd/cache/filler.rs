//! Words that say nothing, as many as are asked for, the same for the same name: scenario files stay small.

/// Words without a digit, so that nothing among them looks like a date or an identifier.
const WORDS: [&str; 24] = [
    "the", "reader", "finds", "a", "path", "through", "old", "rules", "and", "writes", "what", "holds",
    "before", "it", "moves", "on", "with", "care", "while", "every", "small", "change", "stays", "plain",
];

/// About so many tokens of text, at four bytes each: lines of words, drawn by the name.
pub(crate) fn filler(name: &str, tokens: u64) -> String {
    let bytes = usize::try_from(tokens.saturating_mul(4)).unwrap_or(usize::MAX);
    let mut state = seed(name);
    let (mut text, mut line) = (String::new(), 0);
    while text.len() < bytes {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let word = WORDS[usize::try_from(state >> 33).unwrap_or(0) % WORDS.len()];
        text.push_str(word);
        line += word.len() + 1;
        text.push(if line > 70 { '\n' } else { ' ' });
        line = if line > 70 { 0 } else { line };
    }
    text.truncate(bytes);
    text
}

/// FNV-1a: every machine draws the same words.
fn seed(name: &str) -> u64 {
    name.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_name_gives_the_same_words_and_another_one_others() {
        insta::assert_snapshot!(filler("a", 15), @"with plain change it care it it path it change before rules");
        assert_eq!(filler("rules", 500), filler("rules", 500));
        assert_ne!(filler("rules", 500), filler("ruled", 500));
        assert_eq!((filler("x", 0).len(), filler("x", 1_000).len()), (0, 4_000));
        assert!(filler("x", 1_000).starts_with(&filler("x", 100)));
    }
}
