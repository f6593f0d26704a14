//! What of an input a rule looks at, and how the argument of a rule is held against it.

use agent_core::RawJson;

use super::shell::{Command, Script, Through, Word, join};
use super::spelling::Plain;
use crate::Tool;

/// The part of an input that decides: what rules look at, and what a person must see.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the engine holds rules against each kind in its own way")]
pub enum Subject {
    /// A text that a shell runs; a rule looks at each simple command of it.
    Command(String),
    /// A file or a directory.
    Path {
        /// As the model wrote it.
        given: String,
        /// Where it leads, relative to the workspace, with every link followed; `None` while that is not known, and then
        /// no rule for a path allows it.
        real: Option<String>,
    },
    /// An address.
    Url {
        /// The address.
        url: String,
        /// Its host, as the tool that fetches reads it.
        host: String,
    },
    /// Anything else.
    Text(String),
}

impl Subject {
    /// What rules look at in an input: what the tool names, else the text of the input.
    pub async fn of(tool: &dyn Tool, input: &RawJson) -> Self {
        tool.subject(input).await.unwrap_or_else(|| Self::Text(input.get().to_owned()))
    }

    /// Whether an argument speaks of any part of it, or could speak of one that is only known when it runs.
    pub(super) fn may_be_meant_by(&self, argument: &str) -> bool {
        let facts = Facts::of(self);
        facts.unknown().is_some()
            || facts.touched_by(argument).is_some()
            || facts.may_be_touched_by(argument).is_some()
    }

    /// As a person is shown it.
    pub fn shown(&self) -> &str {
        match self {
            Self::Command(text) | Self::Text(text) => text,
            Self::Path { given, .. } => given,
            Self::Url { url, .. } => url,
        }
    }
}

/// A subject taken apart once for all rules.
#[derive(Debug)]
pub(super) enum Facts<'s> {
    Command(Script),
    Path {
        given: String,
        real: Option<String>,
    },
    Url {
        url: &'s str,
        host: String,
    },
    /// A text, and what it says when it is JSON.
    Text(&'s str, Option<Plain>),
}

impl<'s> Facts<'s> {
    pub(super) fn of(subject: &'s Subject) -> Self {
        match subject {
            Subject::Command(text) => Self::Command(super::shell::script(text)),
            Subject::Path { given, real } => {
                Self::Path { given: tidy(given), real: real.as_deref().map(tidy) }
            }
            Subject::Url { url, host } => {
                Self::Url { url, host: host.trim_end_matches('.').to_ascii_lowercase() }
            }
            Subject::Text(text) => Self::Text(text, Plain::of(text)),
        }
    }

    /// A part of it that is only known when it runs.
    pub(super) fn unknown(&self) -> Option<&str> {
        match self {
            Self::Command(script) => script.unknown(),
            // An object that cannot be read may say anything.
            Self::Text(text, None) => text.starts_with('{').then_some(*text),
            Self::Path { .. } | Self::Url { .. } | Self::Text(_, Some(_)) => None,
        }
    }

    /// A part of which an argument cannot be known not to speak: a command that an argument would speak of, if a word that is only known when it runs came out that way.
    pub(super) fn may_be_touched_by(&self, argument: &str) -> Option<String> {
        match self {
            Self::Command(script) => {
                let touched =
                    |command: &&Command| spellings(&command.words).any(|words| may_fit(argument, &words));
                script.commands.iter().find(touched).map(Command::joined)
            }
            // Paths are known below the workspace, and where that lies is not known here.
            Self::Path { .. } if argument.starts_with('/') => {
                Some(format!("{argument} (write the rule relative to the workspace)"))
            }
            Self::Path { .. } | Self::Url { .. } | Self::Text(..) => None,
        }
    }

    /// The part of it that an argument speaks of, however it is spelled or wrapped: for rules that refuse or ask.
    pub(super) fn touched_by(&self, argument: &str) -> Option<String> {
        match self {
            Self::Command(script) => {
                let touched =
                    |command: &&Command| spellings(&command.words).any(|words| fits(argument, &words));
                script.commands.iter().find(touched).map(Command::joined)
            }
            Self::Path { given, real } => {
                let both = std::iter::once(given).chain(real);
                both.into_iter().find(|path| path_fits(argument, path)).cloned()
            }
            Self::Url { url, host } => url_fits(argument, url, host).then(|| host.clone()),
            Self::Text(text, plain) => {
                let said = plain.iter().flat_map(|plain| std::iter::once(&plain.text).chain(&plain.strings));
                let mut all = std::iter::once(*text).chain(said.map(String::as_str));
                all.find(|said| wild(argument, said)).map(str::to_owned)
            }
        }
    }

