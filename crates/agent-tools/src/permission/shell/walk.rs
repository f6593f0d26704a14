//! Walks the parse of a shell text.

use tree_sitter::{Node, Parser};

use super::words::word;
use super::wrappers::{Inner, inner};
use super::{Beside, Command, Script, Through, Word};

/// Takes a shell text apart. What cannot be parsed, or is not known to be harmless, is among [`Script::beside`].
pub(crate) fn script(text: &str) -> Script {
    let mut walker = Walker { source: text, script: Script::default(), depth: 0 };
    walker.read();
    walker.script
}

struct Walker<'t> {
    source: &'t str,
    script: Script,
    depth: usize,
}

impl Walker<'_> {
    fn read(&mut self) {
        let mut parser = Parser::new();
        let tree = match parser.set_language(&tree_sitter_bash::LANGUAGE.into()) {
            Ok(()) => parser.parse(self.source, None),
            Err(_) => None,
        };
        match tree {
            Some(tree) if !tree.root_node().has_error() && !is_read_otherwise(self.source) => {
                self.visit(tree.root_node());
            }
            Some(_) | None => self.unknown(self.source.to_owned()),
        }
    }

    fn text(&self, node: Node<'_>) -> &str {
        &self.source[node.byte_range()]
    }

    fn unknown(&mut self, part: String) {
        self.script.beside.push(Beside::Unknown(part));
    }

    fn visit(&mut self, node: Node<'_>) {
        if self.depth >= DEEPEST {
            return self.unknown(self.text(node).to_owned());
        }
        self.depth += 1;
        match node.kind() {
            "command" => self.command(node),
            // `export`, `declare`, `unset` and their kin are commands with rules of their own.
            "declaration_command" | "unset_command" => self.builtin(node),
            "variable_assignment" => self.sets(node.child_by_field_name("name")),
            "for_statement" => self.sets(node.child_by_field_name("variable")),
            "file_redirect" => self.redirect(node),
            "arithmetic_expansion" => self.arithmetic(node),
            "test_command" => self.test(node),
            "expansion" => self.expansion(node),
            "heredoc_body" => self.heredoc(node),
            kind if HARMLESS.contains(&kind) => {}
            _ => self.unknown(self.text(node).to_owned()),
        }
        self.children(node);
        self.depth -= 1;
    }

    fn children(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        let children: Vec<_> = node.named_children(&mut cursor).collect();
        for child in children {
            self.visit(child);
        }
    }

    fn command(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        let mut words = Vec::new();
        for child in node.named_children(&mut cursor) {
            match child.kind() {
                "variable_assignment"
                | "file_redirect"
                | "herestring_redirect"
                | "heredoc_redirect"
                | "comment" => {}
                _ => words.push(word(child, self.source)),
            }
        }
        self.run(words, Through::Shell);
    }

    fn builtin(&mut self, node: Node<'_>) {
        let mut cursor = node.walk();
        let name = node.child(0).map(|name| Word::known(self.text(name)));
        let rest = node.named_children(&mut cursor).map(|child| word(child, self.source));
        let words = name.into_iter().chain(rest).collect();
        self.run(words, Through::Shell);
    }

    /// Adds a command, and what it runs in its turn.
    fn run(&mut self, words: Vec<Word>, through: Through) {
        let Some(name) = words.first() else { return };
        if !name.is_known {
            self.unknown(super::join(&words));
        }
        let evaluates = EVALUATES.contains(&name.text.as_str());
        if evaluates && words.iter().any(|word| word.is_known && is_code(&word.text)) {
            self.unknown(super::join(&words));
        }
        let within = inner(&words);
        self.script.commands.push(Command { words, through });
        if self.script.commands.len() > MOST_COMMANDS {
            return self.unknown("more commands than are looked at".to_owned());
        }
        match within {
            Inner::Nothing => {}
            Inner::Commands(all, through) => {
                for words in all {
                    self.run(words, through);
                }
            }
            Inner::Text(text) => self.nested(&text),
            Inner::Unknown(part) => self.unknown(part),
        }
    }

    /// A text that a command hands to a shell.
    fn nested(&mut self, text: &str) {
        if self.depth >= DEEPEST {
            return self.unknown(text.to_owned());
        }
        let mut walker = Walker { source: text, script: Script::default(), depth: self.depth + NESTED };
        walker.read();
        let Script { commands, beside } = walker.script;
        let through = commands.into_iter().map(|command| Command { through: Through::Wrapper, ..command });
        self.script.commands.extend(through);
        self.script.beside.extend(beside);
    }

    /// A variable of the shell; of `declare` and its kin the command itself has been seen.
    fn sets(&mut self, name: Option<Node<'_>>) {
        let name = name.map_or("", |name| self.text(name));
        if is_of_environment(name) {
            let name = name.to_owned();
            self.script.beside.push(Beside::Sets(name));
        }
    }

    fn redirect(&mut self, node: Node<'_>) {
        // `<&-` closes and has none.
        let Some(to) = node.child_by_field_name("destination") else { return };
        let target = word(to, self.source);
        let operator = &self.source[node.start_byte()..to.start_byte()];
        let operator = operator.trim().trim_start_matches(|c: char| c.is_ascii_digit());
        let is_number = target.text.bytes().all(|b| b.is_ascii_digit() || b == b'-');
        let is_copy = matches!(operator, ">&" | "<&") && is_number;
        let is_network = target.text.starts_with("/dev/tcp/") || target.text.starts_with("/dev/udp/");
        if !target.is_known || is_network {
            return self.unknown(self.text(node).to_owned());
        }
        if !is_copy && operator != "<" && !SINKS.contains(&target.text.as_str()) {
            self.script.beside.push(Beside::Writes(target.text));
        }
    }

    /// Where the shell wants a number, what a variable holds is code.
    fn arithmetic(&mut self, node: Node<'_>) {
        if !is_made_of(node, &NUMERIC) {
            self.unknown(self.text(node).to_owned());
        }
    }

    /// The outer one ends where its delimiter comes first, although that may be meant for one within.
    fn heredoc(&mut self, node: Node<'_>) {
        if self.text(node).replace("<<<", "").contains("<<") {
            self.unknown(self.text(node).to_owned());
        }
    }

    fn test(&mut self, node: Node<'_>) {
        let text = self.text(node);
        let counts = text.starts_with("[[") && text.split_whitespace().any(|word| NUMBERS.contains(&word));
        if counts || text.split_whitespace().any(|word| word == "-v" || word == "-R") {
            self.unknown(text.to_owned());
        }
    }

    /// `${x@P}` runs what a variable holds, `${!x}` reads what it names, `${x:n}` counts, and `${x=y}` sets it.
    fn expansion(&mut self, node: Node<'_>) {
        let text = self.text(node);
        let is_plain = !text.contains(['@', '!', '[', '(', '`', '=']);
        let counts = text.split(':').skip(1).any(|rest| !rest.starts_with(['-', '+', '?']));
        if !is_plain || counts {
            self.unknown(text.to_owned());
        }
    }
}

