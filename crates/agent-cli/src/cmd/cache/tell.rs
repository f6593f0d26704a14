//! Verdicts as text and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use agent_cache::{Cause, Row};
use serde_json::{Value, json};

use super::scenario::{Kind, Red};
use super::verdict::{Finding, Verdict};
use crate::show::plain;

/// Findings of one cause that are told in full.
const MOST: usize = 3;

/// One line for a scenario, and what was found below it.
pub(crate) fn text(verdict: &Verdict, with_rows: bool) -> String {
    let mut text = head(verdict);
    if with_rows {
        verdict.rows.iter().for_each(|row| text.push_str(&line(row)));
    }
    if verdict.holds() {
        return text;
    }
    if let Some(red) = &verdict.scenario.red {
        // Writing to a String cannot fail.
        let _ =
            writeln!(text, "  it is sabotaged, and what it must fail with was not found: {}", wanted(red));
    }
    // A prefix that breaks at every step says the same each time.
    let mut told: BTreeMap<Option<Cause>, usize> = BTreeMap::new();
    for finding in &verdict.findings {
        let cause = finding.place().map(|(cause, _)| cause);
        let times = told.entry(cause).or_default();
        *times += 1;
        if cause.is_some() && *times > MOST {
            continue;
        }
        for words in finding.to_string().lines() {
            let _ = writeln!(text, "  {}", plain(words));
        }
    }
    let more = told.into_iter().filter_map(|(cause, times)| Some((cause?, times.checked_sub(MOST)?)));
    for (cause, times) in more.filter(|(_, times)| *times > 0) {
        let _ = writeln!(text, "  and {} at {times} more requests; --rows lists them", cause.name());
    }
    text
}

fn head(verdict: &Verdict) -> String {
    let Verdict { name, rows, judged, scenario, .. } = verdict;
    let state = if verdict.holds() { "ok  " } else { "FAIL" };
    if let Some(found) = scenario.red.as_ref().and_then(|red| verdict.found(red)) {
        let cause = found.place().map(|(cause, path)| format!(", {} at {path}", cause.name()));
        return format!(
            "{state} {name}: sabotaged, and found: {}{}\n",
            word(&found.kind()),
            cause.unwrap_or_default()
        );
    }
    let rate = judged.hit_rate.map_or("-".into(), |rate| format!("{:.1}%", rate * 100.0));
    let ratio = judged.cost_ratio.map_or("-".into(), |ratio| format!("{ratio:.3}"));
    let least = scenario.budget.min_hit_rate.map(|it| format!(" (at least {:.1}%)", it * 100.0));
    let most = scenario.budget.max_cost_ratio.map(|it| format!(" (at most {it:.3})"));
    format!(
        "{state} {name}: {} requests, {rate} read{}, {ratio} of the ideal cost{}\n",
        rows.len(),
        least.unwrap_or_default(),
        most.unwrap_or_default()
    )
}

/// What a sabotaged scenario must fail with.
fn wanted(red: &Red) -> String {
    let kind = red.kind.as_ref().map(word);
    let cause = red.cause.map(|cause| cause.name().to_owned());
    let path = red.path.as_ref().map(|path| format!("at {path}"));
    [kind, cause, path].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// A kind as files write it.
fn word(kind: &Kind) -> String {
    serde_json::to_value(kind).ok().and_then(|it| it.as_str().map(str::to_owned)).unwrap_or_default()
}

fn line(row: &Row) -> String {
    let usage = &row.usage;
    let why = row.divergence.as_ref().map(|found| format!("  {} at {}", found.cause.name(), found.path));
    format!(
        "  {:>4}  tools {} system {}  {} of {} bytes shared  read {} written {} new {}{}\n",
        row.step,
        row.tools_hash,
        row.system_hash,
        row.shared_bytes,
        row.bytes,
        usage.cache_read,
        usage.cache_write(),
        usage.input,
        why.unwrap_or_default()
    )
}

/// One object for a scenario, rows included.
pub(crate) fn json(verdict: &Verdict) -> Value {
    let findings: Vec<Value> = verdict
        .findings
        .iter()
        .map(|finding| {
            let place = finding.place();
            json!({
                "kind": finding.kind(),
                "cause": place.map(|(cause, _)| cause.name()),
                "path": place.map(|(_, path)| path),
                "message": finding.to_string(),
            })
        })
        .collect();
    json!({
        "scenario": verdict.name,
        "holds": verdict.holds(),
        "sabotaged": verdict.scenario.red.is_some(),
        "requests": verdict.rows.len(),
        "hit_rate": verdict.judged.hit_rate,
        "cost_ratio": verdict.judged.cost_ratio,
        "budget": verdict.scenario.budget,
        "findings": findings,
        "rows": verdict.rows,
    })
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Breach(breach) => breach.fmt(f),
            Self::Differ { life, step, at, found } => {
                write!(f, "request {step}: {life} sent other bytes, from byte {at} on")?;
                let Some(found) = found else {
                    return write!(
                        f,
                        "\n  Only markers or settings outside of the prefix differ; look for what is read from the process."
                    );
                };
                write!(f, ": {} at {}{}", found.cause.name(), found.path, found.change())
            }
            Self::Failed { life, problem } => write!(f, "{life} did not come to its end: {problem}"),
            Self::Requests { life, sent, expected } => write!(
                f,
                "{life} sent {sent} requests, and the scenario has {expected} answers\n  Give each turn as many steps as the agent takes."
            ),
            Self::Counted { step, provider, audit } => write!(
                f,
                "request {step}: the provider counted read {} written {} new {}, the audit read {} written {} new {}\n  One of the two has a bug; nothing else shares so much code.",
                provider.cache_read,
                provider.cache_write(),
                provider.input,
                audit.cache_read,
                audit.cache_write(),
                audit.input
            ),
            Self::Words { expected, got } => {
                let came = got.map_or("with none".to_owned(), |got| format!("with request {got}"));
                write!(
                    f,
                    "request {}: {:?} was to come with it, and came {came}\n  Look whether what the scenario is about happens.",
                    expected.request, expected.words
                )
            }
        }
    }
}
