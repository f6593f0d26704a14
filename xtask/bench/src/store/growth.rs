//! What a stored step costs beyond one in memory, at both ends of a long run.

use std::io::Write;

use crate::bench::Fault;
use crate::benches::Found;
use crate::child::{self, Look, Order, Said, Server};
use crate::figures::{Table, Unit, median, times};
use crate::forms::{UNDER_TEST, WITH_STORE};
use crate::step::turns;

/// The same part of a run, early and late.
type Ends = [(u32, u32); 2];

/// The run, and what is looked at of it.
const STEPS: u32 = 1_000;
const ENDS: Ends = [(40, 60), (990, 1_000)];
/// Processor time is the mean of many steps, folding the log included: of one step it differs more than it grows.
const TIMED: Ends = [(50, 150), (900, 1_000)];
/// Instructions are differences of whole runs, which differ a little each time: more steps for the same doubt.
const COUNTED: Ends = [(100, 200), (900, 1_000)];
const HALVES: Ends = [(0, 500), (500, 1_000)];
const MOST_GROWTH: f64 = 1.2;

/// A cost at both ends.
#[derive(Clone, Copy)]
struct Line {
    name: &'static str,
    ends: [Option<f64>; 2],
    /// Whether its growth is held to the limit.
    is_held: bool,
}

pub(super) fn measure(server: &Server, out: &mut dyn Write) -> Result<Found, Fault> {
    writeln!(out, "bench: runs of {STEPS} steps in memory and stored")?;
    let mut lines = processor(server)?.to_vec();
    lines.extend(written(server)?);
    lines.extend(rows(server)?);
    if child::has_valgrind() {
        writeln!(out, "bench: counting the instructions of runs of up to {STEPS} steps")?;
        lines.push(instructions(server)?);
    }
    let mut found = Found::default();
    let mut table = Table::new(
        "a stored step",
        &[("early", Unit::Whole), ("late", Unit::Whole), ("growth", Unit::Times)],
    );
    for Line { name, ends: [early, late], is_held } in &lines {
        let growth = early.zip(*late).and_then(|(early, late)| times(late, early));
        table.row(name, [*early, *late, growth]);
        found.broken.extend(growth.filter(|_| *is_held).and_then(|growth| judge(name, growth)));
    }
    found.tables.push(table);
    if lines.iter().any(|line| line.ends.contains(&None)) {
        found.notes.push(NOT_TOLD.to_owned());
    }
    Ok(found)
}

fn judge(name: &str, growth: f64) -> Option<String> {
    let told =
        format!("{name}: grows {growth:.2} times over {STEPS} steps, at most {MOST_GROWTH} is allowed");
    (growth > MOST_GROWTH).then_some(told)
}

fn run(server: &Server, form: &str, steps: u32, look: Look) -> Result<Said, Fault> {
    child::client(server, Order { form, steps, sessions: 1, look })
}

/// What the store adds, and what of it is done by the thread that writes: the rest is the harness's own thread, which
/// sleeps for the disk and wakes to cold caches.
fn processor(server: &Server) -> Result<[Line; 2], Fault> {
    let runs = turns(&[UNDER_TEST, WITH_STORE], |form| run(server, form, STEPS, Look::Cpu))?;
    let ends = TIMED.map(|end| {
        let of =
            |at: usize| runs.get(at).and_then(|runs| mean(runs.iter().map(|said| &said.step_cpu_us), end));
        of(1).zip(of(0)).map(|(stored, memory)| stored - memory)
    });
    let runs = turns(&[WITH_STORE], |form| run(server, form, STEPS, Look::Writer))?;
    let runs: Vec<Said> = runs.into_iter().flatten().collect();
    let told = runs.iter().all(|said| said.step_writer_us.last().is_some_and(|us| *us > 0.0));
    let writer = TIMED.map(|end| mean(runs.iter().map(|said| &said.step_writer_us), end).filter(|_| told));
    Ok([
        Line { name: "CPU µs, beyond memory", ends, is_held: false },
        Line { name: "CPU µs of the thread that writes", ends: writer, is_held: false },
    ])
}

fn instructions(server: &Server) -> Result<Line, Fault> {
    let order = |form, steps| Order { form, steps, sessions: 1, look: Look::Nothing };
    let mut ends = [None; 2];
    for (end, (from, to)) in ends.iter_mut().zip(COUNTED) {
        let mut step = [0.0; 2];
        for (step, form) in step.iter_mut().zip([UNDER_TEST, WITH_STORE]) {
            let shorter = child::instructions(server, order(form, from))?;
            let longer = child::instructions(server, order(form, to))?;
            *step = longer.saturating_sub(shorter) as f64 / f64::from(to - from);
        }
        let [memory, stored] = step;
        *end = Some(stored - memory);
    }
    Ok(Line { name: "instructions, beyond memory", ends, is_held: true })
}

