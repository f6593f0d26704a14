//! Extracts memories behind turns, in a run beside the session (requirement C3).

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_core::{
    Entry, EntryId, History, LanguageModel, SessionId, StepRecord, TerminalReason, Text, Usage, UserMessage,
};
use agent_memory::{
    AutoDecision, AutoFile, AutoMemory, AutoRecord, AutoSkip, AutoState, EXTRACTION_STEPS, Extraction,
    MEMORIES, MEMORY_TOOL, MemoryDir, MemoryError, RunClaim, TurnFacts, extraction_denial, extraction_prompt,
    is_memory_write,
};
use agent_tools::Pattern;
use async_trait::async_trait;
use serde::Deserialize;

use super::status::{
    Extracted, ExtractionOutcome, ExtractionSkip, ExtractionStatus, RunningExtraction, SkippedTurn,
};
use super::{ModelChoice, on_disk};
use crate::breaker::Breaker;
use crate::{AfterTurn, AfterTurnCx, ForkedEnd, ForkedRun, Observed, SourceError};

/// Keeps what a turn taught, in a run behind it of at most [`EXTRACTION_STEPS`] steps: it sees the session as it is, may call
/// what only reads, and may write below `/memories` with the tool `memory`, and nothing else.
///
/// One run of a session is at work at a time. Of the turns that end meanwhile the last one is looked at in one more run. Turns
/// in which the agent wrote memories itself are not looked at. How far it came is kept with the session, so that after a restart
/// nothing is looked at twice, and what was stopped is looked at behind the next turn. When three runs in a row fail, nothing
/// more is tried, which is logged and shown.
///
/// It asks the session's own model, which reads the session's prefix from the cache, or the given other one where that costs less by
/// the prices of both. All its state is in the value, and what it is at can be watched.
///
/// ```
/// use std::sync::Arc;
/// use agent_core::SessionId;
/// use agent_harness::{Harness, HarnessConfig, MemoryExtractor};
/// use agent_memory::{MemoryDir, MemoryFiles};
/// use agent_store::MemoryStore;
/// use agent_testkit::{Reply, ScriptedModel};
/// use agent_tools::ToolSet;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let data = tempfile::tempdir()?;
/// let memories = Arc::new(MemoryDir::open(&data.path().join("memory"))?);
/// let extractor = Arc::new(MemoryExtractor::new(memories.clone(), data.path()));
///
/// let call = r#"{"command":"create","path":"/memories/user_name.md",
///     "file_text":"---\nname: user_name\ndescription: Is called Ada\ntype: user\n---\nAda.\n"}"#;
/// let model = ScriptedModel::new(vec![
///     Reply::text("Hello Ada!"),
///     // What the run behind the turn does.
///     Reply::tool("memory", call),
///     Reply::text("Kept the name."),
/// ]);
/// let mut config = HarnessConfig::new(Arc::new(model), Arc::new(MemoryStore::new()));
/// config.tools = ToolSet::builder().with(agent_builtins::memory(MemoryFiles::new(memories.clone()))).freeze()?;
/// config.after_turn = vec![extractor.clone()];
///
/// let agent = Harness::new(config);
/// agent.session(SessionId::new("s")?).send("Hi, I am Ada.").await?.finish().await?;
/// agent.drain(std::time::Duration::from_secs(10)).await;
/// let last = extractor.status().get().last.ok_or("nothing ran")?;
/// assert_eq!(last.written, ["/memories/user_name.md"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct MemoryExtractor {
    memories: Arc<MemoryDir>,
    data: PathBuf,
    other: Option<Arc<dyn LanguageModel>>,
    /// The sessions that runs are at.
    seats: Mutex<BTreeMap<SessionId, Seat>>,
    /// Held while a decision is taken or an end is kept, so that nobody decides on what is being kept.
    order: tokio::sync::Mutex<()>,
    breaker: Breaker,
    status: Observed<ExtractionStatus>,
}

