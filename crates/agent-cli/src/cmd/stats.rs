//! `agent stats`: what stored sessions cost, and how their turns ended.

use std::collections::BTreeMap;
use std::io::{Write, stdout};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use agent::memory::AutoFile;
use agent::{EventBody, SessionId, Store, Usage};
use agent_core::{Event, Prices, SessionSummary, Spent};
use agent_memory::{MemoryError, NotesFile};
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
    /// How many turns each stop condition ended.
    stopped_by: BTreeMap<String, u64>,
    /// Work behind turns, such as round summaries, session notes and the extraction of memories: a part of no turn, and not of
    /// `usage` and `cost_usd`.
    background: Background,
}

#[derive(Debug, Clone, Default, Serialize)]
struct Background {
    usage: Usage,
    /// US dollars; none where a price is not known.
    cost_usd: Option<f64>,
}

#[derive(Debug, Serialize)]
struct SessionSums {
    id: SessionId,
    model: String,
    #[serde(flatten)]
    sums: Sums,
    /// What each model had of it.
    #[serde(skip)]
    parts: BTreeMap<String, Sums>,
    /// What its sub-agents used, which is in their own sessions and not in its sums.
    #[serde(skip_serializing_if = "Option::is_none")]
    children: Option<Spent>,
}

#[derive(Debug, Serialize)]
struct Stats {
    sessions: Vec<SessionSums>,
    /// Each step counts for the model that was asked, and a turn for that of its last step. What belongs to no step counts for
    /// the model that its session began with.
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
                    sessions.push(of_session((&store, &data), &catalog, line).await?);
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
    (store, data): (&impl Store, &Path),
    catalog: &Catalog,
    line: SessionSummary,
) -> Result<SessionSums, CliError> {
    let mut parts = Parts::default();
    let mut model = line.model.clone();
    for event in store.events(&line.id, 0).await? {
        parts.take(&mut model, event, &line.model);
    }
    let mut sums = Sums { turns: line.turns, usage: line.usage, ..Sums::default() };
    let counted = parts.0.values().map(|part| part.turns).sum();
    if let Some(open) = line.turns.checked_sub(counted).filter(|open| *open > 0) {
        let first = parts.of(&line.model);
        first.turns += open;
        first.reasons.insert("open".to_owned(), open);
    }
    // Attempts of steps that came to nothing, and what was asked beside them.
    let beside = parts.0.values().fold(sums.usage.clone(), |left, part| without(&left, &part.usage));
    parts.of(&line.model).usage += &beside;
    for round in store.rounds(&line.id).await? {
        let model = round.model.unwrap_or_else(|| line.model.clone());
        parts.of(&model).background.usage += &round.usage;
    }
    parts.take_beside(NotesFile::new(data, &line.id).usage())?;
    parts.take_beside(AutoFile::new(data, &line.id).read().map(|record| record.usage))?;
    for (model, part) in &mut parts.0 {
        part.price(prices(catalog, model));
        part.hit_rate = part.usage.hit_rate();
    }
    parts.0.retain(|_, part| !part.is_nothing());
    let mut sum = Sums::default();
    parts.0.values().for_each(|part| sum.add(part));
    sums = Sums { hit_rate: sums.usage.hit_rate(), usage: sums.usage, turns: sums.turns, ..sum };
    let state = match store.state(&line.id).await {
        Ok(state) => state,
        Err(error) => {
            writeln!(std::io::stderr(), "agent: {}", plain(&error.to_string()))?;
            None
        }
    };
    let children = state.map(|state| state.checkpoint.children.session).filter(|spent| !spent.is_nothing());
    Ok(SessionSums { id: line.id, model: line.model, sums, parts: parts.0, children })
}

/// What is left of a sum.
fn without(sum: &Usage, part: &Usage) -> Usage {
    Usage {
        input: sum.input.saturating_sub(part.input),
        output: sum.output.saturating_sub(part.output),
        reasoning: sum.reasoning.saturating_sub(part.reasoning),
        cache_read: sum.cache_read.saturating_sub(part.cache_read),
        cache_write_5m: sum.cache_write_5m.saturating_sub(part.cache_write_5m),
        cache_write_1h: sum.cache_write_1h.saturating_sub(part.cache_write_1h),
        raw: None,
    }
}

/// The sums of a session by model.
#[derive(Debug, Default)]
struct Parts(BTreeMap<String, Sums>);

impl Parts {
    fn of(&mut self, model: &str) -> &mut Sums {
        self.0.entry(model.to_owned()).or_default()
    }

