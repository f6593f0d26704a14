//! The verbs by name, and how a command line becomes one of them.

use std::fmt::Write as _;

use crate::error::Error;

/// Everything `cargo xtask` can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Fmt,
    Clippy,
    Layers,
    Tidy,
    Test,
    Doc,
    EachFeature,
    Ci,
}

/// How much of a verb to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Breadth {
    Full,
    Quick,
}

/// A command line that was understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Help,
    Run { verb: Verb, breadth: Breadth },
}

pub(crate) fn parse(args: &[String]) -> Result<Request, Error> {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["help" | "--help" | "-h"] => Ok(Request::Help),
        [name] => Ok(Request::Run { verb: Verb::named(name)?, breadth: Breadth::Full }),
        [name, "--quick"] if Verb::named(name)?.has_quick() => {
            Ok(Request::Run { verb: Verb::named(name)?, breadth: Breadth::Quick })
        }
        [] => Err(Error::usage("no verb was given")),
        [name, rest @ ..] => {
            Verb::named(name)?;
            Err(Error::usage(&format!("`{name}` does not take `{}`", rest.join(" "))))
        }
    }
}

pub(crate) fn usage() -> String {
    let mut text = String::from("usage: cargo xtask VERB\n");
    for verb in ALL {
        let quick = if verb.has_quick() { " [--quick]" } else { "" };
        let shown = format!("{}{quick}", verb.name());
        // Writing to a String cannot fail.
        let _ = write!(text, "\n  {shown:<16} {}", verb.about());
    }
    text
}

impl Verb {
    fn named(name: &str) -> Result<Self, Error> {
        ALL.into_iter()
            .find(|verb| verb.name() == name)
            .ok_or_else(|| Error::usage(&format!("unknown verb `{name}`")))
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Verb::Fmt => "fmt",
            Verb::Clippy => "clippy",
            Verb::Layers => "layers",
            Verb::Tidy => "tidy",
            Verb::Test => "test",
            Verb::Doc => "doc",
            Verb::EachFeature => "each-feature",
            Verb::Ci => "ci",
        }
    }

    fn about(self) -> &'static str {
        match self {
            Verb::Fmt => "formatting is what rustfmt would write",
            Verb::Clippy => "no lint speaks, in any target, with every feature",
            Verb::Layers => "dependencies between crates point strictly down",
            Verb::Tidy => "file headers, ceilings, manifests, nothing forgotten",
            Verb::Test => "all tests and doctests; quick: unit tests of the libraries",
            Verb::Doc => "the documentation builds and every link resolves",
            Verb::EachFeature => "every crate compiles bare and with each feature alone",
            Verb::Ci => "all of the above; quick: up to the unit tests",
        }
    }

    fn has_quick(self) -> bool {
        matches!(self, Verb::Test | Verb::Ci)
    }
}

const ALL: [Verb; 8] =
    [Verb::Fmt, Verb::Clippy, Verb::Layers, Verb::Tidy, Verb::Test, Verb::Doc, Verb::EachFeature, Verb::Ci];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expect: &str) {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let got = match parse(&args) {
            Ok(Request::Help) => "help".to_owned(),
            Ok(Request::Run { verb, breadth }) => format!("{} {breadth:?}", verb.name()),
            Err(error) => error.to_string().lines().next().unwrap_or_default().to_owned(),
        };
        assert_eq!(got, expect, "for `{line}`");
    }

    #[test]
    fn command_lines() {
        check("ci", "ci Full");
        check("ci --quick", "ci Quick");
        check("test --quick", "test Quick");
        check("each-feature", "each-feature Full");
        check("--help", "help");
        check("", "no verb was given");
        check("tidi", "unknown verb `tidi`");
        check("tidy --quick", "`tidy` does not take `--quick`");
        check("ci --quick now", "`ci` does not take `--quick now`");
    }

    #[test]
    fn usage_lists_every_verb() {
        let text = usage();
        for verb in ALL {
            assert!(text.contains(&format!("\n  {}", verb.name())), "{text}");
        }
    }
}
