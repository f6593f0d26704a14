//! What is around a scenario's agent: the provider, the time, and the processes that come and go.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use agent_cache::{CacheRules, RuleBook};
use agent_core::RawJson;
use agent_testkit::{Pick, RecordedRequest, Served, SimCache, SimClock, SimOptions, SimProvider, Source};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};

use super::play::{Job, Told};
use super::scenario::Scenario;
use crate::error::CliError;

/// How a scenario is lived through. What differs here must make no difference in a body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Life {
    /// In findings.
    pub(crate) name: &'static str,
    /// Whether processes are killed where the scenario says so.
    pub(crate) restarts: bool,
    /// Turns the order in which dynamic tools come.
    pub(crate) turned: usize,
    /// How much later it begins.
    pub(crate) later_ms: i64,
    /// Locale and time zone of its processes.
    pub(crate) place: (&'static str, &'static str),
}

/// What was asked in a life, and what was answered.
#[derive(Debug)]
pub(crate) struct Lived {
    pub(crate) requests: Vec<RecordedRequest>,
    pub(crate) served: Vec<Served>,
    /// When each request was sent; none for one that was refused.
    pub(crate) at: Vec<Duration>,
    /// What went wrong on the way.
    pub(crate) failure: Option<String>,
}

/// A running process and the lines to it.
struct Process {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<tokio::process::ChildStdout>,
}

/// Lives through a scenario in as many processes as it takes.
pub(crate) async fn live(scenario: &Scenario, life: Life) -> Result<Lived, CliError> {
    let clock = SimClock::manual();
    let cache = SimCache {
        rules: book(scenario)?,
        clock: clock.clone(),
        provider: Some(scenario.provider_model().0.to_owned()),
    };
    // What a compaction took away is not counted any more, so that answers come one after the other.
    let compacts = scenario.turns.iter().flat_map(|turn| &turn.steps).any(|step| step.beside)
        || scenario.window.is_some();
    let options = SimOptions {
        cache,
        delta_bytes: DELTA,
        pick: if compacts { Pick::InOrder } else { Pick::ByHistory },
        context_window: scenario.window.map(|window| window.context.into()),
        ..SimOptions::default()
    };
    let sim = SimProvider::start_with(Source::Script(scenario.script()), options)?;
    let data = tempfile::tempdir().map_err(CliError::Runtime)?;
    let stops = if life.restarts { scenario.restart_before.as_slice() } else { &[] };
    let (mut at, mut failure) = (Vec::new(), None);
    for process in 0..=stops.len() {
        let passed = i64::try_from(clock.now().as_millis()).unwrap_or(i64::MAX);
        let job = Job {
            scenario: scenario.clone(),
            base_url: sim.base_url(),
            data: data.path().display().to_string(),
            now_ms: scenario.clock.start_ms.saturating_add(life.later_ms).saturating_add(passed),
            answered: at.len(),
            stop_before: stops.get(process).map(|request| request - 1),
            turned: life.turned + process,
        };
        failure = Process::start(&job, life.place).await?.listen(&clock, &mut at).await?;
        if failure.is_some() {
            break;
        }
    }
    if failure.is_none() {
        failure = sim.check_complete().err().map(|error| error.to_string());
    }
    let (requests, served) = (sim.requests(), sim.all_served());
    if let Some((problem, said)) = failure.as_mut().zip(served.last().and_then(|it| it.error.as_deref())) {
        problem.push_str(": the provider said ");
        problem.push_str(said);
    }
    sim.shutdown().await;
    Ok(Lived { requests, served, at, failure })
}

impl Process {
    async fn start(job: &Job, (locale, zone): (&str, &str)) -> Result<Self, CliError> {
        let program = std::env::current_exe().map_err(CliError::Runtime)?;
        let mut command = Command::new(program);
        command.args(["cache", "play"]).env_clear().env("LC_ALL", locale).env("TZ", zone);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().map_err(CliError::Runtime)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let Some((mut stdin, stdout)) = stdin.zip(stdout) else {
            return Err(CliError::Runtime(std::io::ErrorKind::BrokenPipe.into()));
        };
        let mut line = serde_json::to_string(job)?;
        line.push('\n');
        stdin.write_all(line.as_bytes()).await.map_err(CliError::Runtime)?;
        Ok(Self { child, stdin, stdout: BufReader::new(stdout) })
    }

    /// Follows it to its end, or to where it is killed. Gives what went wrong.
    async fn listen(mut self, clock: &SimClock, at: &mut Vec<Duration>) -> Result<Option<String>, CliError> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.stdout.read_line(&mut line).await.map_err(CliError::Runtime)? == 0 {
                let status = self.child.wait().await.map_err(CliError::Runtime)?;
                return Ok(Some(format!("its process ended early ({status}); standard error says why")));
            }
            match serde_json::from_str(&line)? {
                Told::Answered(ms) => {
                    at.push(clock.now());
                    clock.advance(Duration::from_millis(ms));
                }
                Told::Passed(ms) => clock.advance(Duration::from_millis(ms)),
                Told::Stopped => {
                    self.child.kill().await.map_err(CliError::Runtime)?;
                    return Ok(None);
                }
                Told::Finished => return self.end(None).await,
                Told::Failed(problem) => return self.end(Some(problem)).await,
            }
            self.stdin.write_all(b"\n").await.map_err(CliError::Runtime)?;
        }
    }

    /// Lets it go, and waits until it is gone.
    async fn end(mut self, problem: Option<String>) -> Result<Option<String>, CliError> {
        self.stdin.write_all(b"\n").await.map_err(CliError::Runtime)?;
        self.child.wait().await.map_err(CliError::Runtime)?;
        Ok(problem)
    }
}

/// The built-in rules with those of the scenario over them.
pub(crate) fn book(scenario: &Scenario) -> Result<RuleBook, CliError> {
    let Some(fields) = &scenario.rules else { return Ok(RuleBook::builtin()) };
    let (provider, model) = scenario.provider_model();
    let mut entry: BTreeMap<String, RawJson> = fields.to()?;
    for (key, value) in [("provider", provider), ("model", model), ("source", "the scenario")] {
        entry.insert(key.to_owned(), RawJson::of(value)?);
    }
    let table = serde_json::json!({"as_of": "2026-11-30", "rules": []}).to_string();
    let table = table.replace("[]", &format!("[{}]", serde_json::to_string(&entry)?));
    Ok(RuleBook::builtin().with_overrides(&table)?)
}

/// The rules for the scenario's model.
pub(crate) fn rules(scenario: &Scenario) -> Result<CacheRules, CliError> {
    let (provider, model) = scenario.provider_model();
    Ok(book(scenario)?.rules(provider, model))
}

/// Bytes of a delta: scenarios are about bodies, not about streams.
const DELTA: usize = 4_096;
