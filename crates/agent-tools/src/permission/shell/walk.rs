//! Walks the parse of a shell text.

use tree_sitter::{Node, Parser};

use super::builtins::{CODE, evaluates, is_of_environment, is_plain, named_by};
use super::otherwise::{ON_ONE_LINE, holds_blank, is_read_otherwise, spans_lines};
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
        let is_joined = match node.kind() {
            "word" | "simple_expansion" => holds_blank(self.text(node)),
            // `!a` is a name.
            "negated_command" => !self.text(node).starts_with("! "),
            kind => ON_ONE_LINE.contains(&kind) && spans_lines(node, self.source),
        };
        if is_joined {
            self.unknown(self.text(node).to_owned());
        }
        match node.kind() {
            "command" => self.command(node),
            // `export`, `declare`, `unset` and their kin are commands with rules of their own.
            "declaration_command" | "unset_command" => self.builtin(node),
            "variable_assignment" => self.assignment(node),
            "compound_statement" if self.text(node).starts_with("((") => self.arithmetic(node),
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
        for child in node.children(&mut cursor) {
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
        if evaluates(&words) {
            self.unknown(super::join(&words));
        }
        let named = named_by(&words).filter(|name| is_of_environment(name)).map(str::to_owned);
        self.script.beside.extend(named.map(Beside::Sets));
        let within = inner(&words);
        self.script.commands.push(Command { words, through });
        if self.script.commands.len() > MOST_COMMANDS {
            return self.unknown("more commands than are looked at".to_owned());
        }
        match within {
            Inner::Nothing => {}
            Inner::Commands(all, through) => {
                for words in all {
                    // A name with spaces is a text for a shell, as of `watch 'a b'`.
                    let text = words.first().filter(|word| word.is_known && word.text.contains(' '));
                    let text = text.map(|word| word.text.clone());
                    self.run(words, through);
                    if let Some(text) = text {
                        self.nested(&text);
                    }
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

    /// Of one before a command every program may be the reader, whatever its name.
    fn assignment(&mut self, node: Node<'_>) {
        let Some(name) = node.child_by_field_name("name") else { return };
        // What is no name for the shell is a command for it.
        if CODE.contains(&self.text(name)) || !is_plain(self.text(name)) {
            self.unknown(self.text(node).to_owned());
        }
        if node.parent().is_some_and(|parent| parent.kind() == "command") {
            let name = self.text(name).to_owned();
            self.script.beside.push(Beside::Sets(name));
        } else {
            self.sets(Some(name));
        }
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
        // Words behind the file are the command's own, and the parser does not say so.
        if node.children_by_field_name("destination", &mut node.walk()).count() > 1 {
            return self.unknown(self.text(node).to_owned());
        }
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

fn is_made_of(node: Node<'_>, kinds: &[&str]) -> bool {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).all(|child| kinds.contains(&child.kind()) && is_made_of(child, kinds))
}

const NUMERIC: [&str; 5] =
    ["number", "binary_expression", "unary_expression", "parenthesized_expression", "ternary_expression"];
const NUMBERS: [&str; 6] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
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