/// A session that a run is at.
struct Seat {
    policy: AutoMemory,
    /// Tokens of its context when its last turn ended.
    tokens: u64,
    /// No other process is at the session meanwhile.
    _claim: RunClaim,
}

/// Frees the seat of a session, also where its run is dropped in the middle: who comes next goes by what is kept on disk.
struct AtWork<'e> {
    extractor: &'e MemoryExtractor,
    /// `None` once the seat is free.
    session: Option<SessionId>,
}

impl MemoryExtractor {
    /// Extracts into these memories, and keeps how far it came below the data directory of the program.
    pub fn new(memories: impl Into<Arc<MemoryDir>>, data: impl Into<PathBuf>) -> Self {
        Self {
            memories: memories.into(),
            data: data.into(),
            other: None,
            seats: Mutex::default(),
            order: tokio::sync::Mutex::default(),
            breaker: Breaker::default(),
            status: Observed::default(),
        }
    }

    /// Asks this model where it costs less than the session's own, although it finds nothing in the cache.
    #[must_use]
    pub fn or_by(mut self, model: Arc<dyn LanguageModel>) -> Self {
        self.other = Some(model);
        self
    }

    /// What it is at, to be read and watched.
    pub fn status(&self) -> &Observed<ExtractionStatus> {
        &self.status
    }

    /// What is to be done behind a turn.
    async fn decide(&self, cx: &AfterTurnCx) -> Result<Option<Extraction>, SourceError> {
        let _order = self.order.lock().await;
        if !self.breaker.allows() {
            self.skipped(cx, ExtractionSkip::Paused);
            return Ok(None);
        }
        if !came_to_rest(cx) {
            self.skipped(cx, ExtractionSkip::NotAtRest);
            return Ok(None);
        }
        let known = self.seats().get(&cx.session).map(|seat| *seat.policy.state());
        let (state, new) = match known {
            Some(state) => (state, None),
            None => {
                let Some(claim) = self.file(&cx.session, |file| file.claim()).await? else {
                    self.skipped(cx, ExtractionSkip::Elsewhere);
                    return Ok(None);
                };
                let state = self.kept_state(&cx.session).await?;
                (state, Some(Seat { policy: AutoMemory::new(state), tokens: 0, _claim: claim }))
            }
        };
        let facts = facts(cx, state.cursor).await?;
        let (decision, cursor) = {
            let mut seats = self.seats();
            seats.extend(new.map(|seat| (cx.session.clone(), seat)));
            // It was freed meanwhile by a run that was dropped; the next turn is looked at.
            let Some(seat) = seats.get_mut(&cx.session) else { return Ok(None) };
            seat.tokens = cx.tokens;
            let decision = seat.policy.turn_ended(facts);
            let cursor = seat.policy.state().cursor;
            if seat.policy.is_idle() {
                seats.remove(&cx.session);
            }
            (decision, cursor)
        };
        if cursor != state.cursor {
            self.file(&cx.session, move |file| file.update(|record| record.state.cursor = cursor)).await?;
        }
        Ok(self.told(cx, decision))
    }

    /// Shows a decision; the run that it begins.
    fn told(&self, cx: &AfterTurnCx, decision: AutoDecision) -> Option<Extraction> {
        let why = match decision {
            AutoDecision::Run(extraction) => return Some(extraction),
            AutoDecision::Pending => ExtractionSkip::Pending,
            AutoDecision::Skip(AutoSkip::NotAtRest) => ExtractionSkip::NotAtRest,
            AutoDecision::Skip(AutoSkip::WroteItself) => ExtractionSkip::WroteItself,
            AutoDecision::Skip(AutoSkip::NothingNew) => ExtractionSkip::NothingNew,
            AutoDecision::Skip(AutoSkip::Idle) => return None,
        };
        self.skipped(cx, why);
        None
    }

