//! What a tool call costs with all that stands around it, beside the same function called bare.

mod judge;
mod run;
mod subjects;

use std::io::Write;

use crate::bench::Fault;
use crate::benches::Found;
use crate::child;
use crate::figures::{Table, Unit, median, times};
use crate::options::Ask;
use crate::step::WITHOUT_VALGRIND;
use judge::{Cost, Line};
use run::Said;
use subjects::Subject;

pub(crate) use run::run;

pub(crate) const HEADING: &str = "A tool call";

pub(crate) const ABOUT: &str = "\
*Whole* is a call as the driver runs it for a model: read from the answer, looked up, shown to two hooks before and behind
it, held against 24 permission rules and 8 remembered ones (those for `bash` against a parsed command), run under its
deadline and cap, told as events and recorded with its 4 KiB of output, the session in memory. It is the difference between
steps of nine calls and of one. *Bare* is the same function in the same minutes behind nothing but the reading of its input.
`read_file` reads a file of 4 KiB and `bash` prints it, both from a real folder; a process of its own costs far more than
what is looked at around it. The last two return a text at once, so that only what is around them is left: `command` is
judged as a shell command, `closure` as a text. They show what a call costs in itself and have no limit, for by a function
that does nothing any check is dear. Instructions are those of the process itself, processor time that of it and what it
started.
`cargo xtask bench tools --check` fails, as does the gate of `ci`, when a whole `read_file` costs more than 3 times a bare
one in instructions, or in processor time where those cannot be counted; without `--quick` also when `bash` does in
processor time.";

/// Calls of a step: what is done once in it has gone from the difference. More of them would fill the context, and a
/// compaction is no part of a call.
const CALLS: [u32; 2] = [1, 9];
const REPEATS: usize = 3;

pub(crate) fn measure(ask: &Ask, out: &mut dyn Write) -> Result<Found, Fault> {
    let valgrind = child::has_valgrind();
    let mut found = Found::default();
    if !valgrind {
        found.notes.push(WITHOUT_VALGRIND.to_owned());
    }
    let mut table = Table::new("tool", &COLUMNS);
    for subject in Subject::ALL.into_iter().filter(|subject| !ask.quick || subject.is_quick()) {
        writeln!(out, "bench: counting calls of {}", subject.name())?;
        let instructions = if valgrind && subject.is_counted() {
            Some(ways(subject, |words| Ok(child::instructions_of(words)? as f64))?)
        } else {
            None
        };
        let line = Line { subject, instructions, cpu_us: timed(subject)? };
        table.row(subject.name(), cells(&line));
        found.broken.extend(judge::broken(&line));
    }
    found.tables.push(table);
    Ok(found)
}

#[rustfmt::skip]
const COLUMNS: [(&str, Unit); 6] = [
    ("instructions, bare", Unit::Whole), ("whole", Unit::Whole), ("times", Unit::Times),
    ("CPU µs, bare", Unit::Tenth), ("whole", Unit::Tenth), ("times", Unit::Times),
];

fn cells(line: &Line) -> Vec<Option<f64>> {
    let mut cells = Vec::new();
    for cost in [line.instructions, Some(line.cpu_us)] {
        cells.extend([cost.map(|cost| cost.bare), cost.map(|cost| cost.whole)]);
        cells.push(cost.and_then(|cost| times(cost.whole, cost.bare)));
    }
    cells
}

/// The middle of some runs, in which both ways take turns.
fn timed(subject: Subject) -> Result<Cost, Fault> {
    let (mut bare, mut whole) = (Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        let cost = ways(subject, |words| {
            let said: Said = serde_json::from_str(&child::said(words)?)?;
            Ok(said.cpu_us)
        })?;
        bare.push(cost.bare);
        whole.push(cost.whole);
    }
    let middle = |costs| median(costs).unwrap_or_default();
    Ok(Cost { bare: middle(bare), whole: middle(whole) })
}

/// What a call costs both ways, as a difference between two numbers of calls in a step.
fn ways(
    subject: Subject,
    count: impl Fn(std::vec::IntoIter<String>) -> Result<f64, Fault>,
) -> Result<Cost, Fault> {
    let [few, many] = CALLS;
    let steps = subject.steps();
    let way = |way: &str| -> Result<f64, Fault> {
        let total = |calls: u32| {
            let words = ["tools", subject.name(), way].map(str::to_owned);
            let words: Vec<String> = words.into_iter().chain([steps, calls].map(|n| n.to_string())).collect();
            count(words.into_iter())
        };
        Ok((total(many)? - total(few)?) / f64::from(steps * (many - few)))
    };
    Ok(Cost { bare: way(run::BARE)?, whole: way(run::WHOLE)? })
}