fn written(server: &Server) -> Result<[Line; 2], Fault> {
    let said = run(server, WITH_STORE, STEPS, Look::Written)?;
    let told = said.step_written.last().is_some_and(|bytes| *bytes > 0.0);
    let middle = ENDS.map(|end| middle([&said.step_written].into_iter(), end).filter(|_| told));
    let mean = HALVES.map(|(from, to)| {
        let at = |step: u32| said.step_written.get(at_step(step).min(said.step_written.len() - 1));
        at(to)
            .zip(at(from))
            .filter(|_| told)
            .map(|(to_bytes, from_bytes)| (to_bytes - from_bytes) / f64::from(to - from))
    });
    Ok([
        Line { name: "bytes to the disk", ends: middle, is_held: true },
        Line { name: "bytes to the disk, all steps of each half", ends: mean, is_held: false },
    ])
}

fn rows(server: &Server) -> Result<[Line; 3], Fault> {
    let mut step = [[None; 2]; 3];
    for (at, (from, to)) in ENDS.into_iter().enumerate() {
        let stored = |steps| -> Result<_, Fault> {
            Ok(run(server, WITH_STORE, steps, Look::Nothing)?
                .stored
                .ok_or("the client told of no database")?)
        };
        let (before, after) = (stored(from)?, stored(to)?);
        let pairs = [
            (before.rows, after.rows),
            (before.row_bytes, after.row_bytes),
            (before.file_bytes, after.file_bytes),
        ];
        for (line, (before, after)) in step.iter_mut().zip(pairs) {
            if let Some(cell) = line.get_mut(at) {
                *cell = Some(after.saturating_sub(before) as f64 / f64::from(to - from));
            }
        }
    }
    let [rows, bytes, file] = step;
    Ok([
        Line { name: "rows", ends: rows, is_held: true },
        Line { name: "bytes in rows", ends: bytes, is_held: true },
        Line { name: "bytes of the database file", ends: file, is_held: false },
    ])
}

/// A step's mean between two, of the run in the middle.
fn mean<'r>(runs: impl Iterator<Item = &'r Vec<f64>>, (from, to): (u32, u32)) -> Option<f64> {
    let means = runs.filter_map(|ticks| {
        let last = ticks.len().checked_sub(1)?;
        let (from, to) = (at_step(from), at_step(to).min(last));
        let steps = u32::try_from(to.checked_sub(from)?).ok().filter(|steps| *steps > 0)?;
        Some((ticks.get(to)? - ticks.get(from)?) / f64::from(steps))
    });
    median(means.collect())
}

/// The middle step between two, of all runs together.
fn middle<'r>(runs: impl Iterator<Item = &'r Vec<f64>>, (from, to): (u32, u32)) -> Option<f64> {
    let mut steps = Vec::new();
    for ticks in runs {
        let part = ticks.get(at_step(from)..at_step(to).min(ticks.len()))?;
        steps.extend(part.windows(2).filter_map(|pair| Some(pair.last()? - pair.first()?)));
    }
    median(steps)
}

/// The tool is called at each step but the last; the first tick is that of step 1.
fn at_step(step: u32) -> usize {
    usize::try_from(step.saturating_sub(1)).unwrap_or(usize::MAX)
}

const NOT_TOLD: &str = "\
A cell is empty where the system does not tell how much was written, or keeps the folder for temporary files in memory:
set `TMPDIR` to a folder on a disk.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_step_of_a_part() {
        let ticks: Vec<f64> = (0..999).map(|step| f64::from(step * step)).collect();
        let step = middle([&ticks].into_iter(), (40, 60));
        assert!(step.is_some_and(|step| (78.0..120.0).contains(&step)), "{step:?}");
        let late = middle([&ticks].into_iter(), (990, 1_000));
        assert!(late.is_some_and(|step| step > 1_970.0), "{late:?}");
        assert_eq!(middle([&vec![1.0]].into_iter(), (40, 60)), None);
    }

    #[test]
    fn the_mean_step_of_a_part() {
        let ticks: Vec<f64> = (0..999).map(|step| f64::from(step * 3 + step % 10)).collect();
        assert!(mean([&ticks].into_iter(), (50, 150)).is_some_and(|step| (step - 3.0).abs() < 0.1));
        assert!(mean([&ticks].into_iter(), (900, 1_000)).is_some_and(|step| (step - 3.0).abs() < 0.2));
        assert_eq!(mean([&vec![1.0]].into_iter(), (50, 150)), None);
    }

    #[test]
    fn growth_is_held() {
        assert!(judge("rows", 1.2).is_none());
        assert!(judge("rows", 1.21).is_some_and(|told| told.contains("grows 1.21 times")));
    }
}