    fn skipped(&self, cx: &AfterTurnCx, why: ExtractionSkip) {
        let skipped = SkippedTurn { session: cx.session.clone(), turn: cx.turn, why };
        self.status.update(move |status| status.skipped = Some(skipped));
    }

    /// One run.
    async fn extract(&self, cx: &AfterTurnCx, extraction: Extraction) -> Extracted {
        let tokens = self.seats().get(&cx.session).map_or(cx.tokens, |seat| seat.tokens);
        let own = cx.agent.config().model.profile();
        let other = self.other.as_ref();
        let (choice, is_other) = ModelChoice::of(own, other.map(|model| model.profile()), tokens);
        let running = RunningExtraction { extraction, choice: choice.clone() };
        let session = cx.session.clone();
        self.status.update(move |status| {
            status.running.insert(session, running);
        });
        let model = other.filter(|_| is_other).cloned();
        let ran = match self.asked(cx, extraction).await {
            Ok(message) => {
                let run = ForkedRun {
                    allow: allowed(),
                    reads: true,
                    refusal: Text::new(extraction_denial()),
                    model,
                    max_steps: EXTRACTION_STEPS,
                    cancel: cx.cancel.clone(),
                    ..ForkedRun::new(message)
                };
                cx.agent.session(cx.session.clone()).fork_run(run).await.map_err(|error| error.to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        extracted(cx, (extraction, choice), ran)
    }

    /// What the model is asked: with the memories as they are now, and where what is new begins.
    async fn asked(&self, cx: &AfterTurnCx, extraction: Extraction) -> Result<UserMessage, SourceError> {
        let memories = self.memories.clone();
        let index = on_disk(EXTRACTION, move || memories.index()).await?;
        let since = match extraction.from.position() {
            0 => None,
            _ => behind(cx, extraction.from).await?.iter().find_map(begins),
        };
        let since = since.map_or_else(
            || "Memories were never taken from it: all of it is new.".to_owned(),
            |words| format!("What is new since then begins with the user's message {words:?}."),
        );
        UserMessage::text(format!("{}\n{since}", extraction_prompt(&index))).map_err(broken)
    }

    /// Keeps what came of a run, and says what comes next; where nothing does, the seat is free before another turn is looked
    /// at.
    async fn settle(&self, cx: &AfterTurnCx, end: Extracted) -> Result<Option<Extraction>, SourceError> {
        let _order = self.order.lock().await;
        let next = self.settled(cx, end).await;
        if !matches!(next, Ok(Some(_))) {
            self.seats().remove(&cx.session);
        }
        next
    }

    async fn settled(&self, cx: &AfterTurnCx, end: Extracted) -> Result<Option<Extraction>, SourceError> {
        let (succeeded, spent) = (end.is_success(), (end.choice.model.clone(), end.usage.clone()));
        let to = end.extraction.to;
        let keep = move |record: &mut AutoRecord| {
            record.runs += 1;
            *record.usage.entry(spent.0).or_default() += &spent.1;
            if succeeded {
                record.state.cursor = record.state.cursor.max(to);
            }
        };
        // What is kept beside a session goes with it: one of the same name that begins later must not go by it.
        let is_gone = matches!(cx.agent.config().store.meta(&cx.session).await, Ok(None));
        let kept = if is_gone {
            Ok(())
        } else {
            self.file(&cx.session, move |file| file.update(keep)).await.map(drop)
        };
        let outcome = end.outcome.clone();
        let failed = self.counted(&outcome);
        self.shown(end);
        kept?;
        if outcome == ExtractionOutcome::Stopped {
            return Ok(None);
        }
        let decision = self.seats().get_mut(&cx.session).map(|seat| seat.policy.finished(succeeded));
        let next = decision.and_then(|decision| self.told(cx, decision)).filter(|_| self.breaker.allows());
        match failed {
            // Told at once; what waits is looked at behind the next turn.
            Some(error) if next.is_none() => Err(error),
            Some(error) => {
                tracing::warn!(%error, "a run that extracts memories failed; one more turn waits");
                Ok(next)
            }
            None => Ok(next),
        }
    }

    /// Counts failures in a row; what is told of this one.
    fn counted(&self, outcome: &ExtractionOutcome) -> Option<SourceError> {
        match outcome {
            ExtractionOutcome::Done | ExtractionOutcome::StepLimit => {
                self.breaker.worked();
                None
            }
            ExtractionOutcome::Stopped => None,
            ExtractionOutcome::Failed(why) => {
                let why = if self.breaker.failed() {
                    format!(
                        "{why}; it was the third failure in a row, so no more memories are extracted until the program starts again"
                    )
                } else {
                    why.clone()
                };
                Some(broken(why))
            }
        }
    }

    /// Shows what came of a run.
    fn shown(&self, end: Extracted) {
        self.status.update(move |status| {
            status.running.remove(&end.session);
            status.runs += 1;
            status.failures = match end.outcome {
                ExtractionOutcome::Done | ExtractionOutcome::StepLimit => 0,
                ExtractionOutcome::Stopped => status.failures,
                ExtractionOutcome::Failed(_) => status.failures.saturating_add(1),
            };
            status.last = Some(end);
        });
    }

    /// How far a session was looked at. What is damaged there is looked at again.
    async fn kept_state(&self, session: &SessionId) -> Result<AutoState, SourceError> {
        let read = |file: &AutoFile| match file.read() {
            Err(error @ MemoryError::Record { .. }) => {
                tracing::warn!(%error, "all of the session is looked at again");
                Ok(AutoState::default())
            }
            record => record.map(|record| record.state),
        };
        self.file(session, read).await
    }

    /// Works on what is kept of a session.
    async fn file<T: Send + 'static>(
        &self,
        session: &SessionId,
        work: impl FnOnce(&AutoFile) -> Result<T, MemoryError> + Send + 'static,
    ) -> Result<T, SourceError> {
        let file = AutoFile::new(&self.data, session);
        on_disk(EXTRACTION, move || work(&file)).await
    }

    fn seats(&self) -> MutexGuard<'_, BTreeMap<SessionId, Seat>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl AfterTurn for MemoryExtractor {
    fn name(&self) -> &'static str {
        "memory_extraction"
    }

    async fn run(&self, cx: &AfterTurnCx) -> Result<(), SourceError> {
        if cx.agent.config().tools.get(MEMORY_TOOL).is_none() {
            return Err(broken(format!(
                "the agent has no tool `{MEMORY_TOOL}` to write them with; give it one"
            )));
        }
        let Some(first) = self.decide(cx).await? else { return Ok(()) };
        let mut at_work = AtWork { extractor: self, session: Some(cx.session.clone()) };
        let mut next = Some(first);
        while let Some(extraction) = next.filter(|_| !cx.cancel.is_cancelled()) {
            let end = self.extract(cx, extraction).await;
            let settled = self.settle(cx, end).await;
            if !matches!(settled, Ok(Some(_))) {
                // The seat is free, and may be another run's already.
                at_work.session = None;
            }
            next = settled?;
        }
        Ok(())
    }
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        let Some(session) = self.session.take() else { return };
        self.extractor.seats().remove(&session);
        self.extractor.status.update(move |status| {
            status.running.remove(&session);
        });
    }
}

