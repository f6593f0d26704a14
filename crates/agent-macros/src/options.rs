//! What stands in the brackets of the attribute.

use std::time::Duration;

use proc_macro2::{Ident, Span};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{Error, LitInt, LitStr, Path, Result, Token, parenthesized};

/// The options as they were given; what is left out is left to `ToolConfig`.
#[derive(Default)]
pub(crate) struct Options {
    /// A variant of `Access`.
    pub(crate) access: Option<&'static str>,
    pub(crate) idempotent: bool,
    pub(crate) summarise: bool,
    pub(crate) deadline: Option<Duration>,
    pub(crate) cap_bytes: Option<LitInt>,
    pub(crate) cap_lines: Option<LitInt>,
    /// A variant of `Concurrency`.
    pub(crate) concurrency: Option<&'static str>,
    /// A variant of `PermissionDecision`.
    pub(crate) permission: Option<&'static str>,
    pub(crate) subject: Option<Subject>,
    pub(crate) name: Option<LitStr>,
    /// The crate whose names the expansion uses.
    pub(crate) home: Option<Path>,
}

/// The field that rules look at.
pub(crate) struct Subject {
    pub(crate) kind: SubjectKind,
    pub(crate) field: Ident,
}

/// How rules look at it.
#[derive(Clone, Copy)]
pub(crate) enum SubjectKind {
    Command,
    Path,
    Text,
}

/// The words of an option, and the variant that each stands for.
type Words = &'static [(&'static str, &'static str)];

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut options = Self::default();
        let mut seen: Vec<Ident> = Vec::new();
        while !input.is_empty() {
            let key = input.call(Ident::parse_any)?;
            if seen.contains(&key) {
                return Err(Error::new(key.span(), format!("`{key}` is given twice; keep one of them")));
            }
            options.option(&key, input)?;
            seen.push(key);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(options)
    }
}

impl Options {
    fn option(&mut self, key: &Ident, input: ParseStream<'_>) -> Result<()> {
        match key.to_string().as_str() {
            "idempotent" => self.idempotent = flag(key, input)?,
            "summarise" => self.summarise = flag(key, input)?,
            "access" => self.access = Some(word(key, input, ACCESS)?),
            "concurrency" => self.concurrency = Some(word(key, input, CONCURRENCY)?),
            "permission" => self.permission = Some(word(key, input, PERMISSION)?),
            "deadline" => self.deadline = Some(duration(&literal(key, input, "\"30s\"")?)?),
            "name" => self.name = Some(name(literal(key, input, "\"greet\"")?)?),
            "cap_bytes" => self.cap_bytes = Some(number(key, input)?),
            "cap_lines" => self.cap_lines = Some(number(key, input)?),
            "subject" => self.subject = Some(subject(key, input)?),
            "crate" => self.home = Some(literal(key, input, "\"agent\"")?.parse_with(Path::parse_mod_style)?),
            _ => {
                return Err(Error::new(
                    key.span(),
                    format!("`{key}` is no option of a tool; there are: {KEYS}"),
                ));
            }
        }
        Ok(())
    }

    /// Of what kind its effect is. There is no default, for none would be safe.
    pub(crate) fn access(&self) -> Result<&'static str> {
        self.access.ok_or_else(|| Error::new(Span::call_site(), NO_ACCESS))
    }
}

fn flag(key: &Ident, input: ParseStream<'_>) -> Result<bool> {
    if input.peek(Token![=]) {
        return Err(
            input.error(format!("`{key}` takes no value: write it when it holds, and leave it out when not"))
        );
    }
    Ok(true)
}

fn equals(key: &Ident, input: ParseStream<'_>, example: &str) -> Result<()> {
    let wrong = |_| Error::new(key.span(), format!("`{key}` takes a value: write `{key} = {example}`"));
    input.parse::<Token![=]>().map(drop).map_err(wrong)
}

fn literal(key: &Ident, input: ParseStream<'_>, example: &str) -> Result<LitStr> {
    equals(key, input, example)?;
    input.parse().map_err(|error| Error::new(error.span(), format!("write `{key} = {example}`, in quotes")))
}

fn number(key: &Ident, input: ParseStream<'_>) -> Result<LitInt> {
    equals(key, input, "20_000")?;
    input.parse().map_err(|error| Error::new(error.span(), format!("write a whole number: `{key} = 20_000`")))
}

fn word(key: &Ident, input: ParseStream<'_>, words: Words) -> Result<&'static str> {
    let all = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
    equals(key, input, words.first().map_or("..", |(word, _)| word))?;
    let unclear =
        |span: Span| Error::new(span, format!("`{key}` is one of: {}; write it without quotes", all()));
    let given = input.call(Ident::parse_any).map_err(|error| unclear(error.span()))?;
    let found = words.iter().find(|(word, _)| given == word);
    found.map(|(_, variant)| *variant).ok_or_else(|| unclear(given.span()))
}

fn name(name: LitStr) -> Result<LitStr> {
    let text = name.value();
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if text.is_empty() || text.len() > 64 || !text.chars().all(fits) {
        let words = "a tool's name is 1 to 64 of the letters a to z, digits, `_` and `-`, for every provider takes those";
        return Err(Error::new(name.span(), words));
    }
    Ok(name)
}

fn duration(text: &LitStr) -> Result<Duration> {
    let value = text.value();
    let digits = value.len() - value.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = value.split_at(digits);
    let parsed = number.parse::<u64>().ok().filter(|number| *number > 0).and_then(|number| match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => number.checked_mul(60).map(Duration::from_secs),
        _ => None,
    });
    let unclear = || {
        Error::new(text.span(), "write a time as a whole number with ms, s or m: \"500ms\", \"30s\", \"2m\"")
    };
    parsed.ok_or_else(unclear)
}

fn subject(key: &Ident, input: ParseStream<'_>) -> Result<Subject> {
    let unclear = |span| Error::new(span, SUBJECT);
    equals(key, input, "path(path)")?;
    let word: Ident = input.parse().map_err(|error| unclear(error.span()))?;
    let kind = match word.to_string().as_str() {
        "command" => SubjectKind::Command,
        "path" => SubjectKind::Path,
        "text" => SubjectKind::Text,
        _ => return Err(unclear(word.span())),
    };
    if !input.peek(syn::token::Paren) {
        return Err(unclear(word.span()));
    }
    let field;
    parenthesized!(field in input);
    let subject = Subject { kind, field: field.parse().map_err(|error| unclear(error.span()))? };
    if field.is_empty() { Ok(subject) } else { Err(unclear(field.span())) }
}

const ACCESS: Words = &[
    ("read", "Read"),
    ("session", "Session"),
    ("edit", "Edit"),
    ("execute", "Execute"),
    ("network", "Network"),
];
const CONCURRENCY: Words = &[("parallel", "Parallel"), ("serial", "Serial")];
const PERMISSION: Words = &[("allow", "Allow"), ("ask", "Ask"), ("deny", "Deny")];
const KEYS: &str = "access, idempotent, summarise, deadline, cap_bytes, cap_lines, concurrency, permission, subject, name, crate";
const NO_ACCESS: &str = "say of what kind the tool's effect is: `#[tool(access = read)]`, or session, edit, execute, network. Permission modes go by it, so there is no default: one too mild would let effects run unasked, one too strict would ask a person about every look";
const SUBJECT: &str = "write `subject = path(ARGUMENT)`, `command(ARGUMENT)` or `text(ARGUMENT)`, with the name of an argument of the function; for addresses and for what must be looked up, use `ToolConfig::subject` or `subject_later`";
