//! What can be measured, and what becomes of it. Something new to measure is one line of [`BENCHES`].

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use crate::bench::Fault;
use crate::figures::{Figures, Section, Table};
use crate::options::{Ask, Options};
use crate::{builds, machine, page, peers, prepare, sessions, sse, step, store, tools};

/// One part of the page.
pub(crate) struct Bench {
    /// Its word on the command line, and its key among the figures.
    pub(crate) name: &'static str,
    /// Whether it is run when nothing is named.
    pub(crate) in_all: bool,
    pub(crate) has_quick: bool,
    pub(crate) heading: &'static str,
    /// What the tables show.
    pub(crate) about: &'static str,
    measure: fn(&Ask, &mut dyn Write) -> Result<Found, Fault>,
}

/// What a bench found.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) tables: Vec<Table>,
    pub(crate) notes: Vec<String>,
    /// Limits that are broken, in words.
    pub(crate) broken: Vec<String>,
}

/// In the order of the page.
#[rustfmt::skip]
pub(crate) const BENCHES: [Bench; 8] = [
    Bench { name: "step", in_all: true, has_quick: true, heading: step::HEADING, about: step::ABOUT, measure: step::measure },
    Bench { name: "sessions", in_all: true, has_quick: false, heading: sessions::HEADING, about: sessions::ABOUT, measure: sessions::measure },
    Bench { name: "prepare", in_all: true, has_quick: true, heading: prepare::HEADING, about: prepare::ABOUT, measure: prepare::measure },
    Bench { name: "tools", in_all: true, has_quick: true, heading: tools::HEADING, about: tools::ABOUT, measure: tools::measure },
    Bench { name: "store", in_all: true, has_quick: false, heading: store::HEADING, about: store::ABOUT, measure: store::measure },
    Bench { name: "sse", in_all: true, has_quick: false, heading: sse::HEADING, about: sse::ABOUT, measure: sse::measure },
    Bench { name: "builds", in_all: false, has_quick: false, heading: builds::HEADING, about: builds::ABOUT, measure: builds::measure },
    Bench { name: "peers", in_all: false, has_quick: false, heading: peers::HEADING, about: peers::ABOUT, measure: peers::measure },
];

const FIGURES: &str = "docs/performance.json";
const PAGE: &str = "docs/performance.md";

pub(crate) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Fault> {
    let mut found = BTreeMap::new();
    let mut broken = Vec::new();
    for bench in &options.benches {
        writeln!(out, "bench: {}", bench.name)?;
        let Found { tables, notes, broken: limits } = (bench.measure)(&options.ask, out)?;
        let section = Section { measured_on: machine::describe(), notes, tables };
        writeln!(out, "{}", page::shown(&section))?;
        broken.extend(limits.into_iter().map(|limit| format!("{}: {limit}", bench.name)));
        found.insert(bench.name.to_owned(), section);
    }
    if options.writes() {
        let mut figures = Figures::read(Path::new(FIGURES))?;
        figures.0.extend(found);
        figures.write(Path::new(FIGURES))?;
        std::fs::write(PAGE, page::page(&figures))?;
        writeln!(out, "bench: wrote {FIGURES} and {PAGE}")?;
    }
    verdict(&broken, options.ask.check, out)
}

/// Says which limits are broken; with `check` that is a failure.
fn verdict(broken: &[String], check: bool, out: &mut dyn Write) -> Result<(), Fault> {
    for limit in broken {
        writeln!(out, "bench: {limit}")?;
    }
    match broken.len() {
        0 => Ok(writeln!(out, "bench: no limit is broken")?),
        count if check => Err(format!(
            "{count} limit(s) broken, listed above; profile with `valgrind --tool=callgrind`, docs/testing.md shows how"
        )
        .into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_limit_fails_only_a_check() {
        let broken = ["step: too slow".to_owned()];
        let mut out = Vec::new();
        assert!(verdict(&[], true, &mut out).is_ok());
        assert!(verdict(&broken, false, &mut out).is_ok());
        assert!(verdict(&broken, true, &mut out).is_err());
        assert!(String::from_utf8(out).unwrap().contains("bench: step: too slow"));
    }

    #[test]
    fn names_are_words_of_their_own() {
        for (at, bench) in BENCHES.iter().enumerate() {
            assert!(!matches!(bench.name, "all" | "page") && !bench.name.starts_with('-'));
            assert!(BENCHES.iter().skip(at + 1).all(|other| other.name != bench.name));
            assert!(bench.about.trim().ends_with(['.', ':']), "{}", bench.name);
        }
    }
}
