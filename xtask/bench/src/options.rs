//! What is asked for: `[step|all] [--check] [--quick]`.

use crate::bench::Fault;

/// What to measure, and whether to judge it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Also many sessions at once, not only steps.
    pub(crate) all: bool,
    /// Fails when a limit is broken; writes nothing.
    pub(crate) check: bool,
    /// Allocations alone, which need no tool and no quiet machine.
    pub(crate) quick: bool,
}

impl Options {
    pub(crate) fn parse(words: &[&str]) -> Result<Self, Fault> {
        let mut options = Self { all: true, ..Self::default() };
        for word in words {
            match *word {
                "step" => options.all = false,
                "all" => options.all = true,
                "--check" => options.check = true,
                "--quick" => options.quick = true,
                other => return Err(format!("`{other}` is not known; {USAGE}").into()),
            }
        }
        Ok(options)
    }

    /// Whether the table in the documentation is written anew: only a whole measurement is worth keeping.
    pub(crate) fn writes(self) -> bool {
        self.all && !self.check && !self.quick
    }
}

const USAGE: &str = "use cargo xtask bench [step|all] [--check] [--quick]";

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expect: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let got = Options::parse(&words).map_or_else(
            |fault| fault.to_string(),
            |Options { all, check, quick }| format!("all={all} check={check} quick={quick}"),
        );
        assert!(got.starts_with(expect), "{got} for `{line}`");
    }

    #[test]
    fn command_lines() {
        check("", "all=true check=false quick=false");
        check("step", "all=false check=false quick=false");
        check("--check --quick", "all=true check=true quick=true");
        check("step --check", "all=false check=true quick=false");
        check("steps", "`steps` is not known");
        check("--slow", "`--slow` is not known");
    }

    #[test]
    fn only_a_whole_measurement_is_kept() {
        let kept = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            Options::parse(&words).unwrap().writes()
        };
        assert!(kept("") && kept("all"));
        assert!(!kept("step") && !kept("--quick") && !kept("--check"));
    }
}