/// Whether the model ended the turn with an answer. A task that a call completed is looked at with the next turn of its session
/// (requirement C3).
fn came_to_rest(cx: &AfterTurnCx) -> bool {
    let last = cx.entries.last().and_then(Entry::as_step);
    cx.reason == TerminalReason::Done && last.is_some_and(|step| step.pairs().next().is_none())
}

/// A turn that came to rest, in facts: only what is behind the cursor is looked at.
async fn facts(cx: &AfterTurnCx, cursor: EntryId) -> Result<TurnFacts, SourceError> {
    let wrote = if cursor < cx.began {
        let entries = behind(cx, cursor).await?;
        let own = cx.next().position().saturating_sub(cursor.position()).min(entries.len());
        wrote(cursor, entries.get(..own).unwrap_or_default())
    } else {
        let skip = cursor.position().saturating_sub(cx.began.position());
        wrote(cursor, cx.entries.get(skip..).unwrap_or_default())
    };
    Ok(TurnFacts { end: cx.next(), came_to_rest: true, wrote })
}

/// The stored entries from there on. The store gives all of them; of those before nothing is made. It comes to that only
/// behind a turn that was not looked at when it ended.
async fn behind(cx: &AfterTurnCx, from: EntryId) -> Result<Vec<Entry>, SourceError> {
    let record = cx.agent.config().store.load(&cx.session).await.map_err(broken)?;
    let entries = record.map(|record| record.entries).unwrap_or_default();
    let (history, _) = History::load(entries.get(from.position()..).unwrap_or_default()).map_err(broken)?;
    Ok(history.entries().to_vec())
}

