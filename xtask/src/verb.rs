//! The verbs by name, and how a command line becomes one of them.

use std::fmt::Write as _;

use std::time::Duration;

use crate::error::Error;
use crate::{bench, cache_audit, faults, fuzz};

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
    CacheAudit,
    Faults,
    Fuzz,
    Bench,
    Ci,
    Oracle,
}

/// How much of a verb to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Breadth {
    Full,
    Quick,
}

/// A command line that was understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Help,
    Fuzz(fuzz::Options),
    CacheAudit(cache_audit::Options),
    Bench(bench::Options),
    Faults(faults::Options),
    Run { verb: Verb, breadth: Breadth },
}

pub(crate) fn parse(args: &[String]) -> Result<Request, Error> {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["help" | "--help" | "-h"] => Ok(Request::Help),
        ["fuzz", rest @ ..] => fuzz_options(rest).map(Request::Fuzz),
        // The program it runs knows its words, and which there are.
        ["bench", rest @ ..] => Ok(Request::Bench(bench::Options { words: owned(rest) })),
        ["faults", rest @ ..] => Ok(Request::Faults(faults::Options { words: owned(rest) })),
        ["cache-audit", "--report", file] => {
            Ok(Request::CacheAudit(cache_audit::Options { report: Some((*file).to_owned()) }))
        }
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

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// `[--seconds N] [--quick] [TARGET]`, in any order.
fn fuzz_options(words: &[&str]) -> Result<fuzz::Options, Error> {
    let mut options = fuzz::Options::default();
    let mut words = words.iter();
    let mut seconds = None;
    while let Some(word) = words.next() {
        match *word {
            "--quick" => options = fuzz::Options { target: options.target, ..fuzz::Options::quick() },
            "--seconds" => {
                let number = words.next().and_then(|number| number.parse().ok()).filter(|number| *number > 0);
                let missing = || Error::usage("`--seconds` wants a number of whole seconds, at least 1");
                seconds = Some(Duration::from_secs(number.ok_or_else(missing)?));
            }
            name if options.target.is_none() && !name.starts_with('-') => {
                options.target = Some(name.to_owned());
            }
            other => return Err(Error::usage(&format!("`fuzz` does not take `{other}`"))),
        }
    }
    options.time = seconds.unwrap_or(options.time);
    Ok(options)
}

pub(crate) fn usage() -> String {
    let mut text = String::from("usage: cargo xtask VERB\n");
    for verb in ALL {
        let quick = if verb.has_quick() { " [--quick]" } else { "" };
        let shown = format!("{}{quick}", verb.name());
        // Writing to a String cannot fail.
        let _ = write!(text, "\n  {shown:<16} {}", verb.about());
    }
    text.push_str("\n\nfuzz also takes `--seconds N` (for each target) and the name of one target");
    text.push_str("\ncache-audit also takes `--report FILE.html`, a page that draws what it found");
    text.push_str("\nfaults also takes `--points all`, `--random N`, `--seed S`, `--cases`, `--sizes` and `--sabotage results|intents`");
    text.push_str("\nbench also takes the names of its parts (`step`, `store`, `sse`, ..; a wrong one lists them), and `--check`,");
    text.push_str("\nwhich fails when a limit is broken and writes nothing");
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
            Verb::CacheAudit => "cache-audit",
            Verb::Faults => "faults",
            Verb::Fuzz => "fuzz",
            Verb::Ci => "ci",
            Verb::Bench => "bench",
            Verb::Oracle => "oracle",
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
            Verb::CacheAudit => {
                "scenarios keep their prompt caches and their budgets; those that are sabotaged fail"
            }
            Verb::Faults => {
                "agents that are killed at every point go on, and nothing runs twice; quick: fewer random moments"
            }
            Verb::Fuzz => "no bytes break a decoder's promises; quick: seconds, as in ci",
            Verb::Ci => "all of the above; quick: up to the unit tests",
            Verb::Bench => {
                "what a step costs, beside a floor; quick: instructions and allocations, held to limits in ci"
            }
            Verb::Oracle => {
                "official Python and TypeScript clients agree; needs python3, node and a network, never part of ci"
            }
        }
    }

    fn has_quick(self) -> bool {
        matches!(self, Verb::Test | Verb::Faults | Verb::Fuzz | Verb::Ci | Verb::Bench)
    }
}

const ALL: [Verb; 13] = [
    Verb::Fmt,
    Verb::Clippy,
    Verb::Layers,
    Verb::Tidy,
    Verb::Test,
    Verb::Doc,
    Verb::EachFeature,
    Verb::CacheAudit,
    Verb::Faults,
    Verb::Fuzz,
    Verb::Bench,
    Verb::Ci,
    Verb::Oracle,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expect: &str) {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let got = match parse(&args) {
            Ok(Request::Help) => "help".to_owned(),
            Ok(Request::Fuzz(options)) => {
                let target = options.target.as_deref().unwrap_or("all");
                format!("fuzz {target} {:?} {:?}", options.time, options.runner)
            }
            Ok(Request::Bench(options)) => format!("bench {}", options.words.join(" ")),
            Ok(Request::Faults(options)) => format!("faults {}", options.words.join(" ")),
            Ok(Request::CacheAudit(options)) => format!("cache-audit {:?}", options.report),
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
        check("oracle", "oracle Full");
        check("fuzz", "fuzz all 30s Best");
        check("fuzz --quick", "fuzz all 3s Stable");
        check("fuzz sse --seconds 7", "fuzz sse 7s Best");
        check("fuzz --seconds 7 --quick sse", "fuzz sse 7s Stable");
        check("fuzz --seconds", "`--seconds` wants a number of whole seconds, at least 1");
        check("fuzz --seconds 0", "`--seconds` wants a number of whole seconds, at least 1");
        check("fuzz sse two", "`fuzz` does not take `two`");
        check("fuzz --slow", "`fuzz` does not take `--slow`");
        check("cache-audit", "cache-audit Full");
        check("cache-audit --report out.html", "cache-audit Some(\"out.html\")");
        check("cache-audit --report", "`cache-audit` does not take `--report`");
        check("bench", "bench ");
        check("bench --quick step --check", "bench --quick step --check");
        check("bench peers --from runs.jsonl", "bench peers --from runs.jsonl");
        check("faults", "faults ");
        check("faults --points all --random 9 --seed 3", "faults --points all --random 9 --seed 3");
        check("oracle --quick", "`oracle` does not take `--quick`");
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
