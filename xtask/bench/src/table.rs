//! The tables, as they are shown and as they are kept.

use std::fmt::Write;

use crate::forms::FLOOR;
use crate::judge::Counted;
use crate::plan::{MANY, Row, TIMED, Timed};

/// All tables that there are numbers for.
pub(crate) fn markdown(rows: &[Row]) -> String {
    let mut text = counts(rows);
    if rows.iter().any(|row| !row.timed.is_empty()) {
        text.push_str(&times(rows));
    }
    if rows.iter().any(|row| row.many.is_some()) {
        text.push_str(&many(rows));
    }
    text
}

/// The page that is kept in the documentation.
pub(crate) fn page(tables: &str, machine: &str, valgrind: bool) -> String {
    let instructions = if valgrind { "" } else { "\nInstructions were not counted, for want of valgrind.\n" };
    format!("{INTRODUCTION}\nMeasured on: {machine}.\n{instructions}\n{tables}")
}

fn counts(rows: &[Row]) -> String {
    let mut text = String::from(
        "| client | instructions a step 110..200 | 200..400 | allocations a step 110..200 | 200..400 | KiB allocated a step 110..200 | 200..400 |\n|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let (early, late) = row.counts.instructions.map_or_else(unknown, |counted| thousands(counted, 1.0));
        let allocations = thousands(row.counts.allocations, 1.0);
        let bytes = thousands(row.bytes, 1_024.0);
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| {} | {early} | {late} | {} | {} | {} | {} |",
            row.form, allocations.0, allocations.1, bytes.0, bytes.1
        );
    }
    text
}

fn times(rows: &[Row]) -> String {
    let mut text = String::from("\n| client |");
    for steps in TIMED {
        let _ = write!(text, " CPU µs a step, N = {steps} | by the floor |");
    }
    text.push_str(" peak MiB, N = 500 | by the floor |\n|---|");
    text.push_str(&"---|".repeat(2 * TIMED.len() + 2));
    text.push('\n');
    for row in rows {
        let _ = write!(text, "| {} |", row.form);
        for (at, timed) in row.timed.iter().enumerate() {
            let floor = floor(rows).and_then(|floor| floor.timed.get(at)).map(|floor| floor.cpu_us);
            let _ = write!(text, " {:.0} | {} |", timed.cpu_us, ratio(timed.cpu_us, floor));
        }
        let peak = |row: &Row| row.timed.last().map(mebibytes);
        let _ = writeln!(
            text,
            " {:.1} | {} |",
            peak(row).unwrap_or(0.0),
            ratio(peak(row).unwrap_or(0.0), floor(rows).and_then(peak))
        );
    }
    text
}

fn many(rows: &[Row]) -> String {
    let (sessions, steps) = MANY;
    let mut text = format!(
        "\n| client | {sessions} sessions of {steps} steps: CPU µs a step | by the floor | wall µs a step | peak MiB |\n|---|---|---|---|---|\n"
    );
    for row in rows {
        let Some(timed) = &row.many else { continue };
        let by_floor =
            ratio(timed.cpu_us, floor(rows).and_then(|floor| floor.many).map(|floor| floor.cpu_us));
        let _ = writeln!(
            text,
            "| {} | {:.0} | {by_floor} | {:.0} | {:.1} |",
            row.form,
            timed.cpu_us,
            timed.wall_us,
            mebibytes(timed)
        );
    }
    text
}

fn floor(rows: &[Row]) -> Option<&Row> {
    rows.iter().find(|row| row.form == FLOOR)
}

fn ratio(value: f64, floor: Option<f64>) -> String {
    floor
        .filter(|floor| *floor > 0.0)
        .map_or_else(|| "-".to_owned(), |floor| format!("{:.2}x", value / floor))
}

fn mebibytes(timed: &Timed) -> f64 {
    timed.peak_kb as f64 / 1_024.0
}

fn unknown() -> (String, String) {
    ("-".to_owned(), "-".to_owned())
}

fn thousands(counted: Counted, unit: f64) -> (String, String) {
    let per_step = counted.per_step();
    (grouped(per_step.early / unit), grouped(per_step.late / unit))
}

/// A whole number with a comma at each thousand.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

const INTRODUCTION: &str = "\
# What a step costs

This page is written by `cargo xtask bench`; change `xtask/bench/src/table.rs`, not the page.

A run of N steps asks a server on the loopback interface that answers at once. Every answer but the last is twenty pieces
of text and one call with some two hundred bytes of input; the tool answers with 2,048 bytes. `agent-memory` and
`agent-sqlite` are the facade, the latter with each step written through to the disk; `agent-parts` is a loop by hand over
the turn machine and the codec. The floors do the same work without a harness: each message is kept as the bytes that
were sent, and joined at each step (`floor-fragments`) or sent as they lie, in pieces that grow with age (`floor-segments`). All clients were first held
to the right requests.

Counts are those of the client's process alone, as differences between runs of 110, 200 and 400 steps, so that what is done
once has gone. Times are the middle of three runs and depend on the machine; ratios are to `floor-fragments` in the
same minutes. `cargo xtask bench --check` fails when `agent-memory` needs more than 1,000,000 instructions or 300
allocations a step, or when either grows more than 1.2 times up to step 400.
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Counts;

    fn row(form: &'static str, cpu_us: f64) -> Row {
        let counted = Counted { totals: [110, 200, 400].map(|steps| steps * 1_234) };
        let timed = Timed { cpu_us, wall_us: 9.0, peak_kb: 2_048 };
        let counts = Counts { allocations: counted, instructions: None };
        Row { form, counts, bytes: counted, timed: vec![timed; 3], many: Some(timed) }
    }

    #[test]
    fn numbers_stand_beside_the_floor() {
        let text = markdown(&[row(FLOOR, 100.0), row("agent-memory", 150.0)]);
        assert!(text.contains("| agent-memory | - | - | 1,234 | 1,234 | 1 | 1 |"), "{text}");
        assert!(
            text.contains("| agent-memory | 150 | 1.50x | 150 | 1.50x | 150 | 1.50x | 2.0 | 1.00x |"),
            "{text}"
        );
        assert!(text.contains("| agent-memory | 150 | 1.50x | 9 | 2.0 |"), "{text}");
    }

    #[test]
    fn what_was_not_measured_is_not_shown() {
        let bare = Row { timed: Vec::new(), many: None, ..row(FLOOR, 1.0) };
        assert_eq!(markdown(&[bare]).lines().count(), 3);
        assert!(page("", "here", false).contains("for want of valgrind"));
    }

    #[test]
    fn thousands_are_grouped() {
        for (number, expect) in [(0.0, "0"), (999.4, "999"), (1_000.0, "1,000"), (1_234_567.0, "1,234,567")] {
            assert_eq!(grouped(number), expect);
        }
    }
}
