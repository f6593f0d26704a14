//! The prefix as a strip: a cell for each block, coloured by how often it was read again or written again.

use std::fmt::{self, Write};

use agent_cache::{Part, Row};

use super::{escaped, grouped};

/// Blocks named below the strip.
const NAMED: usize = 8;

pub(super) fn draw(out: &mut String, rows: &[Row]) -> fmt::Result {
    let cells = cells(rows);
    let Some(most) = cells.iter().map(|cell| cell.reads).max() else { return Ok(()) };
    let again: Vec<&Cell> = cells.iter().filter(|cell| cell.writes > 1).collect();
    out.write_str("<h3>Blocks of the prefix</h3>\n")?;
    key(out)?;
    writeln!(
        out,
        "<div class=\"strip\" role=\"img\" aria-label=\"{} blocks, read again up to {most} times; {} were written or paid \
         more than once\">",
        cells.len(),
        again.len()
    )?;
    let mut level = cells.first().map(|cell| cell.part.level);
    for cell in &cells {
        if level.replace(cell.part.level) != Some(cell.part.level) {
            out.write_str("<i class=\"level\"></i>")?;
        }
        write!(out, "<i class=\"{}\" title=\"{}\"></i>", cell.colour(most), escaped(&cell.words()))?;
    }
    out.write_str("</div>\n")?;
    if again.is_empty() {
        return Ok(());
    }
    let named: Vec<String> = again.iter().take(NAMED).map(|cell| escaped(&cell.words())).collect();
    let more = again.len().saturating_sub(NAMED);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    writeln!(out, "<p>Paid more than once: {}{more}.</p>", named.join("; "))
}

fn key(out: &mut String) -> fmt::Result {
    out.write_str("<ul class=\"key\">")?;
    for (colour, words) in [
        ("r1", "read again a few times"),
        ("r4", "as often as any"),
        ("w1", "written once, never read"),
        ("w2", "paid twice"),
        ("w3", "paid more often"),
    ] {
        write!(out, "<li><i class=\"{colour}\"></i>{words}</li>")?;
    }
    out.write_str("</ul>\n")
}

/// One place of the prefix over all requests.
struct Cell<'r> {
    /// As it was last.
    part: &'r Part,
    reads: usize,
    /// How often its tokens were written, or paid in full.
    writes: usize,
}

fn cells(rows: &[Row]) -> Vec<Cell<'_>> {
    let mut cells: Vec<Cell<'_>> = Vec::new();
    for row in rows {
        for (at, part) in row.parts.iter().enumerate() {
            if at == cells.len() {
                cells.push(Cell { part, reads: 0, writes: 0 });
            }
            let cell = &mut cells[at];
            cell.part = part;
            if part.read > part.written + part.new {
                cell.reads += 1;
            } else {
                cell.writes += 1;
            }
        }
    }
    cells
}

impl Cell<'_> {
    fn colour(&self, most: usize) -> &'static str {
        match (self.writes, self.reads) {
            (3.., _) => "w3",
            (2, _) => "w2",
            (_, 0) => "w1",
            (_, reads) => ["r1", "r2", "r3", "r4"][(reads * 4 - 1) / most.max(1) % 4],
        }
    }

    fn words(&self) -> String {
        let tokens = grouped(self.part.tokens());
        let (read, paid) = (times(self.reads), times(self.writes));
        format!("{}: {tokens} tokens, read {read}, paid {paid}", self.part.path)
    }
}

fn times(count: usize) -> String {
    match count {
        0 => "never".into(),
        1 => "once".into(),
        count => format!("{count} times"),
    }
}
