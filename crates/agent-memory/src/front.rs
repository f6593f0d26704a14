//! Front matter: what stands between two lines `---` at the beginning of a Markdown file.

/// A text with its front matter apart, both as they were written; see [`front_matter`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the two halves of a text")]
pub struct FrontMatter<'t> {
    /// What stands between the borders, with its last line ending; YAML by custom.
    pub front: &'t str,
    /// What follows the second border.
    pub body: &'t str,
}

/// Why a text has no front matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[expect(clippy::exhaustive_enums, reason = "a border is missing at the beginning or at the end")]
pub enum NoFrontMatter {
    /// The first line is no border.
    #[error("it does not begin with front matter, which begins with a line `---`")]
    Missing,
    /// There is no second border.
    #[error("its front matter does not end; put a line `---` behind it")]
    Open,
}

/// Splits a text with `\n` line endings. A border is a line of its own that begins at the margin, as in YAML; only the first
/// two are borders.
///
/// # Errors
/// When a border is missing.
pub fn front_matter(text: &str) -> Result<FrontMatter<'_>, NoFrontMatter> {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    if first.trim_end() != BORDER {
        return Err(NoFrontMatter::Missing);
    }
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == BORDER {
            return Ok(FrontMatter { front: &rest[..at], body: &rest[at + line.len()..] });
        }
        at += line.len();
    }
    Err(NoFrontMatter::Open)
}

/// Words with single spaces between them, for a list with one line for each. What could steer a terminal or turn the
/// direction of writing is left out.
pub fn one_line(text: &str) -> String {
    let words: Vec<String> = text
        .split_whitespace()
        .map(|word| word.chars().filter(|one| !is_steering(*one)).collect::<String>())
        .filter(|word| !word.is_empty())
        .collect();
    words.join(" ")
}

pub(crate) fn is_steering(one: char) -> bool {
    one.is_control() || matches!(one, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// A text as it is kept: without a byte order mark, with `\n` line endings.
pub(crate) fn tidy(text: &str) -> String {
    text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n").replace('\r', "\n")
}

const BORDER: &str = "---";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_two_borders_are_borders() {
        let check = |text: &str, front: &str, body: &str| {
            assert_eq!(front_matter(text), Ok(FrontMatter { front, body }), "{text:?}");
        };
        check("---\na: b\n---\n\nText\n---\nmore\n", "a: b\n", "\nText\n---\nmore\n");
        check("--- \na: |\n  --- x\n---\t\nText", "a: |\n  --- x\n", "Text");
        check("---\n---", "", "");
        assert_eq!(front_matter("# Text\n---\n---\n"), Err(NoFrontMatter::Missing));
        assert_eq!(front_matter("---\na: b\n ---\n"), Err(NoFrontMatter::Open));
        assert_eq!(front_matter(""), Err(NoFrontMatter::Missing));
    }

    #[test]
    fn a_line_is_one_line() {
        assert_eq!(one_line(" a\n\tb\u{1b}[1m \u{202e} c "), "a b[1m c");
    }
}
