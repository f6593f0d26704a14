//! What one step costs: instructions and allocations as the history grows, and time beside the floors.

mod judge;

use std::io::Write;

use crate::bench::Fault;
use crate::benches::Found;
use crate::child::{self, Look, Order, Said, Server};
use crate::figures::{Table, Unit, median, times};
use crate::forms::{FLOOR, FORMS, UNDER_TEST};
use crate::options::Ask;
use judge::{Counted, Counts, LENGTHS};

pub(crate) const HEADING: &str = "One session";

pub(crate) const ABOUT: &str = "\
Counts are those of the client's process alone, as differences between runs of 110, 200 and 400 steps, so that what is
done once has gone; they come out the same on a busy machine. Times are the middle of three runs, in which the clients
take turns, and depend on the machine; ratios are to `floor-fragments` in the same minutes. The last column is how many
connections the server accepted for the 500 requests of one run, at most. One is enough; the pool of the HTTP client opens
a second when a request begins in the instant in which the first is on its way back to it, and then keeps both. The
clients on our crates give it back before an answer ends.

What a process does once is a part of short runs: the facade's first step runs more code that was never touched before
than a floor's does, some 1.5 ms of it, which the ratios at N = 10 and 50 hold and those at 200 and 500 hardly do; the last
table of this page, which times the loop alone and not the start of the process, has N = 50 without most of it. Of the
instructions of a step beyond the floor's, half are the codec's (each event read with all its fields, the answer folded,
the entry written as bytes), half the harness's (commit, events, plan of breakpoints, preparation, tool call); a profile by
time is flat, with the kernel's copy to the socket first.
`cargo xtask bench --check --quick`, which is a part of `cargo xtask ci`, fails when `agent-memory` needs more than
1,000,000 instructions or 300 allocations a step, or when either grows more than 1.2 times up to step 400.";

/// Steps of the runs that are timed.
const TIMED: [u32; 4] = [10, 50, 200, 500];
const REPEATS: usize = 3;
const VERIFIED: u32 = 25;

pub(crate) fn measure(ask: &Ask, out: &mut dyn Write) -> Result<Found, Fault> {
    let server = Server::start()?;
    let valgrind = child::has_valgrind();
    if !valgrind {
        writeln!(out, "{WITHOUT_VALGRIND}")?;
    }
    let forms: Vec<&'static str> =
        FORMS.into_iter().filter(|form| !ask.quick || *form == UNDER_TEST).collect();
    let mut found = Found::default();
    let mut counts = Table::new("client", &COUNTED);
    for form in &forms {
        child::client(&server, Order { form, steps: VERIFIED, sessions: 1, look: Look::Bodies })?;
        writeln!(out, "bench: counting {form}")?;
        let (counted, bytes) = count(&server, form, valgrind)?;
        counts.row(form, cells(&counted, bytes));
        if *form == UNDER_TEST {
            found.broken = judge::broken(&counted);
        }
    }
    found.tables.push(counts);
    if !ask.quick {
        found.tables.push(time(&server, &forms, out)?);
    }
    if !valgrind {
        found.notes.push(WITHOUT_VALGRIND.to_owned());
    }
    Ok(found)
}

fn count(server: &Server, form: &str, valgrind: bool) -> Result<(Counts, Counted), Fault> {
    let (mut allocations, mut bytes, mut instructions) = (Vec::new(), Vec::new(), Vec::new());
    for steps in LENGTHS {
        let order = Order { form, steps, sessions: 1, look: Look::Nothing };
        let said = child::client(server, order)?;
        allocations.push(said.allocations);
        bytes.push(said.allocated_bytes);
        if valgrind {
            instructions.push(child::instructions(server, order)?);
        }
    }
    let instructions = valgrind.then_some(Counted { totals: instructions });
    Ok((Counts { allocations: Counted { totals: allocations }, instructions }, Counted { totals: bytes }))
}

