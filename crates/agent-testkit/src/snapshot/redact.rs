//! Replaces what differs from run to run or from machine to machine.

use std::borrow::Cow;
use std::path::Path;

/// The text with UUIDs as `[uuid]`, times as `[time]` and dates as `[date]`: [`Redactions::default`].
///
/// Times are RFC 3339, with a space in place of the `T` too. What continues a word is left alone.
pub fn redact(text: &str) -> String {
    Redactions::default().apply(text)
}

/// What is replaced in a snapshot, and by what.
///
/// Hashes and ids are numbered in order of appearance, so that equal ones stay equal and different ones different.
/// Literal texts are replaced wherever they stand, also as JSON escapes them, the longest first; forms only where a
/// word begins and ends.
///
/// ```
/// use agent_testkit::Redactions;
///
/// let shown = Redactions::default().hashes().ids().versions().path("/tmp/run-7", "[dir]").literal("Ada", "[user]");
/// assert_eq!(
///     shown.apply("Ada ran tool 1.2.3 in /tmp/run-7/src on 2026-11-30: toolu_01ab9, 4144a31af3b9c14d, toolu_01ab9"),
///     "[user] ran tool [version] in [dir]/src on [date]: [id 1], [hash 1], [id 1]"
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct Redactions {
    forms: Vec<Form>,
    /// The longest first; none is empty.
    literals: Vec<(String, String)>,
}

impl Default for Redactions {
    /// UUIDs, times and dates.
    fn default() -> Self {
        Self::none().uuids().dates()
    }
}

impl Redactions {
    /// Nothing is replaced.
    pub fn none() -> Self {
        Self { forms: Vec::new(), literals: Vec::new() }
    }

    /// UUIDs become `[uuid]`.
    pub fn uuids(self) -> Self {
        self.form(Form::Uuid)
    }

    /// Times become `[time]` and dates `[date]`.
    pub fn dates(self) -> Self {
        self.form(Form::Time).form(Form::Date)
    }

    /// Hashes of 16 or more lower-case hexadecimal digits become `[hash 1]`, `[hash 2]`, …
    pub fn hashes(self) -> Self {
        self.form(Form::Hash)
    }

    /// Ids that providers give (`toolu_…`, `call_…`, `msg_…`, `resp_…` and their like) become `[id 1]`, `[id 2]`, …
    pub fn ids(self) -> Self {
        self.form(Form::Id)
    }

    /// Versions of three numbers, with what may follow them, become `[version]`.
    pub fn versions(self) -> Self {
        self.form(Form::Version)
    }

    /// A path, such as that of a temporary folder, becomes a word.
    pub fn path(self, path: impl AsRef<Path>, word: &str) -> Self {
        self.literal(path.as_ref().to_string_lossy(), word)
    }

    /// A text becomes a word. An empty text is never found.
    pub fn literal(mut self, text: impl Into<String>, word: &str) -> Self {
        let text = text.into();
        if !text.is_empty() {
            self.literals.push((text, word.to_owned()));
            self.literals.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        }
        self
    }

    /// The text with all of it replaced.
    pub fn apply(&self, text: &str) -> String {
        let literals = self.both_spellings();
        Pass { forms: &self.forms, literals: &literals, seen: Seen::default() }.over(text)
    }

    /// JSON with its literal texts replaced and nothing else, still JSON: what can be counted and hashed.
    pub(super) fn apply_literals(&self, json: &[u8]) -> Vec<u8> {
        let Ok(text) = std::str::from_utf8(json) else { return json.to_vec() };
        let literals: Vec<_> =
            self.literals.iter().map(|(text, word)| (escaped(text), escaped(word))).collect();
        Pass { forms: &[], literals: &literals, seen: Seen::default() }.over(text).into_bytes()
    }

    /// Words with their literal texts replaced and nothing else.
    pub(super) fn words<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.literals.iter().all(|(literal, _)| !text.contains(literal)) {
            return Cow::Borrowed(text);
        }
        Cow::Owned(Pass { forms: &[], literals: &self.literals, seen: Seen::default() }.over(text))
    }

    /// Literal texts as they are and as JSON writes them.
    fn both_spellings(&self) -> Vec<(String, String)> {
        let mut all: Vec<(String, String)> = Vec::new();
        for (text, word) in &self.literals {
            let in_json = (escaped(text), escaped(word));
            if in_json.0 != *text {
                all.push(in_json);
            }
            all.push((text.clone(), word.clone()));
        }
        all.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        all
    }

    fn form(mut self, form: Form) -> Self {
        if !self.forms.contains(&form) {
            self.forms.push(form);
            self.forms.sort();
        }
        self
    }
}