/// Whether the shell reads a text in another way than the parser does: it drops NULs, and joins a word that goes on in
/// the next line.
fn is_read_otherwise(text: &str) -> bool {
    let mut joins = text.match_indices("\\\n").filter(|(at, _)| !text[..*at].ends_with([' ', '\t', '\n']));
    text.contains('\0') || joins.next().is_some()
}

/// Whether programs read a variable of this name: by custom those are in capitals.
fn is_of_environment(name: &str) -> bool {
    !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        || name.ends_with("_proxy")
}

fn is_made_of(node: Node<'_>, kinds: &[&str]) -> bool {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).all(|child| kinds.contains(&child.kind()) && is_made_of(child, kinds))
}

/// Whether a word holds what would be run if it were evaluated.
fn is_code(word: &str) -> bool {
    word.contains("$(") || word.contains('`')
}

const NUMERIC: [&str; 5] =
    ["number", "binary_expression", "unary_expression", "parenthesized_expression", "ternary_expression"];
const NUMBERS: [&str; 6] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
/// Builtins that evaluate a word as the name of an element, or as arithmetic.
const EVALUATES: [&str; 13] = [
    "printf", "test", "[", "unset", "declare", "typeset", "local", "export", "readonly", "read", "mapfile",
    "wait", "getopts",
];
/// How deep texts within texts and nodes within nodes are followed.
const DEEPEST: usize = 200;
/// How much of the depth a text within a text takes.
const NESTED: usize = 20;
const MOST_COMMANDS: usize = 500;
/// Files that keep nothing.
const SINKS: [&str; 3] = ["/dev/null", "/dev/stdout", "/dev/stderr"];

/// Kinds of nodes that do nothing by themselves; what stands in them is visited.
const HARMLESS: [&str; 47] = [
    "program",
    "list",
    "pipeline",
    "redirected_statement",
    "subshell",
    "compound_statement",
    "if_statement",
    "elif_clause",
    "else_clause",
    "while_statement",
    "do_group",
    "case_statement",
    "case_item",
    "function_definition",
    "negated_command",
    "command_name",
    "command_substitution",
    "process_substitution",
    "word",
    "number",
    "string",
    "string_content",
    "raw_string",
    "ansi_c_string",
    "translated_string",
    "concatenation",
    "brace_expression",
    "simple_expansion",
    "variable_name",
    "special_variable_name",
    "variable_assignments",
    "array",
    "heredoc_redirect",
    "heredoc_start",
    "heredoc_content",
    "heredoc_end",
    "comment",
    "test_operator",
    "binary_expression",
    "unary_expression",
    "parenthesized_expression",
    "ternary_expression",
    "regex",
    "extglob_pattern",
    "herestring_redirect",
    "file_descriptor",
    "special_variable",
];