    /// What no argument covers; `None` when all of it is covered. For rules that allow.
    pub(super) fn uncovered_by(&self, arguments: &[&str]) -> Option<String> {
        let any = |fits: &dyn Fn(&str) -> bool| arguments.iter().any(|argument| fits(argument));
        match self {
            Self::Command(script) => uncovered(script, arguments),
            Self::Path { given, real } => match real {
                Some(real) if any(&|argument| path_fits(argument, real)) => None,
                Some(_) | None => Some(given.clone()),
            },
            Self::Url { url, host } => {
                (!any(&|argument| url_fits(argument, url, host))).then(|| (*url).to_owned())
            }
            Self::Text(text, _) => (!any(&|argument| wild(argument, text))).then(|| (*text).to_owned()),
        }
    }
}

/// The first command that no argument covers, or what else the script would do.
fn uncovered(script: &Script, arguments: &[&str]) -> Option<String> {
    let covered =
        |words: &[Word]| words[0].is_known && arguments.iter().any(|argument| fits(argument, words));
    let mut commands =
        script.commands.iter().enumerate().filter(|(_, command)| command.through == Through::Shell);
    let open = commands.find(|(at, command)| {
        // A command that only limits another is covered with it.
        let behind = script.commands.iter().skip(at + 1);
        let mut limited = behind.take_while(|next| next.through == Through::Limiter);
        !covered(&command.words) && !limited.any(|next| covered(&next.words))
    });
    if script.commands.is_empty() && script.beside.is_empty() {
        return Some("no command that could be read".to_owned());
    }
    open.map(|(_, command)| command.joined()).or_else(|| script.beside.first().map(ToString::to_string))
}

/// The commands of a text as arguments that fit nothing else; `None` where that cannot be said of all of it.
pub(super) fn exact_commands(text: &str) -> Option<Vec<String>> {
    let script = super::shell::script(text);
    if !script.beside.is_empty() {
        return None;
    }
    let plain = |word: &Word| word.is_known && !word.text.is_empty() && !word.text.contains(SPECIAL);
    let own = script.commands.iter().filter(|command| command.through == Through::Shell);
    own.map(|command| command.words.iter().all(plain).then(|| command.joined())).collect()
}

/// What a word of an argument cannot hold and still mean itself.
const SPECIAL: fn(char) -> bool = |c| c == '*' || c == ':' || c.is_whitespace();

/// The words of a command, and the same as rules are likely to spell them: its name without a path, and without the
/// options before its first plain word, one value of each included.
fn spellings(words: &[Word]) -> impl Iterator<Item = Vec<Word>> + '_ {
    let name =
        words.first().map(|name| Word { text: super::shell::base(&name.text).to_owned(), ..name.clone() });
    let is_option = |at: usize| words.get(at).is_some_and(|word| word.text.starts_with(['-', '+']));
    let may_begin = move |at: &usize| (1..*at).all(|before| is_option(before) || is_option(before - 1));
    let starts = (1..=words.len()).filter(may_begin);
    starts.map(move |at| name.iter().cloned().chain(words[at.min(words.len())..].iter().cloned()).collect())
}

/// Whether a command fits an argument: `git status` word for word, `cargo test:*` with any words behind, or `*` for any
/// stretch of it.
fn fits(argument: &str, words: &[Word]) -> bool {
    if argument == "*" {
        return true;
    }
    let (head, open) = match argument.strip_suffix(":*") {
        Some(head) => (head, true),
        None => (argument, false),
    };
    let wanted: Vec<&str> = head.split_whitespace().collect();
    if open || !head.contains('*') {
        let begins = wanted.len() <= words.len()
            && wanted.iter().zip(words).all(|(want, word)| wild(want, &word.text));
        return begins && (open || wanted.len() == words.len() && words.iter().all(|word| word.is_known));
    }
    wild(&wanted.join(" "), &join(words))
}

