//! A bar for each request: what it read, wrote and paid in full, of tools, system text and messages.

use std::fmt::{self, Write};

use agent_cache::{Level, Row};

use super::grouped;

const LEVELS: [(Level, &str); 3] =
    [(Level::Tools, "tools"), (Level::System, "system"), (Level::Messages, "messages")];
const FATES: [&str; 3] = ["read", "write", "new"];
/// A bar is so wide, with its gap.
const STEP: f64 = 10.0;
const HEIGHT: f64 = 100.0;
/// There is room for so many, so that a few are no walls.
const FEWEST: usize = 24;

pub(super) fn draw(out: &mut String, rows: &[Row]) -> fmt::Result {
    let bars: Vec<Bar> = rows.iter().map(Bar::of).collect();
    let most = bars.iter().map(Bar::total).max().unwrap_or(0);
    if most == 0 {
        return Ok(());
    }
    let width = STEP * bars.len().max(FEWEST) as f64;
    out.write_str("<h3>Input of each request</h3>\n")?;
    key(out)?;
    writeln!(
        out,
        "<svg viewBox=\"0 0 {width} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" \
         aria-label=\"{} requests, the largest of {} tokens; the table below has the numbers\">",
        bars.len(),
        grouped(most)
    )?;
    for (at, (bar, row)) in bars.iter().zip(rows).enumerate() {
        bar.draw(out, at as f64 * STEP, most, row.step)?;
    }
    out.write_str("</svg>\n")
}

fn key(out: &mut String) -> fmt::Result {
    out.write_str("<ul class=\"key\">")?;
    for (colour, words) in
        [("read", "read from the cache"), ("write", "written to the cache"), ("new", "paid in full")]
    {
        write!(out, "<li><i style=\"background:var(--{colour})\"></i>{words}</li>")?;
    }
    out.write_str("<li class=\"quiet\">light to strong: tools, system text, messages</li></ul>\n")
}

/// Tokens by fate and level.
struct Bar([[u64; 3]; 3]);

impl Bar {
    fn of(row: &Row) -> Self {
        let mut bar = [[0; 3]; 3];
        for part in &row.parts {
            let level = LEVELS.iter().position(|(level, _)| *level == part.level).unwrap_or(0);
            for (fate, tokens) in [part.read, part.written, part.new].into_iter().enumerate() {
                bar[fate][level] += tokens;
            }
        }
        Self(bar)
    }

    fn total(&self) -> u64 {
        self.0.iter().flatten().sum()
    }

    /// From the ground up, in the order of the prompt.
    fn draw(&self, out: &mut String, x: f64, most: u64, step: usize) -> fmt::Result {
        write!(out, "<g><title>{}</title>", self.words(step))?;
        let mut ground = HEIGHT;
        for (level, (_, name)) in LEVELS.iter().enumerate() {
            for (fate, colour) in FATES.iter().enumerate() {
                let tokens = self.0[fate][level];
                if tokens == 0 {
                    continue;
                }
                let height = tokens as f64 / most as f64 * HEIGHT;
                ground -= height;
                write!(
                    out,
                    "<rect class=\"{colour} {name}\" x=\"{x:.1}\" y=\"{ground:.2}\" width=\"{:.1}\" height=\"{height:.2}\"/>",
                    STEP * 0.86
                )?;
            }
        }
        out.write_str("</g>\n")
    }

    fn words(&self, step: usize) -> String {
        let fates = ["read", "written", "paid in full"].iter().zip(&self.0).map(|(fate, levels)| {
            let of = LEVELS.iter().zip(levels).filter(|(_, tokens)| **tokens > 0);
            let of: Vec<String> =
                of.map(|((_, name), tokens)| format!("{name} {}", grouped(*tokens))).collect();
            let all = grouped(levels.iter().sum());
            if of.is_empty() { format!("{fate} 0") } else { format!("{fate} {all} ({})", of.join(", ")) }
        });
        format!("request {step}: {}", fates.collect::<Vec<_>>().join("; "))
    }
}
