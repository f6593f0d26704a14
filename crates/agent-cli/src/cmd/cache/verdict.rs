//! What is found of a scenario: its rows, what it cost, and everything that is not as it must be.

use agent::{Catalog, Usage, Vendor};
use agent_cache::{Aspect, Audit, Breach, Cause, Divergence, Judged, Request, Row, Simulator};
use agent_core::Prices;
use agent_testkit::RecordedRequest;

use super::scenario::{Expect, Kind, Red, Scenario};
use super::world::{self, Life, Lived, live};
use crate::error::CliError;

/// A scenario that was played.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) name: String,
    pub(crate) scenario: Scenario,
    /// One for each request.
    pub(crate) rows: Vec<Row>,
    pub(crate) judged: Judged,
    /// Nothing when all is as it must be.
    pub(crate) findings: Vec<Finding>,
}

/// One thing that is not as it must be.
#[derive(Debug)]
pub(crate) enum Finding {
    /// It leaves its budget, or lost what nobody declared.
    Breach(Breach),
    /// Two lives differ in a byte.
    Differ { life: &'static str, step: usize, at: usize, found: Option<Divergence> },
    /// A life did not come to its end.
    Failed { life: &'static str, problem: String },
    /// Another number of requests than the scenario has answers.
    Requests { life: &'static str, sent: usize, expected: usize },
    /// The provider counts otherwise than the audit.
    Counted { step: usize, provider: Usage, audit: Usage },
    /// Words that a request was to bring first: which one did.
    Words { expected: Expect, got: Option<usize> },
}

/// Plays a scenario, in more than one life.
pub(crate) async fn judge(name: String, scenario: Scenario) -> Result<Verdict, CliError> {
    let (first, second) = tokio::try_join!(live(&scenario, FIRST), live(&scenario, second(&scenario)))?;
    let mut findings = Vec::new();
    let (rows, judged) = rows(&scenario, &first, &mut findings)?;
    let mut others = vec![(SECOND.name, second)];
    if !scenario.restart_before.is_empty() {
        others.push((WHOLE.name, live(&scenario, WHOLE).await?));
    }
    ended(&scenario, FIRST.name, &first, &mut findings);
    findings.extend(scenario.expect.iter().filter_map(|expected| words(expected, &first)));
    for (life, lived) in &others {
        ended(&scenario, life, lived, &mut findings);
        findings.extend(differ(&scenario, life, &first, lived)?);
    }
    Ok(Verdict { name, scenario, rows, judged, findings })
}

impl Verdict {
    /// Whether all is as it must be: no finding, or the one that a sabotaged scenario is about.
    pub(crate) fn holds(&self) -> bool {
        match &self.scenario.red {
            None => self.findings.is_empty(),
            Some(red) => self.found(red).is_some(),
        }
    }

    /// The finding that a sabotaged scenario is about.
    pub(crate) fn found(&self, red: &Red) -> Option<&Finding> {
        self.findings.iter().find(|finding| {
            let (cause, path) = finding.place().unzip();
            red.kind.is_none_or(|kind| kind == finding.kind())
                && (red.cause.is_none() || red.cause == cause)
                && (red.path.is_none() || red.path.as_deref() == path)
        })
    }
}

impl Finding {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Breach(breach) => match breach {
                Breach::Lost { .. } => Kind::Lost,
                Breach::Shrunk { .. } => Kind::Shrunk,
                Breach::Hash { .. } => Kind::Hash,
                Breach::HitRate { .. } => Kind::HitRate,
                Breach::Cost { .. } => Kind::Cost,
                Breach::Stale { .. } => Kind::Stale,
                Breach::Nothing | _ => Kind::Requests,
            },
            Self::Differ { .. } => Kind::Bytes,
            Self::Failed { .. } => Kind::Failed,
            Self::Requests { .. } => Kind::Requests,
            Self::Counted { .. } => Kind::Counted,
            Self::Words { .. } => Kind::Words,
        }
    }

    /// Cause and place, where it has them.
    pub(crate) fn place(&self) -> Option<(Cause, &str)> {
        match self {
            Self::Breach(Breach::Lost { found, .. }) | Self::Differ { found: Some(found), .. } => {
                Some((found.cause, &found.path))
            }
            Self::Breach(_)
            | Self::Differ { found: None, .. }
            | Self::Failed { .. }
            | Self::Requests { .. }
            | Self::Counted { .. }
            | Self::Words { .. } => None,
        }
    }
}

/// Accounts for what a life asked, and holds it to the budget and against what the provider counted.
fn rows(
    scenario: &Scenario,
    lived: &Lived,
    findings: &mut Vec<Finding>,
) -> Result<(Vec<Row>, Judged), CliError> {
    let prices = prices(scenario)?;
    let mut audit = Audit::new(simulator(scenario)?, Some(prices.clone()));
    let mut rows = Vec::with_capacity(lived.requests.len());
    for (number, request) in lived.requests.iter().enumerate() {
        let at = lived.at.get(number).copied();
        let row = audit.step(&asked(number, request)?, at, None);
        let counted = lived.served.get(number).and_then(|served| served.usage.clone());
        if let Some(provider) = counted.map(input).filter(|counted| *counted != input(row.usage.clone())) {
            findings.push(Finding::Counted { step: row.step, provider, audit: input(row.usage.clone()) });
        }
        rows.push(row);
    }
    let judged = scenario.budget.judge(&rows, &prices);
    findings.splice(0..0, judged.breaches.iter().cloned().map(Finding::Breach));
    Ok((rows, judged))
}

fn ended(scenario: &Scenario, life: &'static str, lived: &Lived, findings: &mut Vec<Finding>) {
    let (sent, expected) = (lived.requests.len(), scenario.pauses().len());
    if let Some(problem) = lived.failure.clone() {
        findings.push(Finding::Failed { life, problem });
    } else if sent != expected {
        findings.push(Finding::Requests { life, sent, expected });
    }
}

/// Whether these words came with the request they were to come with.
fn words(expected: &Expect, lived: &Lived) -> Option<Finding> {
    let holds = |body: &[u8]| String::from_utf8_lossy(body).contains(&expected.words);
    let got = lived.requests.iter().position(|request| holds(&request.body)).map(|at| at + 1);
    (got != Some(expected.request)).then(|| Finding::Words { expected: expected.clone(), got })
}

/// The first request in which two lives differ.
fn differ(
    scenario: &Scenario,
    life: &'static str,
    one: &Lived,
    other: &Lived,
) -> Result<Option<Finding>, CliError> {
    let mut pairs = one.requests.iter().zip(&other.requests).enumerate();
    let Some((number, (one, other))) = pairs.find(|(_, (one, other))| one.body != other.body) else {
        return Ok(None);
    };
    let at = one.body.iter().zip(&other.body).take_while(|(one, other)| one == other).count();
    let mut audit = Audit::new(simulator(scenario)?, None);
    audit.step(&read(number, &one.body)?, None, None);
    let found = audit.step(&read(number, &other.body)?, None, None).divergence;
    Ok(Some(Finding::Differ { life, step: number + 1, at, found }))
}

/// A request with what its head asks for: features that a provider switches on there are a part of the prompt.
fn asked(number: usize, recorded: &RecordedRequest) -> Result<Request, CliError> {
    let mut request = read(number, &recorded.body)?;
    let betas = recorded.headers.iter().filter(|(name, _)| name == "anthropic-beta");
    let names = betas.flat_map(|(_, value)| value.split(',')).map(str::trim).filter(|name| !name.is_empty());
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    if !names.is_empty() {
        request.aspects.insert(Aspect::Betas, names.join(","));
    }
    Ok(request)
}

fn read(number: usize, body: &[u8]) -> Result<Request, CliError> {
    Request::read(body, None).map_err(|cause| CliError::Body { number: number + 1, cause })
}

fn simulator(scenario: &Scenario) -> Result<Simulator, CliError> {
    Ok(Simulator::new(world::book(scenario)?, scenario.provider_model().0))
}

/// What the model costs; where nobody knows, as the rules say for an input price of a dollar.
fn prices(scenario: &Scenario) -> Result<Prices, CliError> {
    let (vendor, model) = scenario.provider_model();
    let tag = Vendor::named(vendor).map(|vendor| vendor.dialect.provider.clone()).unwrap_or_default();
    let known = Catalog::builtin().profile(&tag, model).prices;
    match known {
        Some(prices) if scenario.rules.is_none() => Ok(prices),
        Some(_) | None => Ok(world::rules(scenario)?.prices(1.0, 0.0, "")),
    }
}

/// What both sides count.
fn input(usage: Usage) -> Usage {
    Usage {
        input: usage.input,
        cache_read: usage.cache_read,
        cache_write_5m: usage.cache_write_5m,
        cache_write_1h: usage.cache_write_1h,
        ..Usage::default()
    }
}

const FIRST: Life =
    Life { name: "the first life", restarts: true, turned: 0, later_ms: 0, place: ("C", "UTC") };
const SECOND: Life = Life {
    name: "another process",
    restarts: true,
    turned: 1,
    later_ms: 0,
    place: ("de_DE.UTF-8", "Asia/Tokyo"),
};
const WHOLE: Life =
    Life { name: "the same without a restart", restarts: false, turned: 0, later_ms: 0, place: ("C", "UTC") };
/// A day, three hours, seven minutes and five seconds.
const LATER_MS: i64 = 97_625_000;

/// Where the model is not told the day, another process may begin at another time.
fn second(scenario: &Scenario) -> Life {
    Life { later_ms: if scenario.tell_date { 0 } else { LATER_MS }, ..SECOND }
}
