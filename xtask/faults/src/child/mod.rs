//! The agent: put together as any program would, it plays its part of a plot and ends, if it is let.

mod notes;
mod tools;
mod trip;
mod watched;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use agent::{
    Agent, ApiKey, AskLater, Clock, HttpConfig, HttpModel, PermissionMode, Permissions, Reply, Run, Session,
    SessionId, SqliteOptions, SqliteStore, SystemClock, TurnEnd, Vendor, Wait,
};
use agent_core::{Entry, History, InputRequest};
use agent_store::Store;
use serde::{Deserialize, Serialize};

use crate::Fault;
use crate::place::Place;
use crate::plot::{Phase, Plot};
use notes::Notes;
pub(crate) use tools::idempotent;
use trip::Trip;
use watched::Watched;

/// What a process is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) plot: Plot,
    pub(crate) phase: Phase,
    /// The folder with `work`, `data` and the notes.
    pub(crate) home: PathBuf,
    pub(crate) base_url: String,
    pub(crate) kill: Option<(Place, u64)>,
    pub(crate) sabotage: Option<Sabotage>,
    /// How far its clock is ahead.
    pub(crate) shift_ms: i64,
    pub(crate) max_bytes: Option<u64>,
}

/// What is broken on purpose, so that the checks are seen to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Sabotage {
    /// Results of calls are not journaled.
    Results,
    /// That a call is about to run is not journaled.
    Intents,
}

/// The one session of every plot: ids of requests depend on it.
pub(crate) const SESSION: &str = "s";
/// The notes of a home.
pub(crate) const NOTES: &str = "notes.log";

pub(crate) fn run(job: &str) -> Result<(), Fault> {
    let job: Job = serde_json::from_str(job)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let trip = Arc::new(Trip::new(job.kill));
        let options = SqliteOptions { max_bytes: job.max_bytes };
        let inner = SqliteStore::open_with(&job.home.join("data"), &options)?;
        let notes = Notes(job.home.join(NOTES));
        let store = Watched { inner, trip: trip.clone(), notes, sabotage: job.sabotage };
        let agent = agent(&job, &store)?;
        play(&job, &agent.session(SessionId::new(SESSION)?), &store).await?;
        // Which points there are is told by a process that passed them all.
        Ok(writeln!(std::io::stdout(), "{}", serde_json::to_string(&trip.counts())?)?)
    })
}

fn agent(job: &Job, store: &Watched) -> Result<Agent, Fault> {
    let mode = if job.plot == Plot::Park { PermissionMode::default() } else { PermissionMode::Bypass };
    let model = HttpModel::new(HttpConfig {
        vendor: Vendor::named("anthropic").ok_or("there is no vendor anthropic")?,
        base_url: Some(job.base_url.clone()),
        api_key: ApiKey::new("simulated"),
        model: "claude-sonnet-4-5".to_owned(),
        ..HttpConfig::default()
    })?;
    Ok(Agent::builder()
        .model(model)
        .store(store.clone())
        .system("You keep a garden's books.")
        .tools(tools::set(&job.home.join("work"), &store.trip, &store.notes)?)
        .permissions(Permissions { mode, ..Permissions::default() })
        .asker(AskLater)
        .clock(Shifted(job.shift_ms))
        .build()?)
}

/// What a program has to know to go on.
struct Stand {
    /// Messages of the user that are stored.
    said: usize,
    is_open: bool,
    requests: Vec<InputRequest>,
}

async fn stand(store: &impl Store) -> Result<Stand, Fault> {
    let Some(record) = store.load(&SessionId::new(SESSION)?).await? else {
        return Ok(Stand { said: 0, is_open: false, requests: Vec::new() });
    };
    let (history, _) = History::load(&record.entries)?;
    // One whose reply was taken is open no more, although no commit has used the reply yet.
    let requests = store.state(&record.meta.id).await?.map(|state| state.open_requests()).unwrap_or_default();
    Ok(Stand {
        said: history.entries().iter().filter(|entry| matches!(entry, Entry::User(_))).count(),
        is_open: record.checkpoint.turn.is_some(),
        requests,
    })
}

async fn play(job: &Job, session: &Session, store: &impl Store) -> Result<(), Fault> {
    // Each round sends, answers or resumes; a plot takes fewer.
    for _ in 0..20 {
        let stand = stand(store).await?;
        let run = match stand.requests.first() {
            Some(_) if job.phase == Phase::Play => return Ok(()),
            Some(request) => session
                .respond(&request.id, reply_to(request))
                .await?
                .run()
                .ok_or("another worker has the session")?,
            None if stand.is_open => session.resume().await?,
            None => match job.plot.messages().get(stand.said) {
                Some(message) => session.send(*message).await?,
                None => return Ok(()),
            },
        };
        let end = until_asked_to_end(run).await?;
        if let Some(error) = end.error {
            return Err(format!("the turn ended with {:?}: {error}", end.reason).into());
        }
        if end.reason == agent::TerminalReason::Aborted {
            return Ok(());
        }
    }
    Err("the plot does not come to its end".into())
}

/// As `agent run` does: a request to end stops the turn, which is stored as such.
async fn until_asked_to_end(run: Run) -> Result<TurnEnd, Fault> {
    let mut asked = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let cancel = run.cancel();
    let mut end = std::pin::pin!(run.finish());
    loop {
        tokio::select! {
            end = &mut end => return Ok(end?),
            _ = asked.recv() => cancel.cancel(),
        }
    }
}

fn reply_to(request: &InputRequest) -> Reply {
    match &request.wait {
        Wait::Approval(_) => Reply::Allow,
        Wait::Question(_) => Reply::Answer(vec!["tulips".to_owned()]),
        Wait::Authorization(_) | Wait::Action(_) | Wait::ClientTool { .. } => Reply::Decline(None),
    }
}

/// A clock that was set wrong.
#[derive(Debug)]
struct Shifted(i64);

impl Clock for Shifted {
    fn now_ms(&self) -> i64 {
        SystemClock.now_ms().saturating_add(self.0)
    }
}
