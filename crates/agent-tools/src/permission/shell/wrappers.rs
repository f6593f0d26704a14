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
        "timeout" => limited(rest, 1),
        "time" | "nice" | "nohup" => limited(rest, 0),
        "find" | "fd" => after(rest, &["-exec", "-execdir", "-ok", "-okdir", "-x", "-X"]),
        "env" if rest.iter().any(|word| word.text.starts_with("-S") || word.text.starts_with("--split")) => {
            Inner::Unknown(super::join(words))
        }
        wrapper if WRAPPERS.contains(&wrapper) => wrapped(rest),
        _ => Inner::Nothing,
    }
}

/// `bash -c TEXT`; a script in a file is not looked into.
fn shell(rest: &[Word]) -> Inner {
    let is_text =
        |word: &Word| word.text.starts_with('-') && !word.text.starts_with("--") && word.text.contains('c');
    let Some(at) = rest.iter().position(is_text) else {
        let reads = rest.iter().all(|word| word.text.starts_with('-'));
        // Without a file it reads what it is given.
        return if reads {
            Inner::Unknown("what a shell reads as its input".to_owned())
        } else {
            Inner::Nothing
        };
    };
    match rest[at + 1..].iter().find(|word| !word.text.starts_with(['-', '+'])) {
        Some(text) if text.is_known => Inner::Text(text.text.clone()),
        Some(text) => Inner::Unknown(text.text.clone()),
        None => Inner::Nothing,
    }
}

fn evaluated(name: &str, rest: &[Word]) -> Inner {
    if name != "eval" && name != "trap" {
        return Inner::Unknown(format!("{name} {}", super::join(rest)));
    }
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
        Some(words @ [first, ..]) if rest.iter().take(before + 1).all(|word| !word.text.starts_with('-')) => {
            let is_known = first.is_known && !first.text.contains('=');
            let through = if is_known { Through::Limiter } else { Through::Wrapper };
            Inner::Commands(vec![words.to_vec()], through)
        }
        _ => wrapped(rest),
    }
}

/// From each of the first words that can be a command's name: which of them belongs to an option is not known. A rule that
/// refuses one of them refuses too much rather than too little, and none that allows looks here.
fn wrapped(rest: &[Word]) -> Inner {
    let may_be_name = |at: &usize| !rest[*at].text.starts_with('-') && !rest[*at].text.contains('=');
    let names = (0..rest.len()).filter(may_be_name).take(MOST_NAMES);
    Inner::Commands(names.map(|at| rest[at..].to_vec()).collect(), Through::Wrapper)
}

fn after(rest: &[Word], options: &[&str]) -> Inner {
    match rest.iter().position(|word| options.contains(&word.text.as_str())) {
        Some(at) => wrapped(&rest[at + 1..]),
        None => Inner::Nothing,
    }
}

/// How many words of a wrapper may come before the command that it runs, options not counted.
const MOST_NAMES: usize = 4;
/// Commands whose last words are a command.
const WRAPPERS: [&str; 22] = [
    "sudo", "doas", "env", "command", "builtin", "exec", "stdbuf", "setsid", "xargs", "ionice", "chrt",
    "taskset", "busybox", "watch", "parallel", "unbuffer", "script", "strace", "ltrace", "flock", "chroot",
    "unshare",
];