#[rustfmt::skip]
const COUNTED: [(&str, Unit); 8] = [
    ("instructions a step 110..200", Unit::Whole), ("200..400", Unit::Whole), ("growth", Unit::Times),
    ("allocations a step 110..200", Unit::Whole), ("200..400", Unit::Whole), ("growth", Unit::Times),
    ("KiB allocated a step 110..200", Unit::Whole), ("200..400", Unit::Whole),
];

fn cells(counts: &Counts, bytes: Counted) -> Vec<Option<f64>> {
    let mut cells = Vec::new();
    for counted in [counts.instructions.as_ref(), Some(&counts.allocations)] {
        let steps = counted.map(Counted::per_step);
        cells.extend([steps.map(|steps| steps.early), steps.map(|steps| steps.late)]);
        cells.push(steps.and_then(|steps| times(steps.late, steps.early)));
    }
    let bytes = bytes.per_step();
    cells.extend([Some(bytes.early / 1_024.0), Some(bytes.late / 1_024.0)]);
    cells
}

/// All clients in turn, and that some times over, so that what disturbs the machine disturbs each alike.
fn time(server: &Server, forms: &[&str], out: &mut dyn Write) -> Result<Table, Fault> {
    let names = TIMED.map(|steps| format!("CPU µs a step, N = {steps}"));
    let pair = |name| [(name, Unit::Whole), ("by the floor", Unit::Times)];
    let mut columns: Vec<(&str, Unit)> = names.iter().flat_map(|name| pair(name.as_str())).collect();
    columns.extend([
        ("peak MiB, N = 500", Unit::Tenth),
        ("by the floor", Unit::Times),
        ("connections", Unit::Whole),
    ]);
    let mut table = Table::new("client", &columns);
    let mut measured = Vec::new();
    for steps in TIMED {
        writeln!(out, "bench: timing runs of {steps} steps")?;
        measured.push(turns(forms, |form| {
            child::client(server, Order { form, steps, sessions: 1, look: Look::Nothing })
        })?);
    }
    let cpu = |runs: &[Said], steps: u32| {
        median(runs.iter().map(|said| said.cpu_s() * 1e6 / f64::from(steps)).collect())
    };
    let floor = forms.iter().position(|form| *form == FLOOR).ok_or("the floor was not run")?;
    for (at, form) in forms.iter().enumerate() {
        let mut cells = Vec::new();
        for (steps, runs) in TIMED.into_iter().zip(&measured) {
            let of = |at: usize| runs.get(at).and_then(|runs: &Vec<Said>| cpu(runs, steps));
            cells.extend([of(at), of(at).zip(of(floor)).and_then(|(own, floor)| times(own, floor))]);
        }
        let last = |at: usize| measured.last().and_then(|runs| runs.get(at));
        let peak = |at: usize| last(at).and_then(|runs| median(runs.iter().map(Said::peak_mib).collect()));
        cells.extend([peak(at), peak(at).zip(peak(floor)).and_then(|(own, floor)| times(own, floor))]);
        cells.push(
            last(at).and_then(|runs| runs.iter().map(|said| said.connections).max()).map(|most| most as f64),
        );
        table.row(form, cells);
    }
    Ok(table)
}

/// What each client said, in the order of `forms`, with the clients taking turns.
pub(crate) fn turns(
    forms: &[&str],
    mut run: impl FnMut(&str) -> Result<Said, Fault>,
) -> Result<Vec<Vec<Said>>, Fault> {
    let mut all: Vec<Vec<Said>> = forms.iter().map(|_| Vec::new()).collect();
    for _ in 0..REPEATS {
        for (form, said) in forms.iter().zip(&mut all) {
            said.push(run(form)?);
        }
    }
    Ok(all)
}

/// A gate that was held open is said so.
pub(crate) const WITHOUT_VALGRIND: &str = "\
**Instructions were not measured**: valgrind is missing here, or does not start programs. Install it
(`apt-get install valgrind`) and measure again; allocations alone were held to their limit.";
