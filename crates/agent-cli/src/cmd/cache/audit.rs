//! `agent cache audit`: requests of any agent, held against each other as a prompt cache would.

use std::io::{Write, stderr, stdout};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use agent_cache::{Audit, Format, Request, Row, RuleBook, Simulator, Summary};
use agent_core::{Prices, RawJson, Usage};
use agent_providers::{Catalog, Dialect, ResponseHead, WireFormat, decode_response};
use agent_testkit::Exchange;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::known_provider;
use crate::args::AuditArgs;
use crate::env;
use crate::error::CliError;
use crate::show::plain;

/// A line of the file that is no bare body: a body with what is known besides.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    request: RawJson,
    /// Seconds, from any beginning.
    #[serde(default)]
    at: Option<f64>,
    #[serde(default)]
    usage: Option<Counted>,
}

/// What tells a line with more than a body from a bare one.
#[derive(Deserialize)]
struct Wrapped {
    #[serde(rename = "request")]
    _request: IgnoredAny,
}

/// Input tokens as the provider counted them. Its own object is refused: its names mean other things.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Counted {
    input: u64,
    #[serde(default)]
    output: u64,
    #[serde(default)]
    cache_read: u64,
    #[serde(default)]
    cache_write_5m: u64,
    #[serde(default)]
    cache_write_1h: u64,
}

/// A request to look at.
struct Asked {
    body: Vec<u8>,
    at: Option<Duration>,
    usage: Option<Usage>,
}

pub(crate) fn audit(args: &AuditArgs) -> Result<ExitCode, CliError> {
    let path = &args.file;
    let text = read(path)?;
    let book = RuleBook::builtin();
    known_provider(&book, args.provider.as_deref())?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let mut audit: Option<Audit> = None;
    let mut out = stdout();
    for (number, line) in lines {
        let bad = |cause: String| CliError::Audit { path: path.clone(), line: number + 1, cause };
        let asked = asked(line).map_err(&bad)?;
        let request = Request::read(&asked.body, None).map_err(|error| bad(error.to_string()))?;
        let audit = audit.get_or_insert_with(|| begin(&request, book.clone(), args.provider.as_deref()));
        let row = audit.step(&request, asked.at, asked.usage.as_ref());
        if args.json {
            writeln!(out, "{}", serde_json::to_string(&row)?)?;
        } else {
            show(&row)?;
        }
    }
    let audit = audit.ok_or_else(|| CliError::NothingToAudit { path: path.clone() })?;
    let summary = audit.summary();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(summary)?)?;
    } else {
        show_summary(summary, &audit)?;
    }
    let outside = outside(summary, args);
    for line in &outside {
        writeln!(stderr(), "{line}")?;
    }
    let passes = summary.causes.is_empty() && outside.is_empty();
    Ok(if passes { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The file's text without the mark that some editors begin with.
fn read(path: &Path) -> Result<String, CliError> {
    #[expect(clippy::disallowed_methods, reason = "the file the user names, outside any workspace")]
    let bytes = std::fs::read(path).map_err(|cause| CliError::Given {
        path: path.into(),
        cause,
        give: "a file with the body of a request a line, as docs/guides/cache-audit.md records one",
    })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + good.iter().filter(|byte| **byte == b'\n').count();
        CliError::Audit { path: path.into(), line, cause: "it is not UTF-8; save the file as UTF-8".into() }
    })?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// What lies outside of the budget, one a line.
fn outside(summary: &Summary, args: &AuditArgs) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(least) = args.min_hit_rate {
        let (hit, best) = (summary.usage.hit_rate(), summary.ideal.hit_rate());
        if hit.is_none_or(|hit| hit * 100.0 < least) {
            let in_reach = best.is_some_and(|best| best * 100.0 >= least);
            let next = if in_reach {
                LOST
            } else {
                "nothing this short can reach that; play a longer session or ask for less"
            };
            lines.push(format!(
                "hit rate {} is below --min-hit-rate {least}, at best it is {}: {next}",
                rate(hit),
                rate(best)
            ));
        }
    }
    if let Some(most) = args.max_cost_ratio {
        match summary.cost_ratio {
            Some(ratio) if ratio <= most => {}
            Some(ratio) => lines.push(format!(
                "the input cost {ratio:.3} times the ideal, above --max-cost-ratio {most}: {LOST}"
            )),
            None => lines.push(format!(
                "--max-cost-ratio {most}: no input was paid for, so there is nothing to hold against it"
            )),
        }
    }
    lines
}

