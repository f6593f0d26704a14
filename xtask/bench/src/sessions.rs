//! Many sessions in one process: what they cost together, what each keeps, and whether one waits longer than others.

use std::io::Write;

use crate::bench::Fault;
use crate::benches::Found;
use crate::child::{self, Look, Order, Said, Server};
use crate::figures::{Table, Unit, median, times};
use crate::forms::{FORMS, SEGMENTS};
use crate::options::Ask;
use crate::step::turns;

pub(crate) const HEADING: &str = "A thousand sessions";

pub(crate) const ABOUT: &str = "\
1,000 sessions of 10 steps start at once in one process on one thread; ratios are to `floor-segments`, times the middle
of three runs in which the clients take turns. Connections are what the server accepted for 10,000 requests: one for each
session, and a second for those whose next request began before the first was back in the pool of the HTTP client. How
long the first, the middle and the last session took to be done says whether any was starved: all begin at once and ask
for the same.

Memory of a session is what the allocator has handed out and not got back, divided by the sessions: *idle* ones have been
built, have run one turn (of one step, and of ten) and wait for more; *active* is the most that was live while all ran.
The kept connections of a session are counted with it; the floors show what those take. The wish is 100 MiB and twice the
CPU of `floor-segments`, and neither is reached. Of what a session holds after ten steps, 27 KiB are the connection's, which
the HTTP client does not let be less (8 each to read and for heads, 9 for its queue), 30 the bytes that are sent, held once,
27 the same words as values, 14 the durable events where no database has them, and 4 the future of a run at work; the rest
is many small things. With a thousand sessions in turn each step finds the caches of the processor cold, so that its
instructions take half as long again as in one session.";

const SESSIONS: u32 = 1_000;
const STEPS: u32 = 10;

pub(crate) fn measure(_: &Ask, out: &mut dyn Write) -> Result<Found, Fault> {
    let server = Server::start()?;
    writeln!(out, "bench: timing {SESSIONS} sessions of {STEPS} steps")?;
    let runs = turns(&FORMS, |form| run(&server, form, STEPS, Look::Nothing))?;
    let mut found = Found { tables: vec![cost(&runs)?, spread(&runs)], ..Found::default() };
    let mut memory = Table::new("client", &MEMORY);
    for form in FORMS {
        writeln!(out, "bench: memory of {SESSIONS} sessions of {form}")?;
        let once = run(&server, form, 1, Look::Memory)?;
        let whole = run(&server, form, STEPS, Look::Memory)?;
        memory.row(form, [once.kept_bytes, whole.kept_bytes, whole.live_peak].map(kib_a_session));
    }
    found.tables.push(memory);
    Ok(found)
}

fn run(server: &Server, form: &str, steps: u32, look: Look) -> Result<Said, Fault> {
    child::client(server, Order { form, steps, sessions: SESSIONS, look })
}

#[rustfmt::skip]
const MEMORY: [(&str, Unit); 3] = [
    ("KiB an idle session, 1 step", Unit::Tenth), ("10 steps", Unit::Tenth), ("KiB an active session, at most", Unit::Tenth),
];

fn kib_a_session(bytes: u64) -> Option<f64> {
    Some(bytes as f64 / 1_024.0 / f64::from(SESSIONS))
}

fn cost(runs: &[Vec<Said>]) -> Result<Table, Fault> {
    let mut table = Table::new(
        "client",
        &[
            ("CPU µs a step", Unit::Whole),
            ("by the floor", Unit::Times),
            ("wall µs a step", Unit::Whole),
            ("peak MiB", Unit::Tenth),
            ("connections", Unit::Whole),
        ],
    );
    let steps = f64::from(SESSIONS * STEPS);
    let middle = |runs: &[Said], of: &dyn Fn(&Said) -> f64| median(runs.iter().map(of).collect());
    let cpu = |runs: &Vec<Said>| middle(runs, &|said| said.cpu_s() * 1e6 / steps);
    let floor = FORMS.iter().position(|form| *form == SEGMENTS).and_then(|at| runs.get(at));
    let floor = floor.and_then(cpu).ok_or("the floor was not run")?;
    for (form, runs) in FORMS.iter().zip(runs) {
        let own = cpu(runs);
        let wall = middle(runs, &|said| said.wall_s * 1e6 / steps);
        let connections = runs.iter().map(|said| said.connections).max().map(|most| most as f64);
        let by_floor = own.and_then(|own| times(own, floor));
        table.row(form, [own, by_floor, wall, middle(runs, &Said::peak_mib), connections]);
    }
    Ok(table)
}

fn spread(runs: &[Vec<Said>]) -> Table {
    let mut table = Table::new(
        "client",
        &[
            ("ms until the first was done", Unit::Whole),
            ("the middle", Unit::Whole),
            ("the last", Unit::Whole),
            ("last by first", Unit::Times),
        ],
    );
    for (form, runs) in FORMS.iter().zip(runs) {
        let at =
            |at: usize| median(runs.iter().filter_map(|said| said.done_s.get(at).map(|s| s * 1e3)).collect());
        let ratio = at(2).zip(at(0)).and_then(|(last, first)| times(last, first));
        table.row(form, [at(0), at(1), at(2), ratio]);
    }
    table
}
