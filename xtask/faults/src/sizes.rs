//! What a session needs on disk as it grows, and what it costs to write a step and to load the whole.

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use agent::{
    Access, Agent, ModelProfile, PermissionMode, Permissions, SqliteStore, ToolConfig, ToolSet, step_count,
};
use agent_core::{
    Cancel, Checkpoint, Commit, Encoder, Entry, History, LanguageModel, ModelError, ModelStream, Outgoing,
    Revision, SessionId, SessionMeta, UserMessage,
};
use agent_providers::{ToolNames, WireFormat};
use agent_store::Store;
use agent_testkit::{Reply, ScriptedModel};
use async_trait::async_trait;
use rusqlite::Connection;

use crate::Fault;
use crate::figures::{Chance, Spread};
use crate::look::DATABASE;

const LENGTHS: [usize; 3] = [10, 100, 1_000];
/// Bytes of each result.
const RESULT: usize = 4_096;
const MESSAGES: usize = 5_000;
const MESSAGE: usize = 2_048;
const REPEATS: usize = 9;

/// Bytes of a step at 1,000 by those at 100.
const MOST_GROWTH: f64 = 1.1;
/// Bytes on disk by bytes of results.
const MOST_BYTES: f64 = 2.0;
/// A step at the end of a long session by one at its beginning.
const MOST_TIME: f64 = 1.5;
/// Loading by reading the rows.
const MOST_LOAD: f64 = 3.0;

pub(crate) async fn measure(out: &mut dyn Write) -> Result<Vec<String>, Fault> {
    let mut faults = Vec::new();
    let mut per_step = Vec::new();
    for steps in LENGTHS {
        let dir = tempfile::tempdir()?;
        let ticks = session(dir.path(), steps).await?;
        let bytes = on_disk(dir.path())?;
        let payload = steps * RESULT;
        let by_payload = ratio(bytes, payload);
        per_step.push(ratio(bytes, steps));
        let tenth = (steps / 10).max(2);
        let early = middle(ticks.get(..tenth).unwrap_or(&ticks));
        let late = middle(ticks.get(ticks.len().saturating_sub(tenth)..).unwrap_or(&ticks));
        writeln!(
            out,
            "{steps:>5} steps of {RESULT} bytes: {bytes} bytes, {:.0} a step, {by_payload:.2} times the results; a step takes {:.2} ms at the beginning and {:.2} ms at the end",
            ratio(bytes, steps),
            ms(early),
            ms(late),
        )?;
        if steps == 1_000 {
            hold(&mut faults, "bytes by the results of 1,000 steps", by_payload, MOST_BYTES);
            hold(
                &mut faults,
                "time of a step at the end by one at the beginning",
                ms(late) / ms(early),
                MOST_TIME,
            );
        }
    }
    if let [_, hundred, thousand] = per_step.as_slice() {
        hold(&mut faults, "bytes a step at 1,000 by those at 100", thousand / hundred, MOST_GROWTH);
    }
    let (rows, load, resume) = loading().await?;
    writeln!(
        out,
        "{MESSAGES} messages of {MESSAGE} bytes: rows read in {:.1} ms, loaded in {:.1} ms, with the history built in {:.1} ms",
        ms(rows),
        ms(load),
        ms(resume),
    )?;
    hold(&mut faults, "loading by reading the rows", ms(load) / ms(rows), MOST_LOAD);
    Ok(faults)
}

fn hold(faults: &mut Vec<String>, what: &str, found: f64, most: f64) {
    // What is no number holds nothing.
    if found.is_nan() || found > most {
        faults.push(format!("{what}: {found:.2} times, at most {most} are allowed"));
    }
}

fn ratio(bytes: usize, by: usize) -> f64 {
    bytes as f64 / by as f64
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn middle(times: &[Duration]) -> Duration {
    Spread::of(times.to_vec()).map_or(Duration::ZERO, |spread| spread.p50)
}

/// Plays a session of so many calls; how long each step took, from one call of the tool to the next.
async fn session(dir: &Path, steps: usize) -> Result<Vec<Duration>, Fault> {
    let ticks: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let (noted, chance) = (ticks.clone(), Arc::new(Mutex::new(Chance::new(1))));
    let page = ToolConfig::new("page", "Gives a page.", Access::Read, move |_, _: Nothing| {
        noted.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
        let text = chance.lock().unwrap_or_else(PoisonError::into_inner).text(RESULT);
        async move { Ok(text) }
    });
    let mut replies: Vec<Reply> = (0..steps).map(|_| Reply::tool("page", "{}")).collect();
    replies.push(Reply::text("Done."));
    let agent = Agent::builder()
        .model(Forgetful::new(replies))
        .store(SqliteStore::open(dir)?)
        .tools(ToolSet::builder().with(page).freeze()?)
        .permissions(Permissions { mode: PermissionMode::Bypass, ..Permissions::default() })
        .stop(step_count(u32::try_from(steps)?.saturating_add(2)))
        .build()?;
    let end = agent.session(SessionId::new("s")?).send("Begin.").await?.finish().await?;
    if end.text != "Done." {
        return Err(format!("the session of {steps} steps ended with {:?}", end.reason).into());
    }
    let ticks = ticks.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(ticks.windows(2).filter_map(|pair| Some(pair.last()?.duration_since(*pair.first()?))).collect())
}

/// The input of a tool that wants nothing.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// All files of the store, closed.
fn on_disk(dir: &Path) -> Result<usize, Fault> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        let data = entry?.metadata()?;
        bytes += if data.is_file() { usize::try_from(data.len())? } else { 0 };
    }
    Ok(bytes)
}

