//! Where a shell reads a text in another way than the parser does.

use tree_sitter::Node;

/// Whether the shell reads a text in another way than the parser does: it drops NULs, takes a carriage return and its kin
/// for letters, and an escaped blank too; and it joins a word that goes on in the next line.
pub(super) fn is_read_otherwise(text: &str) -> bool {
    let mut joins = text.match_indices("\\\n").filter(|(at, _)| !text[..*at].ends_with([' ', '\t', '\n']));
    let is_odd = |c: char| c == '\u{feff}' || c.is_control() && c != '\n' && c != '\t';
    let is_in_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    let mut blanks = text.match_indices("\\ ").filter(|(at, _)| !text[..*at].ends_with(is_in_word));
    text.contains(is_odd) || text.contains("\\\t") || blanks.next().is_some() || joins.next().is_some()
}

/// Whether a word without quotes holds a blank that nothing escapes. The parser takes a line that begins with a backslash
/// for a word of the command before it.
pub(super) fn holds_blank(text: &str) -> bool {
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            ' ' | '\t' | '\n' => return true,
            _ => {}
        }
    }
    false
}

/// Whether more than blanks and joined lines lies between the parts of a node; or nothing, so that they are one word.
pub(super) fn spans_lines(node: Node<'_>, source: &str) -> bool {
    let mut cursor = node.walk();
    let (mut at, mut may_touch) = (node.start_byte(), true);
    node.children(&mut cursor).any(|child| {
        let between = source.get(at..child.start_byte()).unwrap_or_default().replace("\\\n", "");
        let is_redirect = child.kind().ends_with("_redirect");
        let touches = node.kind() == "command" && between.is_empty() && !may_touch && !is_redirect;
        (at, may_touch) = (child.end_byte(), is_redirect);
        touches || !between.trim_matches([' ', '\t']).is_empty()
    })
}

/// Nodes whose parts a line break ends.
pub(super) const ON_ONE_LINE: [&str; 8] = [
    "variable_assignment",
    "concatenation",
    "command",
    "declaration_command",
    "unset_command",
    "redirected_statement",
    "file_redirect",
    "variable_assignments",
];
