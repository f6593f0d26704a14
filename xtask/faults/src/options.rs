//! The words of the command line.

use crate::Fault;
use crate::child::Sabotage;

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    /// Kill at every point.
    pub(crate) points: bool,
    /// Conversations that are killed at random moments.
    pub(crate) random: u64,
    pub(crate) seed: u64,
    /// The table of other faults.
    pub(crate) cases: bool,
    /// Growth of what is stored.
    pub(crate) sizes: bool,
    /// What is broken on purpose: the run must fail.
    pub(crate) sabotage: Option<Sabotage>,
    /// Also breaks each thing that can be broken, and fails when that is not found out.
    pub(crate) proves: bool,
}

impl Options {
    pub(crate) fn parse(words: &[&str]) -> Result<Self, Fault> {
        let nothing = Self {
            points: false,
            random: 0,
            seed: SEED,
            cases: false,
            sizes: false,
            sabotage: None,
            proves: false,
        };
        let all = Self { points: true, random: RANDOM, cases: true, proves: true, ..nothing.clone() };
        let mut options = nothing;
        let mut seed = SEED;
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--quick" => options = Self { random: QUICK, ..all.clone() },
                "--points" => match words.next() {
                    Some(&"all") => options.points = true,
                    _ => return Err("`--points` wants `all`".into()),
                },
                "--random" => options.random = number("--random", words.next())?,
                "--seed" => seed = number("--seed", words.next())?,
                "--cases" => options.cases = true,
                "--sizes" => options.sizes = true,
                "--sabotage" => {
                    options.points = true;
                    options.sabotage = Some(match words.next() {
                        Some(&"results") => Sabotage::Results,
                        Some(&"intents") => Sabotage::Intents,
                        _ => return Err("`--sabotage` wants `results` or `intents`".into()),
                    });
                }
                other => return Err(format!("`faults` does not take `{other}`\n{USAGE}").into()),
            }
        }
        let is_empty = !(options.points || options.cases || options.sizes || options.random > 0);
        let options = if is_empty { all } else { options };
        Ok(Self { seed, ..options })
    }
}

fn number(name: &str, word: Option<&&str>) -> Result<u64, Fault> {
    let number = word.and_then(|word| word.parse().ok());
    number.ok_or_else(|| format!("`{name}` wants a whole number").into())
}

const SEED: u64 = 1;
/// Conversations killed at random, in a whole run and in a quick one.
const RANDOM: u64 = 200;
const QUICK: u64 = 16;
const USAGE: &str = "\
it takes `--quick`, `--points all`, `--random N`, `--seed S`, `--cases`, `--sizes`, `--sabotage results|intents`; without
any of them it does all but the sizes";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expect: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let got = match Options::parse(&words) {
            Ok(Options { points, random, seed, cases, sizes, sabotage, proves }) => {
                format!("{points} {random} {seed} {cases} {sizes} {sabotage:?} {proves}")
            }
            Err(error) => error.to_string().lines().next().unwrap_or_default().to_owned(),
        };
        assert_eq!(got, expect, "{line}");
    }

    #[test]
    fn command_lines() {
        check("", "true 200 1 true false None true");
        check("--seed 7", "true 200 7 true false None true");
        check("--quick", "true 16 1 true false None true");
        check("--points all --random 20 --seed 3", "true 20 3 false false None false");
        check("--cases", "false 0 1 true false None false");
        check("--sizes", "false 0 1 false true None false");
        check("--sabotage results", "true 0 1 false false Some(Results) false");
        check("--points some", "`--points` wants `all`");
        check("--random", "`--random` wants a whole number");
        check("--sabotage", "`--sabotage` wants `results` or `intents`");
        check("--slow", "`faults` does not take `--slow`");
    }
}