/// The last entry in which the agent wrote a memory.
fn wrote(from: EntryId, entries: &[Entry]) -> Option<EntryId> {
    let is_write = |entry: &Entry| entry.as_step().is_some_and(|step| written(step).next().is_some());
    entries.iter().rposition(is_write).map(|at| EntryId::at(from.position() + at))
}

/// The paths of memories that a step wrote.
fn written(step: &StepRecord) -> impl Iterator<Item = String> {
    #[derive(Deserialize)]
    struct Paths {
        path: Option<String>,
        new_path: Option<String>,
    }
    step.pairs().filter(|(_, result)| !result.output.is_error()).filter_map(|(call, _)| {
        let input = call.input.json().filter(|input| is_memory_write(&call.name, input))?;
        let Paths { path, new_path } = input.to().ok()?;
        path.or(new_path)
    })
}

/// How a message of the user begins.
fn begins(entry: &Entry) -> Option<String> {
    match entry {
        Entry::User(message) => Some(message.plain().chars().take(BEGINS).collect()),
        Entry::Step(_) | Entry::Note(_) | Entry::Boundary(_) => None,
    }
}

/// What may be called beside what only reads.
fn allowed() -> Vec<Pattern> {
    [format!("{MEMORIES}/**"), MEMORIES.to_owned()]
        .into_iter()
        .map(|path| Pattern::with_argument(MEMORY_TOOL, path))
        .collect()
}

fn extracted(
    cx: &AfterTurnCx,
    (extraction, choice): (Extraction, ModelChoice),
    ran: Result<ForkedEnd, String>,
) -> Extracted {
    let outcome = match &ran {
        // What was done before it was told to stop is done.
        Ok(end) if end.reason == TerminalReason::MaxSteps => ExtractionOutcome::StepLimit,
        Ok(end) if end.reason.is_success() => ExtractionOutcome::Done,
        _ if cx.cancel.is_cancelled() => ExtractionOutcome::Stopped,
        Err(why) => ExtractionOutcome::Failed(why.clone()),
        Ok(end) => {
            let error = end.error.as_ref().map(|error| format!(": {}", error.message));
            ExtractionOutcome::Failed(format!(
                "the run ended with {}{}",
                end.reason,
                error.unwrap_or_default()
            ))
        }
    };
    let (made, steps, usage) =
        ran.map_or_else(|_| (Vec::new(), 0, Usage::default()), |end| (end.made, end.steps, end.usage));
    let mut paths = Vec::new();
    for path in made.iter().flat_map(written) {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    Extracted { session: cx.session.clone(), extraction, outcome, written: paths, steps, usage, choice }
}

fn broken(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> SourceError {
    SourceError::new(EXTRACTION, cause)
}

/// What a failure is one of.
const EXTRACTION: &str = "the extraction of memories";

/// Characters of a message that tell it from others.
const BEGINS: usize = 120;

impl Debug for MemoryExtractor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryExtractor").field("status", &self.status).finish_non_exhaustive()
    }
}
