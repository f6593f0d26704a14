//! What keeping a session costs: the operations of a store, and whether a step stays as cheap as a session grows.

mod growth;
pub(crate) mod stored;

use std::io::Write;

use crate::bench::Fault;
use crate::benches::Found;
use crate::child::Server;
use crate::divan;
use crate::figures::{Table, Unit};
use crate::options::Ask;

pub(crate) const HEADING: &str = "Storage";

pub(crate) const ABOUT: &str = "\
The first table is what a stored step costs early and late in a run of 1,000 steps: processor time and instructions beyond
those of `agent-memory`, bytes that the system counted on their way to the disk (a page that is written again counts
again), and what came to lie in the database. *Early* is steps 40 to 60 and *late* 990 to 1,000, of which the middle one is
shown. Processor time is the mean of steps 50 to 150 and of 900 to 1,000, in the middle one of three runs, and instructions
that of 100 to 200 and of 900 to 1,000; where all steps of each half are meant, as there, folding the log into the database
is part of it. `cargo xtask bench store --check` fails when instructions, bytes to the disk, rows or their content grow
more than 1.2 times.

Processor time has two lines because two threads spend it. The one that writes to the database does the same work at step
1,000 as at step 50. The rest is spent in the harness's own thread, in as many instructions late as early; a profile shows
it spread thin, as caches that are cold would: the thread sleeps for the disk twice a step, and the request's body, 3 MB by
then, is larger than the processor's second cache. What the kernel does for a sleep and a wake is in it too.

The second is each operation of a store on its own, from `cargo bench -p agent-store`: a step is one entry of 3 KB with
its events. Loading reads a whole session, its entries as the text that is stored; resuming reads them too, each once.
Neither reads events or usage. SQLite has reached the disk when it answers.";

pub(crate) fn measure(_: &Ask, out: &mut dyn Write) -> Result<Found, Fault> {
    let server = Server::start()?;
    let mut found = growth::measure(&server, out)?;
    writeln!(out, "bench: the operations of a store")?;
    found.tables.push(operations(&divan::run("agent-store", "store", Some("sqlite"))?));
    Ok(found)
}

/// One line an operation, one column a store: the last name of a leaf is its store, perhaps with `of` how many.
fn operations(leaves: &[divan::Leaf]) -> Table {
    let mut table = Table::new("operation", &[("memory, µs", Unit::Tenth), ("SQLite, µs", Unit::Tenth)]);
    let mut lines: Vec<(String, [Option<f64>; 2])> = Vec::new();
    for leaf in leaves {
        let Some((last, above)) = leaf.path.split_last() else { continue };
        let (store, of) = last.split_once(' ').unwrap_or((last, ""));
        let name = format!("{} {of}", above.join(" ").replace('_', " "));
        let at = lines.iter().position(|(known, _)| known == name.trim_end()).unwrap_or_else(|| {
            lines.push((name.trim_end().to_owned(), [None; 2]));
            lines.len() - 1
        });
        let column = usize::from(store != "memory");
        if let Some(cell) = lines.get_mut(at).and_then(|(_, cells)| cells.get_mut(column)) {
            *cell = Some(leaf.median_ns / 1e3);
        }
    }
    for (name, cells) in lines {
        table.row(&name, cells);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_both_stores() {
        let leaf = |path: &[&str], median_ns| divan::Leaf {
            path: path.iter().map(|part| (*part).to_owned()).collect(),
            median_ns,
            bytes_a_second: None,
            items_a_second: None,
        };
        let leaves =
            [leaf(&["resume", "memory of 100"], 2_000.0), leaf(&["resume", "sqlite of 100"], 9_000.0)];
        let table = operations(&leaves);
        assert_eq!(table.rows.len(), 1);
        assert_eq!(table.rows[0].name, "resume of 100");
        assert_eq!(table.rows[0].cells, [Some(2.0), Some(9.0)]);
    }
}
