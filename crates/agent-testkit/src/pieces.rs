//! Cutting text into the pieces a stream arrives in.

use agent_core::floor_boundary;

/// The text in pieces of at most `bytes` bytes, or of one character where that is longer.
pub(crate) fn pieces(text: &str, bytes: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let cut = floor_boundary(rest, bytes).max(first.len_utf8());
        let (piece, after) = rest.split_at(cut);
        rest = after;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_join_to_the_text(text in ".{0,60}", bytes in 0usize..9) {
            let cut: Vec<_> = pieces(&text, bytes).collect();
            prop_assert_eq!(cut.concat(), text.clone());
            for piece in cut {
                prop_assert!(!piece.is_empty());
                prop_assert!(piece.len() <= bytes || piece.chars().count() == 1);
            }
        }
    }
}
