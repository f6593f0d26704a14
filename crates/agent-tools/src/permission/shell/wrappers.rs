//! Commands that run other commands.

use super::{Through, Word, base};

/// What a command runs in its turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Inner {
    /// Nothing that is known.
    Nothing,
    /// A command; several where it is not known with which word it begins.
    Commands(Vec<Vec<Word>>, Through),
    /// A text that a shell reads.
    Text(String),
    /// Something that is only known when it runs.
    Unknown(String),
}

/// What a command runs in its turn.
pub(super) fn inner(words: &[Word]) -> Inner {
    let Some((name, rest)) = words.split_first() else { return Inner::Nothing };
    match base(&name.text) {
        "sh" | "bash" | "dash" | "zsh" | "ksh" | "ash" => shell(rest),
        "eval" | "source" | "." | "trap" => evaluated(&name.text, rest),
        // A file of that name may be anything.
        "timeout" if !name.text.contains('/') => limited(rest, 1),
        "time" | "nice" | "nohup" if !name.text.contains('/') => limited(rest, 0),
        "find" | "fd" => after(rest, &EXECUTES),
        _ if gives_another_meaning(&name.text, rest) => Inner::Unknown(super::join(words)),
        wrapper if WRAPPERS.contains(&wrapper) => wrapped(rest),
        _ => Inner::Nothing,
    }
}

/// Whether what the words stand for is said in them in a language of their own, or what later words stand for.
fn gives_another_meaning(name: &str, rest: &[Word]) -> bool {
    let any = |is: &dyn Fn(&str) -> bool| rest.iter().any(|word| is(&word.text));
    match base(name) {
        "env" => any(&|word| {
            word.starts_with("--split")
                || word.starts_with('-') && !word.starts_with("--") && word.contains('S')
        }),
        "alias" => any(&|word| word.contains('=')),
        "hash" => any(&|word| word.starts_with("-p")),
        "enable" => any(&|word| word.starts_with("-f")),
        "mapfile" | "readarray" | "complete" | "compgen" => any(&|word| word.starts_with("-C")),
        "git" => any(&|word| word.starts_with("alias.") || word.starts_with("--config-env")),
        _ => false,
    }
}

/// `bash -c TEXT`; a script in a file is not looked into.
fn shell(rest: &[Word]) -> Inner {
    let is_text =
        |word: &Word| word.text.starts_with('-') && !word.text.starts_with("--") && word.text.contains('c');
    let Some(at) = rest.iter().position(is_text) else {
        let is_file = |word: &Word| {
            word.is_known
                && !word.text.starts_with(['-', '+'])
                && !word.text.starts_with("/dev/")
                && !word.text.starts_with("/proc/")
        };
        // Without a file it reads what it is given; behind options it is not known which word is one.
        return if rest.first().is_some_and(is_file) {
            Inner::Nothing
        } else {
            Inner::Unknown("what a shell reads as its input".to_owned())
        };
    };
    let (options, plain): (Vec<&Word>, Vec<&Word>) =
        rest[at..].iter().partition(|word| word.text.starts_with(['-', '+']));
    // Each `o` takes a word that comes before the text.
    let named: usize = options.iter().map(|word| word.text.matches(['o', 'O']).count()).sum();
    match plain.get(named) {
        Some(text) if text.is_known => Inner::Text(text.text.clone()),
        Some(text) => Inner::Unknown(text.text.clone()),
        None if plain.is_empty() => Inner::Nothing,
        None => Inner::Unknown(super::join(rest)),
    }
}

fn evaluated(name: &str, rest: &[Word]) -> Inner {
    if name != "eval" && name != "trap" {
        return Inner::Unknown(format!("{name} {}", super::join(rest)));
    }
    let rest = if rest.first().is_some_and(|word| word.text == "--") { &rest[1..] } else { rest };
    // `trap` reads its first word, `eval` all of them.
    let read = if name == "trap" { rest.get(..1).unwrap_or_default() } else { rest };
    if read.iter().all(|word| word.is_known) {
        Inner::Text(super::join(read))
    } else {
        Inner::Unknown(format!("{name} {}", super::join(rest)))
    }
}

/// A command that only limits what it runs, when it is called in its plain form: so many words, then the command.
fn limited(rest: &[Word], before: usize) -> Inner {
    match rest.get(before..) {
        // A word that is not known can be several, the command among them.
        Some(words @ [first, ..])
            if !first.text.contains('=')
                && rest.iter().take(before).all(|word| word.is_known)
                && rest.iter().take(before + 1).all(|word| !word.text.starts_with('-')) =>
        {
            let through = if first.is_known { Through::Limiter } else { Through::Wrapper };
            Inner::Commands(vec![words.to_vec()], through)
        }
        _ => wrapped(rest),
    }
}

/// From each of the first words that can be a command's name: which of them belongs to an option is not known. A rule that
/// refuses one of them refuses too much rather than too little, and none that allows looks here.
fn wrapped(rest: &[Word]) -> Inner {
    let is_variable = |word: &Word| {
        let name = word.text.split_once('=').map_or("", |(name, _)| name);
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    let mut before = 0;
    let mut names = Vec::new();
    for (at, word) in rest.iter().enumerate() {
        if before >= MOST_NAMES {
            break;
        }
        if word.text.starts_with('-') || is_variable(word) {
            continue;
        }
        names.push(rest[at..].to_vec());
        // What follows an option may be its value, so that any number of pairs may come first.
        let may_be_value = at.checked_sub(1).is_some_and(|last| rest[last].text.starts_with('-'));
        before += usize::from(!may_be_value && !word.text.contains('='));
    }
    Inner::Commands(names, Through::Wrapper)
}

fn after(rest: &[Word], options: &[&str]) -> Inner {
    let name = |word: &Word| word.text.split('=').next().is_some_and(|name| options.contains(&name));
    match rest.iter().position(name) {
        Some(at) if rest[at].text.contains('=') => Inner::Unknown(super::join(&rest[at..])),
        Some(at) => wrapped(&rest[at + 1..]),
        None => Inner::Nothing,
    }
}

/// Options whose words are a command.
const EXECUTES: [&str; 8] = ["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];
/// How many words of a wrapper may be the command's name, those behind an option not counted.
const MOST_NAMES: usize = 4;
/// Commands whose last words are a command.
const WRAPPERS: [&str; 33] = [
    "!",
    "{",
    "sudo",
    "doas",
    "env",
    "command",
    "builtin",
    "exec",
    "stdbuf",
    "setsid",
    "xargs",
    "ionice",
    "chrt",
    "taskset",
    "busybox",
    "watch",
    "parallel",
    "unbuffer",
    "script",
    "strace",
    "ltrace",
    "flock",
    "chroot",
    "unshare",
    "coproc",
    "su",
    "runuser",
    "toybox",
    "setpriv",
    "systemd-run",
    "nsenter",
    "prlimit",
    "fakeroot",
];
