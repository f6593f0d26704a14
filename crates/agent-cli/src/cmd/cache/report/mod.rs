//! Verdicts drawn: one page that needs nothing else, readable on a phone and without colours.

mod bars;
mod rows;
mod strip;

use std::fmt::{self, Write};

use super::verdict::{Finding, Verdict};

/// The whole page.
pub(crate) fn page(verdicts: &[Verdict]) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = write_page(&mut text, verdicts);
    text
}

fn write_page(out: &mut String, verdicts: &[Verdict]) -> fmt::Result {
    let failed = verdicts.iter().filter(|verdict| !verdict.holds()).count();
    write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>Cache audit: {failed} of {} failed</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>Cache audit</h1>\n<p class=\"lead\">{} scenarios, {failed} failed. Each was played through the harness against a \
         simulated provider, in more than one process.</p>\n",
        verdicts.len(),
        verdicts.len()
    )?;
    contents(out, verdicts)?;
    for verdict in verdicts {
        section(out, verdict)?;
    }
    out.write_str("</main>\n</body>\n</html>\n")
}

fn contents(out: &mut String, verdicts: &[Verdict]) -> fmt::Result {
    out.write_str("<nav aria-label=\"Scenarios\">\n<ul>\n")?;
    for verdict in verdicts {
        let name = escaped(&verdict.name);
        writeln!(out, "<li>{} <a href=\"#{name}\">{name}</a></li>", badge(verdict))?;
    }
    out.write_str("</ul>\n</nav>\n")
}

fn section(out: &mut String, verdict: &Verdict) -> fmt::Result {
    let (name, scenario) = (escaped(&verdict.name), &verdict.scenario);
    let (about, model) = (escaped(&scenario.about), escaped(&scenario.model));
    write!(
        out,
        "<section id=\"{name}\" aria-labelledby=\"{name}-title\">\n<h2 id=\"{name}-title\">{name} {}</h2>\n\
         <p>{about} <span class=\"quiet\">{model}</span></p>\n",
        badge(verdict)
    )?;
    numbers(out, verdict)?;
    findings(out, &verdict.findings)?;
    // What is broken on purpose is drawn too, and folded away.
    let folded = scenario.red.is_some();
    let label = if folded { "Requests, blocks and rows" } else { "" };
    if folded {
        writeln!(out, "<details>\n<summary>{label}</summary>")?;
    }
    bars::draw(out, &verdict.rows)?;
    strip::draw(out, &verdict.rows)?;
    rows::draw(out, &verdict.rows)?;
    out.write_str(if folded { "</details>\n</section>\n" } else { "</section>\n" })
}

fn badge(verdict: &Verdict) -> &'static str {
    match (verdict.holds(), &verdict.scenario.red) {
        (false, _) => "<strong class=\"badge bad\">failed</strong>",
        (true, Some(_)) => "<span class=\"badge red\">sabotage found</span>",
        (true, None) => "<span class=\"badge good\">ok</span>",
    }
}

/// Hit rate and cost against the budget, and how many hashes there were.
fn numbers(out: &mut String, verdict: &Verdict) -> fmt::Result {
    let (judged, budget) = (&verdict.judged, &verdict.scenario.budget);
    let percent = |share: f64| format!("{:.1}%", share * 100.0);
    let rate = judged.hit_rate.map_or("none".into(), percent);
    let least =
        budget.min_hit_rate.map_or("no budget".into(), |least| format!("at least {}", percent(least)));
    let ratio = judged.cost_ratio.map_or("none".into(), |ratio| format!("{ratio:.3}"));
    let most = budget.max_cost_ratio.map_or("no budget".into(), |most| format!("at most {most:.3}"));
    let hashes = |hash: fn(&agent_cache::Row) -> &str| {
        let all: std::collections::BTreeSet<&str> = verdict.rows.iter().map(hash).collect();
        all.into_iter().collect::<Vec<_>>().join(" ")
    };
    out.write_str("<dl class=\"numbers\">\n")?;
    let mut pair = |what: &str, number: &str, quiet: &str| {
        writeln!(
            out,
            "<div><dt>{what}</dt><dd>{} <span class=\"quiet\">{}</span></dd></div>",
            escaped(number),
            escaped(quiet)
        )
    };
    pair("Read from the cache", &rate, &least)?;
    pair("Cost over the ideal", &ratio, &most)?;
    let dollars = format!("${:.4}", judged.cost);
    pair("Input", &dollars, &format!("at best ${:.4}", judged.ideal))?;
    pair("Requests", &verdict.rows.len().to_string(), "")?;
    pair("Tools hash", &hashes(|row| &row.tools_hash), "")?;
    pair("System hash", &hashes(|row| &row.system_hash), "")?;
    out.write_str("</dl>\n")
}

fn findings(out: &mut String, findings: &[Finding]) -> fmt::Result {
    if findings.is_empty() {
        return Ok(());
    }
    out.write_str("<ul class=\"findings\">\n")?;
    for finding in findings {
        writeln!(out, "<li>{}</li>", escaped(&finding.to_string()))?;
    }
    out.write_str("</ul>\n")
}

/// Text as HTML: nothing of it is markup.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

/// A number with its thousands apart.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

const STYLE: &str = include_str!("page.css");

#[cfg(test)]
mod tests;