/// Whether a command could fit an argument, for a word that is not known may stand for any others.
fn may_fit(argument: &str, words: &[Word]) -> bool {
    let head = argument.strip_suffix(":*").unwrap_or(argument);
    let wanted: Vec<&str> = head.split_whitespace().collect();
    for (at, want) in wanted.iter().enumerate() {
        let Some(word) = words.get(at) else { return false };
        if want.contains('*') && at + 1 < wanted.len() {
            return words[at..].iter().any(|word| !word.is_known);
        }
        if !word.is_known {
            return may_begin(&word.text, want);
        }
        if !wild(want, &word.text) {
            return false;
        }
    }
    false
}

/// Whether a word could come out as it is wanted, by what of it comes before its first expansion.
fn may_begin(written: &str, want: &str) -> bool {
    let written = written.strip_prefix('"').unwrap_or(written);
    let until = |text: &str, end: fn(char) -> bool| text.split(end).next().unwrap_or_default().to_owned();
    let known = until(written, |c| !c.is_alphanumeric() && !matches!(c, '-' | '_' | '.' | '/' | ':' | '='));
    let want = until(want, |c| c == '*');
    known.starts_with(&want) || want.starts_with(&known)
}

/// Whether a path lies where an argument says: `src/**`, `*.md`, a file, or a directory with all that is in it.
fn path_fits(argument: &str, path: &str) -> bool {
    let argument = argument.strip_prefix("./").unwrap_or(argument);
    match argument.strip_suffix('/') {
        Some(folder) => path == folder || fast_glob::glob_match(format!("{folder}/**"), path),
        None => fast_glob::glob_match(argument, path) || argument == path,
    }
}

/// Whether an address fits `domain:HOST` (its subdomains too) or a pattern of the whole address.
fn url_fits(argument: &str, url: &str, host: &str) -> bool {
    match argument.strip_prefix("domain:") {
        Some(domain) => {
            let domain = domain.trim_end_matches('.').to_ascii_lowercase();
            host == domain || host.strip_suffix(&domain).is_some_and(|sub| sub.ends_with('.'))
        }
        None => wild(argument, url),
    }
}

/// A path without `.`, doubled slashes and what `..` takes back, as far as that can be told from its words.
fn tidy(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            other => parts.push(other),
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

/// Whether a text fits a pattern in which `*` stands for any stretch.
pub(super) fn wild(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(head) else { return false };
    let (middle, tail) = rest.rsplit_once('*').map_or(("", rest), |(middle, tail)| (middle, tail));
    for piece in middle.split('*').filter(|piece| !piece.is_empty()) {
        let Some(at) = text.find(piece) else { return false };
        text = &text[at + piece.len()..];
    }
    text.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars() {
        let check = |pattern: &str, text: &str, expect: bool| {
            assert_eq!(wild(pattern, text), expect, "{pattern} {text}")
        };
        check("a", "a", true);
        check("a*", "abc", true);
        check("*c", "abc", true);
        check("a*c", "ac", true);
        check("a*b*c", "a-b-b-c", true);
        check("a*b*c", "a-c-b", false);
        check("ab*ba", "aba", false);
        check("*", "", true);
        check("**", "x", true);
    }

    #[test]
    fn paths() {
        let check = |argument: &str, path: &str, expect: bool| {
            assert_eq!(path_fits(argument, &tidy(path)), expect, "{argument} {path}");
        };
        check("src/**", "src/a/b.rs", true);
        check("src/**", "./src//a.rs", true);
        check("src/**", "src/../secrets/a", false);
        check("./src/", "src/a", true);
        check("secrets/", "secrets", true);
        check("*.md", "README.md", true);
        check("*.md", "docs/README.md", false);
        check("**/*.md", "docs/README.md", true);
        check("src/**", "../src/a", false);
        check("a[1].rs", "a[1].rs", true);
    }

    #[test]
    fn addresses() {
        let check = |argument: &str, host: &str, expect: bool| {
            let url = format!("https://{host}/a");
            let subject = Subject::Url { url, host: host.to_owned() };
            assert_eq!(Facts::of(&subject).uncovered_by(&[argument]).is_none(), expect, "{argument} {host}");
        };
        check("domain:docs.rs", "docs.rs", true);
        check("domain:docs.rs", "DOCS.RS.", true);
        check("domain:docs.rs", "static.docs.rs", true);
        check("domain:docs.rs", "notdocs.rs", false);
        check("domain:docs.rs", "docs.rs.evil.example", false);
        check("https://docs.rs/*", "docs.rs", true);
    }
}
