//! What is asked for: `[NAME..|all|page] [--check] [--quick] [--from FILE]`.

use std::path::PathBuf;

use crate::bench::Fault;
use crate::benches::{BENCHES, Bench};

/// What to measure, and whether to judge it.
pub(crate) struct Options {
    pub(crate) benches: Vec<&'static Bench>,
    pub(crate) ask: Ask,
}

/// What a bench is to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ask {
    /// Fails when a limit is broken; writes nothing.
    pub(crate) check: bool,
    /// Counts of the client under test alone, which need no quiet machine and little time.
    pub(crate) quick: bool,
    /// What another program measured.
    pub(crate) from: Option<PathBuf>,
}

impl Options {
    pub(crate) fn parse(words: &[&str]) -> Result<Self, Fault> {
        let mut options = Self { benches: Vec::new(), ask: Ask::default() };
        let (mut words, mut writes_only) = (words.iter(), false);
        while let Some(word) = words.next() {
            match *word {
                "--check" => options.ask.check = true,
                "--quick" => options.ask.quick = true,
                "--from" => {
                    let file = words.next().ok_or("`--from` wants the file that the other harness wrote")?;
                    options.ask.from = Some(PathBuf::from(file));
                }
                "all" => options.benches.extend(BENCHES.iter().filter(|bench| bench.in_all)),
                "page" => writes_only = true,
                name => options.benches.push(named(name)?),
            }
        }
        if options.benches.is_empty() && !writes_only {
            options.benches.extend(BENCHES.iter().filter(|bench| bench.in_all));
        }
        if options.ask.quick {
            options.benches.retain(|bench| bench.has_quick);
            if options.benches.is_empty() {
                return Err(
                    "nothing of that has a quick form; `cargo xtask bench --check --quick` is the gate"
                        .into(),
                );
            }
        }
        Ok(options)
    }

    /// Whether the page is written anew: only a whole measurement is worth keeping.
    pub(crate) fn writes(&self) -> bool {
        !self.ask.check && !self.ask.quick
    }
}

fn named(name: &str) -> Result<&'static Bench, Fault> {
    BENCHES.iter().find(|bench| bench.name == name).ok_or_else(|| {
        let known: Vec<&str> = BENCHES.iter().map(|bench| bench.name).collect();
        let known = known.join("|");
        format!("`{name}` is not known; use cargo xtask bench [{known}|all|page] [--check] [--quick] [--from FILE]").into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expect: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let got = Options::parse(&words).map_or_else(
            |fault| fault.to_string(),
            |options| {
                let names: Vec<&str> = options.benches.iter().map(|bench| bench.name).collect();
                let Ask { check, quick, .. } = options.ask;
                format!("{} check={check} quick={quick} writes={}", names.join(","), options.writes())
            },
        );
        assert!(got.starts_with(expect), "{got} for `{line}`");
    }

    #[test]
    fn command_lines() {
        check("", "step,sessions,prepare,tools,store,sse check=false quick=false writes=true");
        check("all", "step,sessions,prepare,tools,store,sse check=false quick=false writes=true");
        check("step", "step check=false quick=false writes=true");
        check("sse store", "sse,store check=false");
        check("--check --quick", "step,prepare,tools check=true quick=true writes=false");
        check("step --check", "step check=true quick=false writes=false");
        check("page", " check=false quick=false writes=true");
        check("builds", "builds check=false");
        check("sse --quick", "nothing of that has a quick form");
        check("--from", "`--from` wants the file");
        check("steps", "`steps` is not known; use cargo xtask bench [step|sessions|");
        check("--slow", "`--slow` is not known");
    }
}