/// A text as it stands between the quotes of a JSON string.
fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().to_owned()
}

/// Forms of text, in the order in which they are tried: the longer one first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    Uuid,
    Time,
    Date,
    Hash,
    Id,
    Version,
}

impl Form {
    /// How many bytes at the beginning of the text have this form.
    fn length(self, text: &str) -> Option<usize> {
        let taken = match self {
            Self::Uuid => shape("hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh", text),
            Self::Time => shape("9999-99-99_99:99:99", text).map(|at| at + fraction_and_zone(&text[at..])),
            Self::Date => shape("9999-99-99", text),
            Self::Hash => hash(text),
            Self::Id => id(text),
            Self::Version => version(text),
        }?;
        (!goes_on(&text[taken..])).then_some(taken)
    }
}

/// One pass over a text.
struct Pass<'a> {
    forms: &'a [Form],
    literals: &'a [(String, String)],
    seen: Seen,
}

/// What is numbered, in order of appearance.
#[derive(Default)]
struct Seen {
    hashes: Vec<String>,
    ids: Vec<String>,
}

impl Pass<'_> {
    fn over(mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        // A number behind `127.` goes on with an address.
        let (mut inside_word, mut dotted) = (false, false);
        while let Some(first) = rest.chars().next() {
            let literal = self.literals.iter().find(|(text, _)| rest.starts_with(text.as_str()));
            let fits = |form: &&Form| !(inside_word || dotted && **form == Form::Version);
            let mut forms = self.forms.iter().filter(fits);
            let mut form = || forms.find_map(|form| Some((*form, form.length(rest)?)));
            let taken = if let Some((text, word)) = literal {
                out.push_str(word);
                text.len()
            } else if let Some((form, taken)) = form() {
                out.push_str(&self.seen.word(form, &rest[..taken]));
                taken
            } else {
                out.push(first);
                first.len_utf8()
            };
            dotted = inside_word && first == '.';
            inside_word = taken == first.len_utf8() && first.is_alphanumeric();
            rest = &rest[taken..];
        }
        out
    }
}

impl Seen {
    fn word(&mut self, form: Form, text: &str) -> Cow<'static, str> {
        match form {
            Form::Uuid => "[uuid]".into(),
            Form::Time => "[time]".into(),
            Form::Date => "[date]".into(),
            Form::Version => "[version]".into(),
            Form::Hash => format!("[hash {}]", number(&mut self.hashes, text)).into(),
            Form::Id => format!("[id {}]", number(&mut self.ids, text)).into(),
        }
    }
}

fn number(seen: &mut Vec<String>, text: &str) -> usize {
    let known = seen.iter().position(|known| known == text);
    known.map_or_else(
        || {
            seen.push(text.to_owned());
            seen.len()
        },
        |at| at + 1,
    )
}

/// `9` stands for a digit, `h` for a hexadecimal digit, `_` for the `T` of a time or a space.
fn shape(form: &str, text: &str) -> Option<usize> {
    let mut bytes = text.bytes();
    for form in form.bytes() {
        let byte = bytes.next()?;
        let fits = match form {
            b'9' => byte.is_ascii_digit(),
            b'h' => byte.is_ascii_hexdigit(),
            b'_' => matches!(byte, b'T' | b't' | b' '),
            other => byte == other,
        };
        if !fits {
            return None;
        }
    }
    Some(form.len())
}

fn fraction_and_zone(text: &str) -> usize {
    let fraction = text.strip_prefix('.').map(digits).filter(|count| *count > 0).map_or(0, |count| count + 1);
    let zone = &text[fraction..];
    let zone = if zone.starts_with(['Z', 'z']) {
        1
    } else {
        let offset = zone.strip_prefix(['+', '-']).and_then(|zone| shape("99:99", zone));
        let offset = offset.filter(|taken| !goes_on(&zone[taken + 1..]));
        offset.map_or(0, |taken| taken + 1)
    };
    fraction + zone
}

/// Whether a word does not end here.
fn goes_on(rest: &str) -> bool {
    rest.starts_with(|c: char| c.is_alphanumeric())
}

/// Letters and digits are both wanted: a long number is a number.
fn hash(text: &str) -> Option<usize> {
    let end = text.find(|c: char| !matches!(c, '0'..='9' | 'a'..='f')).unwrap_or(text.len());
    let word = &text[..end];
    let mixed =
        word.contains(|c: char| c.is_ascii_digit()) && word.contains(|c: char| c.is_ascii_lowercase());
    (end >= SHORTEST_HASH && mixed).then_some(end)
}