/// An audit by the rules of the first request's provider, with the prices of its model where they are known.
fn begin(request: &Request, book: RuleBook, provider: Option<&str>) -> Audit {
    let provider = provider.unwrap_or(request.format.provider());
    let prices: Option<Prices> = Catalog::builtin().profile(request.format.name(), &request.model).prices;
    Audit::new(Simulator::new(book, provider), prices)
}

/// What a line holds: a recorded exchange, a body with a time or usage, or a body.
fn asked(line: &str) -> Result<Asked, String> {
    if let Ok(exchange) = serde_json::from_str::<Exchange>(line) {
        let body = exchange.request.body.clone().unwrap_or_default().into_bytes();
        return Ok(Asked { body, at: None, usage: usage_of(&exchange) });
    }
    if serde_json::from_str::<Wrapped>(line).is_err() {
        return Ok(Asked { body: line.as_bytes().to_vec(), at: None, usage: None });
    }
    let Line { request, at, usage } = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let at = at.map(Duration::try_from_secs_f64).transpose().map_err(|error| format!("at: {error}"))?;
    Ok(Asked { body: request.get().as_bytes().to_vec(), at, usage: usage.map(Usage::from) })
}

impl From<Counted> for Usage {
    fn from(counted: Counted) -> Self {
        let Counted { input, output, cache_read, cache_write_5m, cache_write_1h } = counted;
        Self { input, output, cache_read, cache_write_5m, cache_write_1h, ..Self::default() }
    }
}

/// What the provider counted in a recorded answer.
fn usage_of(exchange: &Exchange) -> Option<Usage> {
    let format = match Request::read(exchange.request.body.as_deref()?.as_bytes(), None).ok()?.format {
        Format::Anthropic => WireFormat::Anthropic,
        Format::OpenaiChat => WireFormat::OpenAiChat,
        Format::OpenaiResponses => WireFormat::OpenAiResponses,
        _ => return None,
    };
    let head = ResponseHead { status: Some(exchange.response.status), headers: &[], now: env::now() };
    let decoded = decode_response(&Dialect::from(format), &[&exchange.response.body[..]], &head);
    decoded.usage.raw.is_some().then_some(decoded.usage)
}

fn show(row: &Row) -> Result<(), CliError> {
    let Row { step, usage, shared_bytes, bytes, shared_tokens, .. } = row;
    let source = if row.reported { "counted" } else { "simulated" };
    let cost = row.cost.map(|dollars| format!(", ${dollars:.4}")).unwrap_or_default();
    let mut out = stdout();
    writeln!(
        out,
        "{step:>4}  tools {} system {}  {shared_bytes} of {bytes} bytes, {shared_tokens} tokens shared  read {} written {} new {} ({source}{cost})",
        row.tools_hash,
        row.system_hash,
        usage.cache_read,
        usage.cache_write(),
        usage.input
    )?;
    for suspect in &row.suspects {
        let kind = suspect.looks_like.name();
        writeln!(out, "      suspect: {} holds a {kind}: {}", suspect.path, plain(&suspect.excerpt))?;
    }
    if let Some(found) = &row.divergence {
        let cost = row.lost_cost.map(|dollars| format!(", ${dollars:.4}")).unwrap_or_default();
        writeln!(out, "      {} at {}: {} tokens lost{cost}", found.cause.name(), found.path, row.lost)?;
        if !found.before.is_empty() || !found.after.is_empty() {
            writeln!(
                out,
                "        before: {}\n        after:  {}",
                plain(&found.before),
                plain(&found.after)
            )?;
        }
        writeln!(out, "        {}", plain(&found.advice))?;
    }
    Ok(())
}

fn show_summary(summary: &Summary, audit: &Audit) -> Result<(), CliError> {
    let (hit, best) = (rate(summary.usage.hit_rate()), rate(summary.ideal.hit_rate()));
    let input = Usage { output: 0, ..summary.usage.clone() };
    let cost = match (audit.cost(&input), audit.cost(&summary.ideal)) {
        (Some(paid), Some(ideal)) => format!("; input ${paid:.4}, at best ${ideal:.4}"),
        (Some(_) | None, _) => String::new(),
    };
    let ratio = summary.cost_ratio.map(|ratio| format!(" ({ratio:.3} times the ideal)")).unwrap_or_default();
    let Summary { steps, lost, .. } = summary;
    let requests = if *steps == 1 { "request" } else { "requests" };
    writeln!(
        stdout(),
        "{steps} {requests}: {hit} of the input read from the cache, at best {best}; {lost} tokens lost{cost}{ratio}"
    )?;
    Ok(())
}

fn rate(rate: Option<f64>) -> String {
    rate.map_or("-".to_owned(), |rate| format!("{:.1}%", rate * 100.0))
}

const LOST: &str = "the rows above say where tokens were lost";
