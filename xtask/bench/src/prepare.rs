//! What preparing a step costs in a short session and in a long one.

use std::io::Write;

use agent_prepare::Prepared;
use serde::{Deserialize, Serialize};

use crate::bench::Fault;
use crate::benches::Found;
use crate::child;
use crate::counting::counts;
use crate::divan::{self, Leaf};
use crate::figures::{Table, Unit, times};
use crate::options::Ask;
use crate::prepared_session::{Kind, Session};
use crate::step::WITHOUT_VALGRIND;

pub(crate) const HEADING: &str = "Preparing a step";

pub(crate) const ABOUT: &str = "\
All that the driver does between one answer and the next request, beside writing: the new entry is counted, the cascade
decides whether to compact, and a pipeline of every shipped stage runs. The session is one turn of 100 or of 5,000 messages.
In *free* the words for a step are gone with the next; in *bound* thinking is bound to the words before it, so that they
stay as notes; *compacted* has a summary half way and a provider that reports no tokens. Counts are differences between
steps 20 and 60 behind those messages, times the middle of 50 steps from `cargo bench -p agent-prepare`.
`cargo xtask bench prepare --check` fails, as does the gate of `ci`, when instructions or allocations at 5,000 are more than
1.2 times those at 100.";

const LENGTHS: [usize; 2] = [100, 5_000];
/// Steps that are prepared behind the session: what is done once has gone from the difference.
const STEPS: [u32; 2] = [20, 60];
const MOST_GROWTH: f64 = 1.2;

/// What a process of it says.
#[derive(Serialize, Deserialize)]
struct Said {
    allocations: u64,
}

/// What one kind of session costs at both lengths.
struct Line {
    kind: Kind,
    /// `None` where they could not be counted.
    instructions: Option<[f64; 2]>,
    allocations: [f64; 2],
}

/// Prepares steps as this process: `KIND MESSAGES STEPS`.
pub(crate) fn run([kind, messages, steps]: [&str; 3]) -> Result<(), Fault> {
    let kind = Kind::ALL.into_iter().find(|known| known.name() == kind).ok_or("there is no such session")?;
    let mut session = Session::new(kind, messages.parse()?)?;
    let before = counts().allocations;
    for _ in 0..steps.parse::<u32>()? {
        let Prepared { tool_choice, .. } = session.step()?;
        std::hint::black_box(tool_choice);
    }
    let said = Said { allocations: counts().allocations - before };
    Ok(writeln!(std::io::stdout(), "{}", serde_json::to_string(&said)?)?)
}

pub(crate) fn measure(ask: &Ask, out: &mut dyn Write) -> Result<Found, Fault> {
    let valgrind = child::has_valgrind();
    let mut found = Found::default();
    if !valgrind {
        found.notes.push(WITHOUT_VALGRIND.to_owned());
    }
    let leaves = if ask.quick {
        Vec::new()
    } else {
        writeln!(out, "bench: timing the steps of long sessions")?;
        divan::run("agent-prepare", "prepare", None)?
    };
    let mut table = Table::new("session", &COLUMNS);
    for kind in Kind::ALL {
        writeln!(out, "bench: counting a step of a session, {}", kind.name())?;
        let line = count(kind, valgrind)?;
        table.row(kind.name(), cells(&line, &leaves));
        found.broken.extend(broken(&line));
    }
    found.tables.push(table);
    Ok(found)
}

#[rustfmt::skip]
const COLUMNS: [(&str, Unit); 8] = [
    ("instructions a step at 100", Unit::Whole), ("at 5,000", Unit::Whole), ("growth", Unit::Times),
    ("allocations a step at 100", Unit::Whole), ("at 5,000", Unit::Whole), ("growth", Unit::Times),
    ("µs a step at 100", Unit::Tenth), ("at 5,000", Unit::Tenth),
];

