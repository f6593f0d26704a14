//! The page of the documentation, made of the kept figures.

use std::fmt::Write;

use crate::benches::BENCHES;
use crate::figures::{Figures, Section, Table, Unit};

/// The whole page.
pub(crate) fn page(figures: &Figures) -> String {
    let mut text = String::from(INTRODUCTION);
    for bench in &BENCHES {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n## {}\n\n{}\n", bench.heading, bench.about.trim());
        match figures.0.get(bench.name) {
            Some(section) => text.push_str(&shown(section)),
            None => {
                let _ = writeln!(text, "\nNot measured yet: `cargo xtask bench {}`.", bench.name);
            }
        }
    }
    text
}

/// The tables and notes of one bench.
pub(crate) fn shown(section: &Section) -> String {
    let mut text = format!("\nMeasured on: {}.\n", section.measured_on);
    for table in &section.tables {
        let _ = write!(text, "\n{}", markdown(table));
    }
    for note in &section.notes {
        let _ = write!(text, "\n{note}\n");
    }
    text
}

fn markdown(table: &Table) -> String {
    let mut text = format!("| {} |", table.rows_are);
    for column in &table.columns {
        let _ = write!(text, " {} |", column.name);
    }
    let _ = writeln!(text, "\n|---|{}", "---:|".repeat(table.columns.len()));
    for row in &table.rows {
        let _ = write!(text, "| {} |", row.name);
        for (cell, column) in row.cells.iter().zip(&table.columns) {
            let _ =
                write!(text, " {} |", cell.map_or_else(|| "-".to_owned(), |cell| number(cell, column.unit)));
        }
        text.push('\n');
    }
    text
}

/// A number with a comma at each thousand.
fn number(number: f64, unit: Unit) -> String {
    let written = format!("{:.*}", unit.places(), number);
    let (whole, places) = written.split_at(written.find('.').unwrap_or(written.len()));
    let digits = whole.trim_start_matches('-');
    let mut text = "-".repeat(whole.len() - digits.len());
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text + places + if unit == Unit::Times { "x" } else { "" }
}

const INTRODUCTION: &str = "\
# What a step costs

This page is written by `cargo xtask bench` from the numbers in `performance.json`; change the program in `xtask/bench/`,
not the page. Each part has the machine and the day it was measured on: `cargo xtask bench NAME` measures one anew, and
the others stay.

The work is the same everywhere. A run of N steps asks a server on the loopback interface that answers at once. Every
answer but the last is twenty pieces of text and one call with some two hundred bytes of input; the tool answers with
2,048 bytes. `agent-memory` and `agent-sqlite` are the facade, the latter with each step written through to the disk;
`agent-parts` is a loop by hand over the turn machine and the codec. The floors do the same work without a harness: each
message is kept as the bytes that were sent, and joined at each step (`floor-fragments`) or sent as they lie, in pieces
that grow with age (`floor-segments`). All clients were first held to the right requests.
";

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_page_is_what_its_figures_say() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let figures = Figures::read(&docs.join("performance.json")).unwrap();
        let kept = std::fs::read_to_string(docs.join("performance.md")).unwrap();
        assert!(kept == page(&figures), "write it anew with `cargo xtask bench page`");
    }

    #[test]
    fn every_part_is_on_the_page() {
        let text = page(&Figures::default());
        for bench in &BENCHES {
            assert!(
                text.contains(&format!("Not measured yet: `cargo xtask bench {}`", bench.name)),
                "{text}"
            );
        }
    }

    #[test]
    fn a_table_has_all_its_cells() {
        let mut table = Table::new("client", &[("time", Unit::Whole), ("by the floor", Unit::Times)]);
        table.row("floor", [Some(1_500.0), Some(1.0)]);
        table.row("ours", [None, Some(1.5)]);
        let expect = "| client | time | by the floor |\n|---|---:|---:|\n| floor | 1,500 | 1.00x |\n| ours | - | 1.50x |\n";
        assert_eq!(markdown(&table), expect);
    }

    #[test]
    fn thousands_are_grouped() {
        let check = |value: f64, unit: Unit, expect: &str| assert_eq!(number(value, unit), expect);
        check(0.0, Unit::Whole, "0");
        check(999.4, Unit::Whole, "999");
        check(1_000.0, Unit::Whole, "1,000");
        check(-1_000.0, Unit::Whole, "-1,000");
        check(-100.0, Unit::Whole, "-100");
        check(1_234_567.0, Unit::Tenth, "1,234,567.0");
        check(1.256, Unit::Times, "1.26x");
    }
}
