//! Changes of a text, made as a whole or not at all.

use crate::hint::hint;
use crate::text::line_at;

/// Puts one text in the place of another, which must occur once.
pub(super) fn replace(text: &str, old: &str, new: &str) -> Result<String, String> {
    let (old, new) = (old.replace("\r\n", "\n"), new.replace("\r\n", "\n"));
    if old.is_empty() {
        return Err("old_str is empty, so it names no place. To add text, use insert.".to_owned());
    }
    if old == new {
        return Err("old_str and new_str are equal, so there is nothing to do.".to_owned());
    }
    let step = old.chars().next().map_or(1, char::len_utf8);
    let mut places: Vec<usize> = Vec::new();
    let mut from = 0;
    while let Some(offset) = text[from..].find(&old) {
        places.push(from + offset);
        from += offset + step;
    }
    match places.as_slice() {
        [] => Err(format!("old_str was not found.{}", hint(text, &old, "view"))),
        [at] => Ok(format!("{}{new}{}", &text[..*at], &text[at + old.len()..])),
        several => {
            let lines = several.iter().take(SHOWN).map(|at| line_at(text, *at).to_string());
            Err(format!(
                "old_str occurs {} times, on lines {}. Take in more of the surrounding text, so that it occurs once.",
                several.len(),
                lines.collect::<Vec<_>>().join(", ")
            ))
        }
    }
}

/// Puts whole lines behind a line, or before all of them.
pub(super) fn insert(text: &str, line: u64, new: &str) -> Result<String, String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let at = usize::try_from(line).ok().filter(|at| *at <= lines.len()).ok_or_else(|| {
        format!(
            "insert_line is from 0 (the beginning) to {}, the last line of the file; {line} is none of them.",
            lines.len()
        )
    })?;
    let (head, tail) = (lines[..at].concat(), lines[at..].concat());
    let joint = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
    let new = new.replace("\r\n", "\n");
    let end = if new.ends_with('\n') { "" } else { "\n" };
    Ok(format!("{head}{joint}{new}{end}{tail}"))
}

/// Places that an error names.
const SHOWN: usize = 10;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_go_where_they_are_put() {
        let check =
            |text: &str, line: u64, expect: Result<&str, &str>| match (insert(text, line, "x"), expect) {
                (Ok(made), Ok(expect)) => assert_eq!(made, expect, "{text:?} {line}"),
                (Err(error), Err(expect)) => assert!(error.contains(expect), "{error}"),
                other => panic!("{text:?} {line}: {other:?}"),
            };
        check("a\nb\n", 0, Ok("x\na\nb\n"));
        check("a\nb\n", 1, Ok("a\nx\nb\n"));
        check("a\nb\n", 2, Ok("a\nb\nx\n"));
        check("a\nb", 2, Ok("a\nb\nx\n"));
        check("", 0, Ok("x\n"));
        check("a\nb\n", 3, Err("from 0 (the beginning) to 2"));
        check("a", u64::MAX, Err("to 1"));
    }

    proptest! {
        #[test]
        fn a_text_that_occurs_once_is_replaced(text in "[abé\n]{0,30}", old in "[abé\n]{0,4}", new in "[abcé\n]{0,4}") {
            let found = text.char_indices().filter(|(at, _)| text[*at..].starts_with(&old)).count();
            match replace(&text, &old, &new) {
                Ok(made) => {
                    prop_assert_eq!(found, 1);
                    prop_assert_eq!(made, text.replacen(&old, &new, 1));
                }
                Err(error) => prop_assert!(found != 1 || old.is_empty() || old == new, "{}", error),
            }
        }
    }
}
