//! What reading a stream of events costs, beside a parser of its grammar and beside the floor.

use std::io::Write;

use crate::bench::Fault;
use crate::benches::Found;
use crate::divan::{self, Leaf};
use crate::figures::{Table, Unit};
use crate::options::Ask;

pub(crate) const HEADING: &str = "Reading a stream";

pub(crate) const ABOUT: &str = "\
A megabyte of small deltas in Anthropic's form, from `cargo bench -p agent-providers`, cut as a network may cut it: at
each event, in packets, and in large reads. *Split* ends with the data of each event; *text* goes on to the words and the
input of the call. The floor splits at line breaks with `memchr` and reads flat, borrowed fields, without names of events,
errors or limits.";

pub(crate) fn measure(_: &Ask, out: &mut dyn Write) -> Result<Found, Fault> {
    writeln!(out, "bench: reading streams")?;
    let leaves = divan::run("agent-providers", "sse", None)?;
    Ok(Found { tables: vec![table(&leaves)], ..Found::default() })
}

/// One line a reader; two columns for each way to cut the stream.
fn table(leaves: &[Leaf]) -> Table {
    let cut = |leaf: &Leaf| leaf.path.last().cloned().unwrap_or_default();
    let reader = |leaf: &Leaf| {
        leaf.path.iter().rev().skip(1).rev().cloned().collect::<Vec<_>>().join(": ").replace('_', "-")
    };
    let cuts = CUTS.map(|cut| [format!("{cut}: MB/s"), "ns an event".to_owned()]);
    let columns: Vec<(&str, Unit)> = cuts.iter().flatten().map(|name| (name.as_str(), Unit::Whole)).collect();
    let mut table = Table::new("reader", &columns);
    let mut readers: Vec<String> = leaves.iter().map(reader).collect();
    readers.dedup();
    for name in readers {
        let cells = CUTS.iter().flat_map(|wanted| {
            let found = leaves.iter().find(|leaf| reader(leaf) == name && cut(leaf) == *wanted);
            let speed = found.and_then(|leaf| leaf.bytes_a_second).map(|bytes| bytes / 1e6);
            [
                speed,
                found
                    .and_then(|leaf| leaf.items_a_second)
                    .filter(|items| *items > 0.0)
                    .map(|items| 1e9 / items),
            ]
        });
        table.row(&name, cells);
    }
    table
}

/// As the bench names them.
const CUTS: [&str; 4] = ["1 event", "1400 B", "16 KiB", "256 KiB"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_has_every_cut() {
        let leaf = |cut: &str, bytes, items| Leaf {
            path: vec!["split".into(), "our_frames".into(), cut.into()],
            median_ns: 1.0,
            bytes_a_second: Some(bytes),
            items_a_second: Some(items),
        };
        let table = table(&[leaf("1 event", 500e6, 4e6), leaf("256 KiB", 800e6, 8e6)]);
        assert_eq!(table.rows.len(), 1);
        assert_eq!(table.rows[0].name, "split: our-frames");
        let cells = [Some(500.0), Some(250.0), None, None, None, None, Some(800.0), Some(125.0)];
        assert_eq!(table.rows[0].cells, cells);
    }
}