fn count(kind: Kind, valgrind: bool) -> Result<Line, Fault> {
    let (mut instructions, mut allocations) = ([0.0; 2], [0.0; 2]);
    for (at, messages) in LENGTHS.into_iter().enumerate() {
        let words = |steps: u32| {
            ["prepare", kind.name()]
                .map(str::to_owned)
                .into_iter()
                .chain([messages.to_string(), steps.to_string()])
        };
        let mut said = [(0, 0); 2];
        for (said, steps) in said.iter_mut().zip(STEPS) {
            let Said { allocations } = serde_json::from_str(&child::said(words(steps))?)?;
            let instructions = if valgrind { child::instructions_of(words(steps))? } else { 0 };
            *said = (instructions, allocations);
        }
        let [first, last] = said;
        let [from, to] = STEPS;
        let share = |first: u64, last: u64| last.saturating_sub(first) as f64 / f64::from(to - from);
        if let Some((instructions, allocations)) = instructions.get_mut(at).zip(allocations.get_mut(at)) {
            *instructions = share(first.0, last.0);
            *allocations = share(first.1, last.1);
        }
    }
    Ok(Line { kind, instructions: valgrind.then_some(instructions), allocations })
}

fn cells(line: &Line, leaves: &[Leaf]) -> Vec<Option<f64>> {
    let mut cells = Vec::new();
    for ends in [line.instructions, Some(line.allocations)] {
        cells.extend([ends.map(|[short, _]| short), ends.map(|[_, long]| long)]);
        cells.push(ends.and_then(|[short, long]| times(long, short)));
    }
    cells.extend(LENGTHS.map(|messages| {
        let name = format!("{} {messages}", line.kind.name());
        let leaf = leaves.iter().find(|leaf| leaf.path.last() == Some(&name));
        leaf.map(|leaf| leaf.median_ns / 1e3)
    }));
    cells
}

/// Every limit that is broken, in words.
fn broken(line: &Line) -> Vec<String> {
    let [_, long] = LENGTHS;
    let judge = |what: &str, [few, many]: [f64; 2]| {
        let name = line.kind.name();
        if few <= 0.0 || many <= 0.0 {
            return Some(format!("{name}: no {what} were counted: a step without any was not measured"));
        }
        let growth = many / few;
        (growth > MOST_GROWTH).then(|| {
            format!("{name}: {what} grow {growth:.2} times up to {long} messages, at most {MOST_GROWTH} is allowed: something walks the history")
        })
    };
    let instructions = line.instructions.and_then(|ends| judge("instructions", ends));
    instructions.into_iter().chain(judge("allocations", line.allocations)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits() {
        let check = |instructions: Option<[f64; 2]>, allocations: [f64; 2], expect: &[&str]| {
            let found = broken(&Line { kind: Kind::Free, instructions, allocations });
            assert_eq!(found.len(), expect.len(), "{found:?}");
            assert!(found.iter().zip(expect).all(|(told, part)| told.contains(part)), "{found:?}");
        };
        check(Some([100.0, 120.0]), [10.0, 12.0], &[]);
        check(None, [10.0, 10.0], &[]);
        check(Some([100.0, 121.0]), [10.0, 10.0], &["free: instructions grow 1.21 times up to 5000"]);
        check(Some([100.0, 100.0]), [10.0, 20.0], &["allocations grow 2.00 times"]);
        check(Some([0.0, 0.0]), [0.0, 0.0], &["no instructions", "no allocations"]);
    }

    #[test]
    fn a_row_has_counts_and_times_of_its_own() {
        let leaf = |name: &str, median_ns| Leaf {
            path: vec!["step".into(), name.into()],
            median_ns,
            bytes_a_second: None,
            items_a_second: None,
        };
        let line = Line { kind: Kind::Bound, instructions: None, allocations: [10.0, 11.0] };
        let leaves = [leaf("free 100", 1.0), leaf("bound 100", 2_000.0), leaf("bound 5000", 3_000.0)];
        let expect = [None, None, None, Some(10.0), Some(11.0), Some(1.1), Some(2.0), Some(3.0)];
        assert_eq!(cells(&line, &leaves), expect);
    }
}
