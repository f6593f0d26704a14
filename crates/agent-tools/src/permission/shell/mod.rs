//! What a shell text would run, as far as that can be known without running it.

#[cfg(feature = "shell")]
mod builtins;
#[cfg(feature = "shell")]
mod otherwise;
mod reading;
#[cfg(feature = "shell")]
mod walk;
#[cfg(feature = "shell")]
mod words;
#[cfg(feature = "shell")]
mod wrappers;

use std::fmt;

#[cfg(feature = "shell")]
pub(crate) use walk::script;

/// A shell text taken apart: every simple command of its pipelines, lists, substitutions, subshells and functions, and
/// what else it would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Script {
    /// The commands, in the order they are written; what a wrapper such as `sudo` or `bash -c` runs follows it.
    pub(crate) commands: Vec<Command>,
    /// What no rule for a command covers, in words: a file that a redirection writes, a variable that is set, a part that
    /// is only known when it runs.
    pub(crate) beside: Vec<Beside>,
}

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Command {
    /// Its words, quotes and escapes resolved; the first is its name.
    pub(crate) words: Vec<Word>,
    /// How it came to be run.
    pub(crate) through: Through,
}

/// A word as the command gets it, or as it is written where it is only known when it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    /// The word.
    pub(crate) text: String,
    /// Whether the command gets exactly this one word.
    pub(crate) is_known: bool,
}

/// How a command is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "shell"), expect(dead_code, reason = "only a parser tells them apart"))]
pub(crate) enum Through {
    /// By the shell.
    Shell,
    /// By another command of the text, which needs a rule of its own.
    Wrapper,
    /// By a command that only limits it: a rule for what is run is enough.
    Limiter,
}

/// What a script does beside running commands.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(feature = "shell"), expect(dead_code, reason = "only a parser tells them apart"))]
pub(crate) enum Beside {
    /// It writes a file by a redirection.
    Writes(String),
    /// It sets a variable, which commands after it may read.
    Sets(String),
    /// This part is only known when it runs.
    Unknown(String),
}

impl Script {
    /// The first part that is only known when it runs.
    pub(crate) fn unknown(&self) -> Option<&str> {
        self.beside.iter().find_map(|beside| match beside {
            Beside::Unknown(part) => Some(part.as_str()),
            Beside::Writes(_) | Beside::Sets(_) => None,
        })
    }
}

impl Command {
    /// The words with a space between, for people and patterns.
    pub(crate) fn joined(&self) -> String {
        join(&self.words)
    }
}

impl fmt::Display for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Writes(path) => write!(f, "it writes {path}"),
            Self::Sets(name) => write!(f, "it sets {name}"),
            Self::Unknown(part) => write!(f, "{part}, which is only known when it runs"),
        }
    }
}

/// Nothing is known of a text that is not parsed.
#[cfg(not(feature = "shell"))]
pub(crate) fn script(text: &str) -> Script {
    Script { commands: Vec::new(), beside: vec![Beside::Unknown(text.to_owned())] }
}

/// The last part of the path of a command.
pub(crate) fn base(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

pub(crate) fn join(words: &[Word]) -> String {
    words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
#[cfg(feature = "shell")]
mod tests;
