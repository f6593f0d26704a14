//! The rows of a scenario as a table.

use std::fmt::{self, Write};

use agent_cache::Row;

use super::{escaped, grouped};

const HEADS: [&str; 9] = [
    "Request",
    "Tools",
    "System",
    "Shared bytes",
    "Of",
    "Read",
    "Written",
    "In full",
    "First change, and why",
];

pub(super) fn draw(out: &mut String, rows: &[Row]) -> fmt::Result {
    out.write_str("<details>\n<summary>Rows</summary>\n<div class=\"wide\">\n<table>\n<thead><tr>")?;
    for head in HEADS {
        write!(out, "<th scope=\"col\">{head}</th>")?;
    }
    out.write_str("</tr></thead>\n<tbody>\n")?;
    for row in rows {
        line(out, row)?;
    }
    out.write_str("</tbody>\n</table>\n</div>\n</details>\n")
}

fn line(out: &mut String, row: &Row) -> fmt::Result {
    let usage = &row.usage;
    write!(
        out,
        "<tr><th scope=\"row\">{}</th><td><code>{}</code></td><td><code>{}</code></td>",
        row.step,
        escaped(&row.tools_hash),
        escaped(&row.system_hash)
    )?;
    for number in [row.shared_bytes, row.bytes, usage.cache_read, usage.cache_write(), usage.input] {
        write!(out, "<td>{}</td>", grouped(number))?;
    }
    let why = row
        .divergence
        .as_ref()
        .map(|found| format!("{} at {}: {}", found.cause.name(), found.path, found.advice));
    writeln!(out, "<td>{}</td></tr>", escaped(&why.unwrap_or_default()))
}
