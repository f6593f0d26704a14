//! The words of a command, with quotes and escapes resolved.

use tree_sitter::Node;

use super::Word;

impl Word {
    pub(super) fn known(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_known: true }
    }

    fn unknown(text: &str) -> Self {
        Self { text: text.to_owned(), is_known: false }
    }
}

/// The word that a node stands for.
pub(super) fn word(node: Node<'_>, source: &str) -> Word {
    let text = &source[node.byte_range()];
    // These mean themselves: a command, and the place of a name in one that `find` runs.
    if text == "[" || text == "{}" {
        return Word::known(text);
    }
    match node.kind() {
        "word" | "number" => bare(text),
        "raw_string" => quoted(text, "'", "'").map_or_else(|| Word::unknown(text), Word::known),
        "string" => double(node, text),
        // Without a backslash there is nothing to decode.
        "ansi_c_string" if !text.contains('\\') => {
            quoted(text, "$'", "'").map_or_else(|| Word::unknown(text), Word::known)
        }
        "command_name" => only_child(node).map_or_else(|| Word::unknown(text), |child| word(child, source)),
        "concatenation" => concatenated(node, source, text),
        _ => Word::unknown(text),
    }
}

fn quoted<'t>(text: &'t str, open: &str, close: &str) -> Option<&'t str> {
    text.strip_prefix(open)?.strip_suffix(close)
}

fn only_child(node: Node<'_>) -> Option<Node<'_>> {
    let child = node.child(0)?;
    (node.child_count() == 1).then_some(child)
}

/// A word without quotes. What the shell expands in it is only known when it runs.
fn bare(text: &str) -> Word {
    let mut plain = String::with_capacity(text.len());
    let mut is_known = true;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('\n') | None => {}
                Some(escaped) => plain.push(escaped),
            },
            // A tilde can be a home directory also after `=` and `:`.
            '~' | '*' | '?' | '[' | '{' | '}' | '$' | '`' | '<' | '>' | '(' | ')' | '"' | '\'' => {
                is_known = false;
                plain.push(c);
            }
            other => plain.push(other),
        }
    }
    Word { text: if is_known { plain } else { text.to_owned() }, is_known }
}

/// A word in double quotes, when nothing is expanded in it.
fn double(node: Node<'_>, text: &str) -> Word {
    let mut cursor = node.walk();
    let is_plain = node.named_children(&mut cursor).all(|child| child.kind() == "string_content");
    let Some(inner) = quoted(text, "\"", "\"").filter(|_| is_plain) else { return Word::unknown(text) };
    let mut plain = String::with_capacity(inner.len());
    let mut chars = inner.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next_if(|next| matches!(next, '$' | '`' | '"' | '\\' | '\n')) {
                Some('\n') => {}
                Some(escaped) => plain.push(escaped),
                None => plain.push(c),
            },
            // What the parser did not take for an expansion could still be one.
            '`' => return Word::unknown(text),
            '$' if chars.peek().is_some_and(|next| *next == '(' || *next == '{') => {
                return Word::unknown(text);
            }
            other => plain.push(other),
        }
    }
    Word::known(plain)
}

/// Pieces that touch each other.
fn concatenated(node: Node<'_>, source: &str, text: &str) -> Word {
    let mut joined = Word::known("");
    let mut at = node.start_byte();
    let mut cursor = node.walk();
    for piece in node.children(&mut cursor) {
        let part = match piece.is_named() {
            true => word(piece, source),
            false => bare(&source[piece.byte_range()]),
        };
        if piece.start_byte() != at || !part.is_known {
            return Word::unknown(text);
        }
        joined.text.push_str(&part.text);
        at = piece.end_byte();
    }
    if at == node.end_byte() { joined } else { Word::unknown(text) }
}