    /// Counts an event; `model` is that of the newest step of the turn.
    fn take(&mut self, model: &mut String, event: Event, first: &str) {
        if let EventBody::TurnStarted {} = event.body {
            first.clone_into(model);
        } else if let EventBody::StepCompleted { usage, voided, model: asked, .. } = event.body {
            *model = asked.unwrap_or_else(|| first.to_owned());
            let part = self.of(model);
            part.steps += 1;
            part.usage += &usage;
            part.usage += &voided;
        } else if let EventBody::TurnCompleted { reason, stopped_by, .. } = event.body {
            self.end(model, reason.to_string());
            if let Some(by) = stopped_by {
                *self.of(model).stopped_by.entry(by).or_default() += 1;
            }
        } else if let EventBody::TurnFailed { reason, .. } = event.body {
            self.end(model, reason.to_string());
        }
    }

    /// Counts the runs that wrote the notes of the session. What cannot be read is told, and the rest stands.
    /// Counts what is kept beside a session; what cannot be read is told.
    fn take_beside(&mut self, usage: Result<BTreeMap<String, Usage>, MemoryError>) -> std::io::Result<()> {
        match usage {
            Ok(spent) => {
                for (model, usage) in spent {
                    self.of(&model).background.usage += &usage;
                }
                Ok(())
            }
            Err(error) => writeln!(std::io::stderr(), "agent: {}", plain(&error.to_string())),
        }
    }

    fn end(&mut self, model: &str, reason: String) {
        let part = self.of(model);
        part.turns += 1;
        *part.reasons.entry(reason).or_default() += 1;
    }
}

fn prices(catalog: &Catalog, model: &str) -> Option<Prices> {
    let (provider, name) = model.split_once('/')?;
    catalog.profile(provider, name).prices
}

fn summed(sessions: Vec<SessionSums>) -> Stats {
    let mut models: BTreeMap<String, Sums> = BTreeMap::new();
    let mut total = Sums::default();
    for SessionSums { sums, parts, .. } in &sessions {
        for (model, part) in parts {
            models.entry(model.clone()).or_default().add(part);
        }
        total.add(sums);
    }
    Stats { sessions, models, total }
}

impl Sums {
    fn is_nothing(&self) -> bool {
        let is_unused = self.usage == Usage::default() && self.background.usage == Usage::default();
        self.turns == 0 && self.steps == 0 && is_unused
    }

    fn price(&mut self, prices: Option<Prices>) {
        self.cost_usd = prices.as_ref().map(|prices| prices.cost(&self.usage));
        self.background.cost_usd = prices.map(|prices| prices.cost(&self.background.usage));
    }

    fn add(&mut self, other: &Self) {
        let is_first = self.is_nothing();
        self.cost_usd = both(is_first, self.cost_usd, other.cost_usd);
        self.background.cost_usd = both(is_first, self.background.cost_usd, other.background.cost_usd);
        self.turns += other.turns;
        self.steps += other.steps;
        self.usage += &other.usage;
        self.background.usage += &other.background.usage;
        self.hit_rate = self.usage.hit_rate();
        for (reason, count) in &other.reasons {
            *self.reasons.entry(reason.clone()).or_default() += count;
        }
        for (by, count) in &other.stopped_by {
            *self.stopped_by.entry(by.clone()).or_default() += count;
        }
    }
}

/// A sum of costs: with an unknown part it would look like all of it.
fn both(is_first: bool, sum: Option<f64>, cost: Option<f64>) -> Option<f64> {
    match (sum, cost) {
        (Some(sum), Some(cost)) => Some(sum + cost),
        (None, Some(cost)) if is_first => Some(cost),
        (None, _) | (Some(_), None) => None,
    }
}

fn print(out: &mut impl Write, stats: &Stats) -> Result<(), CliError> {
    for SessionSums { id, model, sums, parts, children } in &stats.sessions {
        block(out, &format!("{id}  {model}"), sums)?;
        for (model, part) in parts.iter().filter(|_| parts.len() > 1) {
            block(out, &format!("{id}, of that {model}"), part)?;
        }
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
    let ends = counts(&sums.reasons);
    let by = if sums.stopped_by.is_empty() {
        String::new()
    } else {
        format!(" (stopped by {})", counts(&sums.stopped_by))
    };
    let rate = sums.hit_rate.map_or_else(|| "-".to_owned(), |rate| format!("{:.1} %", rate * 100.0));
    writeln!(out, "{name}")?;
    writeln!(out, "  turns {}, steps {}; {ends}{by}", sums.turns, sums.steps)?;
    writeln!(out, "  {}", usage_line(&sums.usage))?;
    writeln!(out, "  from the cache {rate}; cost {}", dollars(sums.cost_usd))?;
    let Background { usage, cost_usd } = &sums.background;
    if *usage != Usage::default() {
        writeln!(out, "  background {}; cost {}", usage_line(usage), dollars(*cost_usd))?;
    }
    Ok(())
}

fn counts(of: &BTreeMap<String, u64>) -> String {
    of.iter().map(|(what, count)| format!("{what} {count}")).collect::<Vec<_>>().join(", ")
}

fn dollars(cost: Option<f64>) -> String {
    cost.map_or_else(|| "not known".to_owned(), |usd| format!("${usd:.4}"))
}