/// A digit is wanted: `call_weather` is a name.
fn id(text: &str) -> Option<usize> {
    let prefix = ID_PREFIXES.iter().find(|prefix| text.starts_with(**prefix))?;
    let rest = &text[prefix.len()..];
    let end =
        rest.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-')).unwrap_or(rest.len());
    let is_id = end >= SHORTEST_ID && rest[..end].contains(|c: char| c.is_ascii_digit());
    is_id.then_some(prefix.len() + end)
}

/// Three numbers and no fourth, which would make it an address.
fn version(text: &str) -> Option<usize> {
    let mut at = usize::from(text.starts_with('v'));
    for part in 0..3 {
        if part > 0 {
            at += text[at..].strip_prefix('.').map(|_| 1)?;
        }
        at += Some(digits(&text[at..])).filter(|count| *count > 0)?;
    }
    let rest = &text[at..];
    if rest.starts_with('.') && digits(&rest[1..]) > 0 {
        return None;
    }
    if rest.starts_with(['-', '+']) {
        let more = rest[1..].find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '-' | '+'));
        let more = rest[1..more.map_or(rest.len(), |more| more + 1)].trim_end_matches(['.', '-', '+']);
        at += if more.is_empty() { 0 } else { more.len() + 1 };
    }
    Some(at)
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

const SHORTEST_HASH: usize = 16;
const SHORTEST_ID: usize = 4;
const ID_PREFIXES: [&str; 11] =
    ["toolu_", "srvtoolu_", "msg_", "req_", "resp_", "call_", "chatcmpl-", "chatcmpl_", "rs_", "fc_", "gen-"];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_differs_is_replaced_and_nothing_else() {
        let check = |text: &str, expect: &str| assert_eq!(redact(text), expect);
        check("on 2025-03-01, at 2025-03-01T09:08:07.123+01:00.", "on [date], at [time].");
        check("2025-03-01 09:08:07Z", "[time]");
        check("0190a8f1-1b2c-7def-8a00-0123456789ab!", "[uuid]!");
        check("v12025-03-01 and 2025-03-011", "v12025-03-01 and 2025-03-011");
        check("naïve 2025-3-1", "naïve 2025-3-1");
        check("2025-03-01T99:", "2025-03-01T99:");
        check("toolu_01ab9 1.2.3 4144a31af3b9c14d", "toolu_01ab9 1.2.3 4144a31af3b9c14d");
    }

    #[test]
    fn more_is_replaced_on_demand() {
        let all = Redactions::none().hashes().ids().versions();
        let check = |text: &str, expect: &str| assert_eq!(all.apply(text), expect);
        check("1.2.3, v0.10.0-rc.1. and 1.2.3+b7", "[version], [version]. and [version]");
        check("127.0.0.1 is none, nor 1.2, 3.x.1, 1.2.3rc", "127.0.0.1 is none, nor 1.2, 3.x.1, 1.2.3rc");
        check(
            "4144a31af3b9c14d 51b71aa0cd793797 4144a31af3b9c14d 1234567890123456 deadbeef",
            "[hash 1] [hash 2] [hash 1] 1234567890123456 deadbeef",
        );
        check(
            r#""call_x9Zk","call_weather","call_1","rs_68-af_0""#,
            r#""[id 1]","call_weather","call_1","[id 2]""#,
        );
        check("on 2025-03-01", "on 2025-03-01");
    }

    #[test]
    fn literals_are_found_in_words_and_in_json_and_the_longest_counts() {
        let texts =
            Redactions::none().literal(r"C:\t", "[dir]").literal(r"C:\t\in", "\"in\"").literal("", "!");
        assert_eq!(texts.apply(r#"C:\t\x xC:\t\in "C:\\t\\in""#), r#"[dir]\x x"in" "\"in\"""#);
        let json = texts.apply_literals(br#"{"a":"C:\\t\\in C:\\t"}"#);
        assert_eq!(json, br#"{"a":"\"in\" [dir]"}"#, "it is still JSON");
    }

    proptest! {
        #[test]
        fn redacting_twice_changes_nothing(text in "[0-9a-fTZv_:.+ -]{0,60}|(call_|toolu_|v1\\.|[0-9.a-f]){0,20}") {
            let all = Redactions::default().hashes().ids().versions();
            let once = all.apply(&text);
            prop_assert_eq!(all.apply(&once), once);
        }
    }
}
