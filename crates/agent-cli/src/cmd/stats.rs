//! `agent stats`: what stored sessions cost, and how their turns ended.

use std::collections::BTreeMap;
use std::io::{Write, stdout};
use std::process::ExitCode;
use std::time::Duration;

use agent::{EventBody, SessionId, Store, Usage};
use agent_core::{Prices, SessionSummary, Spent};
use agent_providers::Catalog;
use serde::Serialize;

use crate::args::StatsArgs;
use crate::error::CliError;
use crate::show::{plain, usage_line};
use crate::{assemble, env, models};

/// The sums of a session, a model or all of it. Hit rate and cost are derived, and stored nowhere (requirement M6).
#[derive(Debug, Default, Serialize)]
struct Sums {
    turns: u64,
    steps: u64,
    usage: Usage,
    /// Share of the input that was read from the cache.
    hit_rate: Option<f64>,
    /// US dollars; none where a price is not known.
    cost_usd: Option<f64>,
    /// How many turns ended for each reason.
    reasons: BTreeMap<String, u64>,
}

#[derive(Debug, Serialize)]
struct SessionSums {
    id: SessionId,
    model: String,
    #[serde(flatten)]
    sums: Sums,
    /// What its sub-agents used, which is in their own sessions and not in its sums.
    #[serde(skip_serializing_if = "Option::is_none")]
    children: Option<Spent>,
}

#[derive(Debug, Serialize)]
struct Stats {
    sessions: Vec<SessionSums>,
    /// Each session counts for the model it began with.
    models: BTreeMap<String, Sums>,
    total: Sums,
}

pub(crate) async fn stats(args: StatsArgs) -> Result<ExitCode, CliError> {
    let data = env::data_dir(args.data.data_dir)?;
    let wanted = args.id.map(SessionId::new).transpose()?;
    let catalog = models::of_run(&data, args.known.file.as_deref())?;
    let mut sessions = Vec::new();
    if let Some(store) = assemble::stored(&data)? {
        for line in store.sessions().await? {
            match line {
                Ok(line) if wanted.as_ref().is_none_or(|id| line.id == *id) => {
                    sessions.push(of_session(&store, &catalog, line).await?);
                }
                Ok(_) => {}
                Err(error) => writeln!(std::io::stderr(), "agent: {}", plain(&error.to_string()))?,
            }
        }
    }
    if let Some(session) = wanted.filter(|_| sessions.is_empty()) {
        return Err(CliError::NoSession { session, data });
    }
    let stats = summed(sessions);
    let mut out = stdout();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&stats)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if stats.sessions.is_empty() {
        writeln!(out, "No sessions in {} yet. `agent run \"…\"` begins one.", data.display())?;
        return Ok(ExitCode::SUCCESS);
    }
    print(&mut out, &stats)?;
    Ok(ExitCode::SUCCESS)
}

async fn of_session(
    store: &impl Store,
    catalog: &Catalog,
    line: SessionSummary,
) -> Result<SessionSums, CliError> {
    let (mut steps, mut ended) = (0, 0);
    let mut reasons = BTreeMap::new();
    for event in store.events(&line.id, 0).await? {
        if let EventBody::TurnCompleted { reason, .. } | EventBody::TurnFailed { reason, .. } = event.body {
            ended += 1;
            *reasons.entry(reason.to_string()).or_default() += 1;
        } else if let EventBody::StepCompleted { .. } = event.body {
            steps += 1;
        }
    }
    if line.turns > ended {
        reasons.insert("open".to_owned(), line.turns - ended);
    }
    let prices = prices(catalog, &line.model);
    let sums = Sums {
        turns: line.turns,
        steps,
        hit_rate: line.usage.hit_rate(),
        cost_usd: prices.map(|prices| prices.cost(&line.usage)),
        usage: line.usage,
        reasons,
    };
    let state = match store.state(&line.id).await {
        Ok(state) => state,
        Err(error) => {
            writeln!(std::io::stderr(), "agent: {}", plain(&error.to_string()))?;
            None
        }
    };
    let children = state.map(|state| state.checkpoint.children.session).filter(|spent| !spent.is_nothing());
    Ok(SessionSums { id: line.id, model: line.model, sums, children })
}

fn prices(catalog: &Catalog, model: &str) -> Option<Prices> {
    let (provider, name) = model.split_once('/')?;
    catalog.profile(provider, name).prices
}

fn summed(sessions: Vec<SessionSums>) -> Stats {
    let mut models: BTreeMap<String, Sums> = BTreeMap::new();
    let mut total = Sums::default();
    for SessionSums { model, sums, .. } in &sessions {
        models.entry(model.clone()).or_default().add(sums);
        total.add(sums);
    }
    Stats { sessions, models, total }
}

impl Sums {
    fn add(&mut self, other: &Self) {
        // A sum with an unknown part would look like all of it.
        let is_first = self.turns == 0 && self.steps == 0 && self.usage == Usage::default();
        self.cost_usd = match (self.cost_usd, other.cost_usd) {
            (Some(sum), Some(cost)) => Some(sum + cost),
            (None, Some(cost)) if is_first => Some(cost),
            (None, _) | (Some(_), None) => None,
        };
        self.turns += other.turns;
        self.steps += other.steps;
        self.usage += &other.usage;
        self.hit_rate = self.usage.hit_rate();
        for (reason, count) in &other.reasons {
            *self.reasons.entry(reason.clone()).or_default() += count;
        }
    }
}

fn print(out: &mut impl Write, stats: &Stats) -> Result<(), CliError> {
    for SessionSums { id, model, sums, children } in &stats.sessions {
        block(out, &format!("{id}  {model}"), sums)?;
        if let Some(spent) = children {
            let seconds = Duration::from_millis(spent.elapsed_ms).as_secs_f64();
            let line = usage_line(&spent.usage);
            writeln!(out, "  sub-agents, not in it: {line}; cost ${:.4}; {seconds:.1} s", spent.cost_usd())?;
        }
    }
    if stats.sessions.len() > 1 {
        for (model, sums) in &stats.models {
            block(out, &format!("all of {model}"), sums)?;
        }
    }
    if stats.models.len() > 1 {
        block(out, "all", &stats.total)?;
    }
    Ok(())
}

fn block(out: &mut impl Write, name: &str, sums: &Sums) -> Result<(), CliError> {
    let reasons: Vec<String> =
        sums.reasons.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
    let rate = sums.hit_rate.map_or_else(|| "-".to_owned(), |rate| format!("{:.1} %", rate * 100.0));
    let cost = sums.cost_usd.map_or_else(|| "not known".to_owned(), |usd| format!("${usd:.4}"));
    writeln!(out, "{name}")?;
    writeln!(out, "  turns {}, steps {}; {}", sums.turns, sums.steps, reasons.join(", "))?;
    writeln!(out, "  {}", usage_line(&sums.usage))?;
    writeln!(out, "  from the cache {rate}; cost {cost}")?;
    Ok(())
}
