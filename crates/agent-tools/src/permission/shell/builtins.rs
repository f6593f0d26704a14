//! Builtins of the shell that run what is in their words, and the variables that matter to programs.

use super::Word;

/// Whether programs read a variable of this name: by custom those are in capitals.
pub(super) fn is_of_environment(name: &str) -> bool {
    !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        || name.ends_with("_proxy")
}

/// Whether a builtin reads code out of its words, or may where they are only known when it runs.
pub(super) fn evaluates(words: &[Word]) -> bool {
    let Some((name, rest)) = words.split_first() else { return false };
    let names_one =
        |options: &[&str]| rest.iter().any(|word| options.iter().any(|o| word.text.starts_with(o)));
    let may_hold_code = match name.text.as_str() {
        "let" => return true,
        "printf" | "test" | "[" => names_one(&["-v", "-R"]),
        other => EVALUATES.contains(&other),
    };
    let is_name =
        |word: &Word| word.is_known || word.text.split_once('=').is_some_and(|(name, _)| is_plain(name));
    may_hold_code && !rest.iter().all(is_name)
        || EVALUATES.contains(&name.text.as_str())
            && words.iter().any(|word| word.is_known && is_code(&word.text))
}

pub(super) fn is_plain(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// The variable of the environment that a builtin sets by its name.
pub(super) fn named_by(words: &[Word]) -> Option<&str> {
    let (name, rest) = words.split_first()?;
    let sets = match name.text.as_str() {
        "printf" => rest.first().is_some_and(|word| word.text.starts_with("-v")),
        "read" | "mapfile" | "readarray" | "getopts" => true,
        _ => false,
    };
    let mut names = rest.iter().map(|word| word.text.strip_prefix("-v").unwrap_or(&word.text));
    let is_capital = |name: &&str| {
        is_plain(name) && name.starts_with(|c: char| c.is_ascii_uppercase()) && is_of_environment(name)
    };
    names.find(is_capital).filter(|_| sets)
}

/// Whether a word holds what would be run if it were evaluated.
fn is_code(word: &str) -> bool {
    word.contains("$(") || word.contains('`')
}

/// Builtins that evaluate a word as the name of an element, or as arithmetic.
const EVALUATES: [&str; 14] = [
    "printf",
    "test",
    "[",
    "unset",
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "read",
    "mapfile",
    "readarray",
    "wait",
    "getopts",
];
/// Variables whose value the shell itself runs.
pub(super) const CODE: [&str; 5] = ["PS4", "PROMPT_COMMAND", "BASH_ENV", "ENV", "SHELLOPTS"];
