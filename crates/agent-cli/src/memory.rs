//! The memories of a run: where they are, and what became of them when it ends.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agent::memory::{
    ExtractionOutcome, MemoryConfig, MemoryDir, MemoryExtractor, MemoryPlace, TrustedSource, project_root,
};
use agent::{Agent, HttpConfig, HttpModel, NotesPolicy};

use crate::args::AgentArgs;
use crate::cmd::signals::Signals;
use crate::error::CliError;
use crate::settings::MemorySaid;
use crate::tell;

/// Memories, where the command line or trusted settings want them. `--bare` begins without those of settings.
pub(crate) fn of_run(
    args: &AgentArgs,
    said: MemorySaid,
    data: &Path,
    models: &HttpConfig,
) -> Result<Option<MemoryConfig>, CliError> {
    let Some(place) = place(args, said, data)? else { return Ok(None) };
    let memory = MemoryConfig::open(&place, data)?.noting(NotesPolicy::default());
    Ok(Some(match args.kept.memory_model.clone() {
        Some(model) => memory.extracting_or_by(HttpModel::new(HttpConfig { model, ..models.clone() })?),
        None => memory.extracting(),
    }))
}

/// The same for a command that only looks: nothing is made on disk.
pub(crate) fn of_look(
    args: &AgentArgs,
    said: MemorySaid,
    data: &Path,
) -> Result<Option<MemoryConfig>, CliError> {
    let Some(place) = place(args, said, data)? else { return Ok(None) };
    if place.path.exists() {
        return Ok(Some(MemoryConfig::open(&place, data)?));
    }
    // A directory that is gone when this returns has no memories, which is what there is.
    let none = tempfile::tempdir().map_err(CliError::Runtime)?;
    Ok(Some(MemoryConfig::new(MemoryDir::open(none.path())?, data)))
}

fn place(args: &AgentArgs, said: MemorySaid, data: &Path) -> Result<Option<MemoryPlace>, CliError> {
    let given = args.kept.memory || args.kept.memory_dir.is_some();
    if !given && (args.bare || !said.on) {
        return Ok(None);
    }
    let data = std::path::absolute(data).map_err(CliError::Runtime)?;
    let dir =
        args.kept.memory_dir.as_deref().map(std::path::absolute).transpose().map_err(CliError::Runtime)?;
    let all: Vec<_> = dir.map(|dir| (TrustedSource::Override, dir)).into_iter().chain(said.dirs).collect();
    Ok(Some(MemoryPlace::resolve(&all, &data, &project_root(&args.cwd))?))
}

/// Waits for what is done behind the turn, for a while or until the user or the system says stop, and tells what came of it.
pub(crate) async fn leave(agent: &Agent, extractor: Option<&Arc<MemoryExtractor>>) -> io::Result<()> {
    let background = &agent.harness().config().background;
    if background.pending() > 0 {
        let mut signals = Signals::listen()?;
        let stop = async {
            tokio::select! {
                () = tokio::time::sleep(PATIENCE) => {}
                () = signals.next() => {}
            }
            // What is told to stop winds up by itself; what does not is dropped.
            background.cancel().cancel();
            tokio::time::sleep(GRACE).await;
        };
        let in_time = tokio::select! {
            drained = agent.drain(PATIENCE + GRACE) => drained.stopped == 0,
            () = stop => false,
        };
        if !in_time {
            tell::note("work behind the turn did not end in time and was dropped")?;
        }
    }
    let Some(last) = extractor.and_then(|extractor| extractor.status().get().last) else { return Ok(()) };
    if let ExtractionOutcome::Failed(why) = &last.outcome {
        return tell::note(&format!(
            "memories were not extracted: {why}; what was looked at is looked at behind the next turn"
        ));
    }
    if !last.is_success() {
        return tell::note(
            "the extraction of memories was stopped; what it looked at is looked at behind the next turn",
        );
    }
    if last.written.is_empty() {
        return Ok(());
    }
    tell::note(&format!("kept for later sessions: {}", last.written.join(", ")))
}

/// How long the program waits for work behind a turn before it ends.
const PATIENCE: Duration = Duration::from_secs(60);
/// What winding up may take beyond it.
const GRACE: Duration = Duration::from_secs(5);