/// How long it takes to read the rows, to load the session, and to build its history too.
async fn loading() -> Result<(Duration, Duration, Duration), Fault> {
    let dir = tempfile::tempdir()?;
    let store = SqliteStore::open(dir.path())?;
    let id = SessionId::new("s")?;
    let lease = store.lease(&id).await?;
    let model = "any/model".to_owned();
    let meta =
        SessionMeta { id: id.clone(), created_ms: 0, model, system: vec![], static_blocks: 0, tools: vec![] };
    let checkpoint = Checkpoint::default();
    let mut expect = store.create(&lease, &meta, &checkpoint).await?;
    let mut chance = Chance::new(2);
    for _ in 0..MESSAGES / 10 {
        let mut entries = Vec::new();
        for _ in 0..10 {
            entries.push(Entry::User(UserMessage::text(chance.text(MESSAGE))?));
        }
        expect = add(&store, &lease, expect, &entries).await?;
    }
    let db = Connection::open(dir.path().join(DATABASE))?;
    let (mut rows, mut loads, mut resumes) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        let start = Instant::now();
        let read = bodies(&db, "SELECT body FROM entries ORDER BY session, seq")?;
        let parts = bodies(&db, "SELECT body FROM entry_parts ORDER BY session, seq, part")?;
        rows.push(start.elapsed());
        let start = Instant::now();
        let record = store.load(&id).await?.ok_or("the session is gone")?;
        loads.push(start.elapsed());
        let (history, _) = History::load(&record.entries)?;
        resumes.push(start.elapsed());
        let bytes = [read.as_slice(), &parts].concat().iter().map(Vec::len).sum::<usize>();
        let loaded = record.entries.iter().map(String::len).sum::<usize>();
        if (read.len(), history.len(), bytes) != (MESSAGES, MESSAGES, loaded) {
            return Err(format!(
                "{bytes} bytes in {} rows, {loaded} in {} entries",
                read.len(),
                history.len()
            )
            .into());
        }
    }
    Ok((middle(&rows), middle(&loads), middle(&resumes)))
}

fn bodies(db: &Connection, query: &str) -> Result<Vec<Vec<u8>>, Fault> {
    let mut query = db.prepare(query)?;
    Ok(query.query_map((), |row| row.get(0))?.collect::<Result<_, _>>()?)
}

async fn add(
    store: &SqliteStore,
    lease: &agent_store::Lease,
    expect: Revision,
    entries: &[Entry],
) -> Result<Revision, Fault> {
    let checkpoint = &Checkpoint::default();
    let commit = Commit {
        expect,
        entries,
        checkpoint,
        usage: None,
        events: &[],
        consumed: &[],
        terminal: None,
        now_ms: 1,
    };
    Ok(store.commit(lease, commit).await?.revision)
}

/// A scripted model behind the real encoder, which keeps no request: those of a long session would fill the memory.
#[derive(Debug)]
struct Forgetful {
    model: ScriptedModel,
    profile: ModelProfile,
}

impl Forgetful {
    fn new(replies: Vec<Reply>) -> Self {
        let model = ScriptedModel::new(replies);
        // Nothing is compacted away.
        let profile = ModelProfile { context_window: 1_000_000_000, ..model.profile().clone() };
        Self { model, profile }
    }
}

#[async_trait]
impl LanguageModel for Forgetful {
    fn profile(&self) -> &ModelProfile {
        &self.profile
    }

    fn encoder(&self) -> Box<dyn Encoder> {
        agent_providers::encoder(&WireFormat::Anthropic.into(), self.profile.clone(), ToolNames::default())
    }

    async fn stream(&self, request: Outgoing, cancel: &Cancel) -> Result<ModelStream, ModelError> {
        let forgotten = Outgoing { stream: request.stream, ..Outgoing::default() };
        self.model.stream(forgotten, cancel).await
    }
}
