//! What is measured, in which order, and what becomes of it.

use std::io::Write;
use std::path::Path;

use crate::bench::Fault;
use crate::child::{self, Order, Server};
use crate::forms::{FLOOR, FORMS, UNDER_TEST};
use crate::judge::{self, Counted, Counts, LENGTHS};
use crate::options::Options;
use crate::{machine, table};

/// What was found of one client.
pub(crate) struct Row {
    pub(crate) form: &'static str,
    pub(crate) counts: Counts,
    /// Bytes that were asked of the allocator.
    pub(crate) bytes: Counted,
    /// Processor time, for each of [`TIMED`].
    pub(crate) timed: Vec<Timed>,
    /// Many sessions at once.
    pub(crate) many: Option<Timed>,
}

/// The middle one of some runs.
#[derive(Clone, Copy)]
pub(crate) struct Timed {
    /// Microseconds of processor time a step.
    pub(crate) cpu_us: f64,
    /// Microseconds a step took.
    pub(crate) wall_us: f64,
    pub(crate) peak_kb: u64,
}

/// Steps of the runs that are timed.
pub(crate) const TIMED: [u32; 3] = [50, 200, 500];
pub(crate) const MANY: (u32, u32) = (1_000, 10);
const REPEATS: usize = 3;
const VERIFIED: u32 = 25;
const PAGE: &str = "docs/performance.md";

pub(crate) fn run(options: &Options, out: &mut dyn Write) -> Result<(), Fault> {
    let server = Server::start()?;
    let valgrind = !options.quick && child::has_valgrind();
    let forms: Vec<&'static str> =
        FORMS.into_iter().filter(|form| !options.quick || matches!(*form, FLOOR | UNDER_TEST)).collect();
    for form in &forms {
        child::client(&server, Order { form, steps: VERIFIED, sessions: 1, verify: true })?;
    }
    let mut rows = Vec::new();
    for form in &forms {
        writeln!(out, "bench: counting {form}")?;
        rows.push(counted(&server, form, valgrind)?);
    }
    if !options.quick {
        for steps in TIMED {
            writeln!(out, "bench: timing runs of {steps} steps")?;
            time(&server, &mut rows, steps)?;
        }
    }
    if options.all && !options.quick {
        writeln!(out, "bench: timing {} sessions of {} steps", MANY.0, MANY.1)?;
        many(&server, &mut rows)?;
    }
    let shown = table::markdown(&rows);
    writeln!(out, "\n{shown}")?;
    if !options.quick && !valgrind {
        writeln!(out, "bench: valgrind is not installed, so instructions were not counted")?;
    }
    if options.writes() {
        std::fs::write(Path::new(PAGE), table::page(&shown, &machine::describe(), valgrind))?;
        writeln!(out, "bench: wrote {PAGE}")?;
    }
    verdict(&rows, options.check, out)
}

/// Says which limits are broken; with `check` that is a failure.
fn verdict(rows: &[Row], check: bool, out: &mut dyn Write) -> Result<(), Fault> {
    let row = rows.iter().find(|row| row.form == UNDER_TEST).ok_or("the client under test was not run")?;
    let broken = judge::broken(&row.counts);
    for limit in &broken {
        writeln!(out, "bench: {UNDER_TEST}: {limit}")?;
    }
    match broken.len() {
        0 => Ok(writeln!(out, "bench: {UNDER_TEST} keeps its limits")?),
        count if check => Err(format!(
            "{count} limit(s) broken, listed above; profile with `valgrind --tool=callgrind`, docs/testing.md shows how"
        )
        .into()),
        _ => Ok(()),
    }
}

fn counted(server: &Server, form: &'static str, valgrind: bool) -> Result<Row, Fault> {
    let mut allocations = Counted { totals: [0; 3] };
    let mut bytes = allocations;
    let mut instructions = valgrind.then_some(allocations);
    for (at, steps) in LENGTHS.into_iter().enumerate() {
        let order = Order { form, steps, sessions: 1, verify: false };
        let said = child::client(server, order)?;
        put(&mut allocations, at, said.allocations);
        put(&mut bytes, at, said.allocated_bytes);
        if let Some(instructions) = &mut instructions {
            put(instructions, at, child::instructions(server, order)?);
        }
    }
    Ok(Row { form, counts: Counts { allocations, instructions }, bytes, timed: Vec::new(), many: None })
}

fn put(counted: &mut Counted, at: usize, total: u64) {
    if let Some(place) = counted.totals.get_mut(at) {
        *place = total;
    }
}

/// All clients in turn, and that some times over, so that what disturbs the machine disturbs each alike.
fn time(server: &Server, rows: &mut [Row], steps: u32) -> Result<(), Fault> {
    let mut runs: Vec<Vec<Timed>> = rows.iter().map(|_| Vec::new()).collect();
    for _ in 0..REPEATS {
        for (row, runs) in rows.iter().zip(&mut runs) {
            runs.push(timed(server, row.form, (1, steps))?);
        }
    }
    for (row, runs) in rows.iter_mut().zip(runs) {
        row.timed.extend(middle(runs));
    }
    Ok(())
}

fn many(server: &Server, rows: &mut [Row]) -> Result<(), Fault> {
    for row in rows {
        row.many = Some(timed(server, row.form, MANY)?);
    }
    Ok(())
}

fn timed(server: &Server, form: &str, (sessions, steps): (u32, u32)) -> Result<Timed, Fault> {
    let said = child::client(server, Order { form, steps, sessions, verify: false })?;
    let all = f64::from(steps) * f64::from(sessions);
    Ok(Timed {
        cpu_us: said.cpu_s() * 1e6 / all,
        wall_us: said.wall_s() * 1e6 / all,
        peak_kb: said.peak_kb(),
    })
}

fn middle(mut runs: Vec<Timed>) -> Option<Timed> {
    runs.sort_by(|one, other| one.cpu_us.total_cmp(&other.cpu_us));
    runs.get(runs.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(allocations: u64) -> Row {
        let counted = Counted { totals: [110, 200, 400].map(|steps| steps * allocations) };
        let counts = Counts { allocations: counted, instructions: None };
        Row { form: UNDER_TEST, counts, bytes: counted, timed: Vec::new(), many: None }
    }

    #[test]
    fn a_broken_limit_fails_only_a_check() {
        let mut out = Vec::new();
        assert!(verdict(&[row(120)], true, &mut out).is_ok());
        assert!(verdict(&[row(320)], false, &mut out).is_ok());
        assert!(verdict(&[row(320)], true, &mut out).is_err());
        assert!(verdict(&[row(0)], true, &mut out).is_err());
        assert!(verdict(&[], true, &mut out).is_err());
        assert!(String::from_utf8(out).unwrap().contains("320 allocations a step"));
    }

    #[test]
    fn the_middle_run_counts() {
        let run = |cpu_us| Timed { cpu_us, wall_us: 1.0, peak_kb: 1 };
        assert_eq!(middle(vec![run(9.0), run(1.0), run(3.0)]).map(|run| run.cpu_us), Some(3.0));
        assert!(middle(Vec::new()).is_none());
    }
}
