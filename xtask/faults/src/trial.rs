//! One home, one simulated provider, and the processes that play on them one after the other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use agent_testkit::{SimOptions, SimProvider, Source};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};

use crate::Fault;
use crate::check::Left;
use crate::child::{Job, Sabotage};
use crate::look::{self, Note, Picture};
use crate::place::Place;
use crate::plot::{Phase, Plot};

/// A trial: its folder goes away with it.
pub(crate) struct Trial {
    home: TempDir,
    pub(crate) sim: SimProvider,
    plot: Plot,
    sabotage: Option<Sabotage>,
    /// Processes so far.
    runs: usize,
    /// When the last one was killed, until a model call of a later one arrives.
    killed: Option<Instant>,
    /// From a kill to the first model call of the next process.
    pub(crate) recoveries: Vec<Duration>,
    pub(crate) kills: Vec<Left>,
}

/// All that is compared of a trial.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scene {
    pub(crate) picture: Option<Picture>,
    pub(crate) notes: Vec<Note>,
    pub(crate) files: BTreeMap<String, String>,
}

/// How a process ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// With success; the points that it passed, by kind.
    Done(Vec<u64>),
    Killed,
    /// What it said of its failure.
    Failed(String),
}

/// What differs between processes of a trial.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct How {
    pub(crate) kill: Option<(Place, u64)>,
    /// Kills it from outside after this time.
    pub(crate) after: Option<Duration>,
    pub(crate) shift_ms: i64,
    pub(crate) max_bytes: Option<u64>,
}

impl Trial {
    pub(crate) fn new(plot: Plot, sabotage: Option<Sabotage>) -> Result<Self, Fault> {
        Self::paced(plot, sabotage, None)
    }

    /// A model that pauses before each event of an answer.
    pub(crate) fn paced(
        plot: Plot,
        sabotage: Option<Sabotage>,
        pause_ms: Option<u64>,
    ) -> Result<Self, Fault> {
        let home = tempfile::tempdir()?;
        for folder in ["work", "data"] {
            std::fs::create_dir_all(home.path().join(folder))?;
        }
        std::fs::write(home.path().join("work").join("notes.txt"), "one bed, two rows\n")?;
        let sim = SimProvider::start_with(Source::Script(plot.script(pause_ms)), SimOptions::default())?;
        let (recoveries, kills) = (Vec::new(), Vec::new());
        Ok(Self { home, sim, plot, sabotage, runs: 0, killed: None, recoveries, kills })
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    pub(crate) fn path(&self) -> &Path {
        self.home.path()
    }

    /// Starts a process and says under which path its model calls arrive.
    pub(crate) fn start(&mut self, phase: Phase, how: How) -> Result<(Child, String), Fault> {
        self.runs += 1;
        let path = format!("/run{}/", self.runs);
        let job = Job {
            plot: self.plot,
            phase,
            home: self.home.path().to_owned(),
            base_url: format!("{}{}", self.sim.base_url(), path.trim_end_matches('/')),
            kill: how.kill,
            sabotage: self.sabotage,
            shift_ms: how.shift_ms,
            max_bytes: how.max_bytes,
        };
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["child", &serde_json::to_string(&job)?]).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        Ok((command.spawn()?, path))
    }

    /// Runs a process to its end, whatever that is, and notes what a killed one left.
    pub(crate) async fn run(&mut self, phase: Phase, how: How) -> Result<End, Fault> {
        let (mut child, path) = self.start(phase, how)?;
        let watched = watch(&self.sim, &path, &mut child, how.after);
        let Ok(watched) = tokio::time::timeout(LONGEST, watched).await else {
            return Err(format!("a process of the plot `{}` did not end", self.plot.name()).into());
        };
        let (status, asked) = watched?;
        // A process that goes on without a model call leaves nothing to measure.
        let killed = self.killed.take();
        self.recoveries.extend(killed.zip(asked).map(|(killed, asked)| asked.duration_since(killed)));
        if status.code().is_none() {
            self.note_kill(Instant::now()).await?;
            return Ok(End::Killed);
        }
        let (out, err) = (said(child.stdout.take()).await?, said(child.stderr.take()).await?);
        match status.success() {
            true => Ok(End::Done(serde_json::from_str(out.lines().last().unwrap_or_default())?)),
            false => Ok(End::Failed(err.trim().to_owned())),
        }
    }

    /// Keeps what a killed process left; the files themselves are not opened.
    async fn note_kill(&mut self, at: Instant) -> Result<(), Fault> {
        let copy = self.home.path().join(format!("left{}", self.runs));
        look::copy(&self.data(), &copy)?;
        let notes = look::notes(self.path())?.len();
        let picture = look::look(&copy).await?;
        self.kills.push(Left { picture, notes });
        // Looking is no part of the recovery.
        self.killed = at.checked_add(at.elapsed());
        Ok(())
    }

    pub(crate) async fn scene(&self) -> Result<Scene, Fault> {
        let mut files = BTreeMap::new();
        for entry in std::fs::read_dir(self.home.path().join("work"))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            files.insert(name, std::fs::read_to_string(entry.path())?);
        }
        Ok(Scene { picture: look::look(&self.data()).await?, notes: look::notes(self.path())?, files })
    }
}

/// Waits for the end of a process, which it kills after a while if it is told to; when its first model call arrived.
async fn watch(
    sim: &SimProvider,
    path: &str,
    child: &mut Child,
    after: Option<Duration>,
) -> Result<(ExitStatus, Option<Instant>), Fault> {
    let mut arrived = std::pin::pin!(first_call(sim, path));
    let mut timer = std::pin::pin!(tokio::time::sleep(after.unwrap_or(LONGEST)));
    let (mut asked, mut is_over) = (None, after.is_none());
    loop {
        tokio::select! {
            biased;
            at = &mut arrived, if asked.is_none() => asked = Some(at),
            status = child.wait() => return Ok((status?, asked)),
            () = &mut timer, if !is_over => {
                is_over = true;
                child.start_kill()?;
            }
        }
    }
}

/// When the first model call under a path arrives.
async fn first_call(sim: &SimProvider, path: &str) -> Instant {
    let mut number = sim.requests().len();
    loop {
        let request = sim.request(number).await;
        if request.path.starts_with(path) {
            return Instant::now();
        }
        number += 1;
    }
}

async fn said(output: Option<impl AsyncReadExt + Unpin>) -> Result<String, Fault> {
    let mut text = String::new();
    if let Some(mut output) = output {
        output.read_to_string(&mut text).await?;
    }
    Ok(text)
}

/// More than a locked database takes to be given up.
const LONGEST: Duration = Duration::from_secs(60);
