//! The rolling notes on a session: written beside its turns by a run that may do nothing else, read when it is compacted.

use std::path::PathBuf;
use std::sync::Arc;

use agent_core::{SessionId, SessionNotes, Text, Usage, UserMessage};
use agent_memory::{
    MEMORY_TOOL, MemoryError, NOTES_PATH, NotesDecision, NotesFacts, NotesFile, NotesPolicy, NotesRun,
    NotesState, are_notes_empty, notes_denial, notes_prompt,
};
use async_trait::async_trait;

use super::notes_sessions::{AtWork, Sessions};
use super::notes_view::{NotesOutcome, NotesReport, NotesStatus, NotesView};
use super::on_disk;
use crate::changes::model_name;
use crate::{AfterStep, AfterStepCx, ForkedEnd, ForkedRun, NotesSource, SourceError, Watch};

/// Keeps notes on sessions (requirement C2): behind a step, once the [`NotesPolicy`] says so, the model is asked beside the
/// session to bring them up to date, and a compaction begins from them without asking anybody.
///
/// Give it to an agent twice, as [`crate::HarnessConfig::after_step`] and as [`crate::HarnessConfig::notes`]; clones are the
/// same one. The agent needs the tool `memory` with notes in the same data directory: the run may call it on
/// `/session/notes.md`, and nothing else. It is a [`crate::Session::fork_run`], so it reads the session's cached prefix, and can
/// neither compact nor fork.
///
/// One run is at a session at a time, also of several processes. What the notes are said to cover is written behind them, so
/// that they cover at least that, whenever a process dies.
#[derive(Debug, Clone)]
pub struct NotesWriter(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    data: PathBuf,
    sessions: Sessions,
}

/// A step, and the notes on its session.
struct Step<'s> {
    cx: &'s AfterStepCx,
    file: NotesFile,
}

impl NotesWriter {
    /// Keeps them under the data directory of the program, as [`NotesFile`] says.
    pub fn new(data: impl Into<PathBuf>, policy: NotesPolicy) -> Self {
        Self(Arc::new(Inner { data: data.into(), sessions: Sessions::new(policy) }))
    }

    /// The notes on a session.
    pub fn file(&self, session: &SessionId) -> NotesFile {
        NotesFile::new(&self.0.data, session)
    }

    /// What is done about the notes on a session: which threshold is lacking, the run at work, the last run. The watch ends
    /// when so many other sessions were looked at that this one is let go.
    pub fn watch(&self, session: &SessionId) -> Watch<NotesView> {
        self.0.sessions.view(session).watch()
    }

    /// Has a run bring the notes up to date; what is to be done next.
    async fn write(&self, step: &Step<'_>, run: NotesRun) -> Result<NotesDecision, SourceError> {
        let cx = step.cx;
        let since_ms = cx.agent.config().clock.now_ms();
        tracing::info!(tokens = run.tokens, grown = run.grown, calls = run.calls, because = ?run.because, "session notes are written");
        let at_work = self.0.sessions.at_work(&cx.session, NotesStatus::Writing { run, since_ms });
        let before = step.on_disk(NotesFile::read).await?;
        let (ended, spent) = match step.ask(before.as_deref()).await {
            Ok(end) => {
                let spent = (end.steps, end.usage.clone());
                (Ok(end), spent)
            }
            Err(error) => (Err(error.to_string()), (0, Usage::default())),
        };
        let outcome = match step.on_disk(NotesFile::read).await {
            Ok(after) => outcome(ended, before.as_deref(), after.as_deref()),
            // What was asked is paid for, and counted.
            Err(error) => NotesOutcome::Failed(error.to_string()),
        };
        if step.is_session_gone().await {
            // They go with the session, also those that were written while it went.
            step.on_disk(NotesFile::remove).await?;
        }
        let (steps, usage) = spent;
        let now_ms = cx.agent.config().clock.now_ms();
        let millis = u64::try_from(now_ms.saturating_sub(since_ms)).unwrap_or(0);
        let report = NotesReport { run, outcome, steps, usage, millis };
        let next = self.end(step, at_work, report).await;
        if next.is_err() {
            self.0.sessions.abandoned(&cx.session);
        }
        next
    }

    /// Keeps what came of a run, and shows it.
    async fn end(
        &self,
        step: &Step<'_>,
        at_work: AtWork<'_>,
        report: NotesReport,
    ) -> Result<NotesDecision, SourceError> {
        let NotesReport { outcome, steps, usage, .. } = &report;
        match outcome {
            NotesOutcome::Failed(why) => tracing::warn!(steps, why, "session notes were not written"),
            NotesOutcome::Written | NotesOutcome::Unchanged => {
                tracing::info!(
                    steps,
                    cache_read = usage.cache_read,
                    input = usage.total_input(),
                    "session notes are up to date"
                );
            }
        }
        let ended = at_work.finished(outcome.is_covered());
        let Some((mut state, next)) = ended else { return Err(unread("its end was told already")) };
        if step.cx.cancel.is_cancelled() && !outcome.is_covered() {
            // It was stopped and did not fail, so the next process begins it again as soon as it looks.
            state = step.state().await?;
        }
        let model = model_name(step.cx.agent.config().model.profile());
        let spent = usage.clone();
        let saved = if step.is_session_gone().await {
            Ok(())
        } else {
            step.on_disk(move |file| file.save_run(&state, &model, &spent)).await
        };
        if saved.is_ok() {
            self.0.sessions.saved(&step.cx.session, state);
        }
        self.0.sessions.view(&step.cx.session).update(move |view| view.last = Some(report));
        saved.map(|()| next)
    }
}

#[async_trait]
impl AfterStep for NotesWriter {
    fn name(&self) -> &'static str {
        "session_notes"
    }

    async fn run(&self, cx: &AfterStepCx) -> Result<(), SourceError> {
        let step = Step { cx, file: self.file(&cx.session) };
        let facts =
            NotesFacts { tokens: cx.tokens, calls: cx.session_calls, at_break: cx.had_break, end: cx.next };
        let sessions = &self.0.sessions;
        if !matches!(sessions.look(&cx.session, step.state().await?, facts), NotesDecision::Run(_)) {
            return Ok(());
        }
        let Some(_claim) = step.on_disk(NotesFile::claim).await? else {
            sessions.view(&cx.session).update(|view| view.status = NotesStatus::Elsewhere);
            return Ok(());
        };
        // Another process may have written since the look, and nobody does any more.
        let mut next = sessions.begin(&cx.session, step.state().await?, facts);
        while let NotesDecision::Run(run) = next {
            next = self.write(&step, run).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl NotesSource for NotesWriter {
    async fn notes(&self, session: &SessionId) -> Result<Option<SessionNotes>, SourceError> {
        let file = self.file(session);
        let read = move |file: &NotesFile| {
            // In this order: notes that are written between the two cover more than is said.
            let covers_to = file.state()?.covers_to;
            Ok((covers_to, file.read()?))
        };
        let (covers_to, text) = on_disk(NOTES, move || read(&file)).await?;
        let text = text.filter(|text| covers_to.is_some() && !are_notes_empty(text));
        Ok(text.map(|text| SessionNotes { text, covers_to }))
    }

    fn path(&self, session: &SessionId) -> Option<PathBuf> {
        Some(self.file(session).path())
    }
}

impl Step<'_> {
    /// Asks the model beside the session.
    async fn ask(&self, notes: Option<&str>) -> Result<ForkedEnd, SourceError> {
        let config = self.cx.agent.config();
        if config.tools.get(MEMORY_TOOL).is_none() {
            let why = format!(
                "the agent has no tool `{MEMORY_TOOL}`, with which they are written; give it one with notes in the same data directory"
            );
            return Err(SourceError::new("the notes of the session", why));
        }
        let message = UserMessage::text(notes_prompt(notes)).map_err(unread)?;
        let only = format!("{MEMORY_TOOL}({NOTES_PATH})").parse().map_err(unread)?;
        let run = ForkedRun {
            allow: vec![only],
            refusal: Text::new(notes_denial()),
            max_steps: MAX_STEPS,
            cancel: self.cx.cancel.clone(),
            ..ForkedRun::new(message)
        };
        self.cx.agent.session(self.cx.session.clone()).fork_run(run).await.map_err(unread)
    }

    /// What was kept of the last run. What cannot be read is nothing, and is replaced by the next run.
    async fn state(&self) -> Result<NotesState, SourceError> {
        self.on_disk(|file| match file.state() {
            Err(error @ MemoryError::Record { .. }) => {
                tracing::warn!(%error, "what is known of the last run begins anew");
                Ok(NotesState::default())
            }
            state => state,
        })
        .await
    }

    /// Whether the session was deleted meanwhile. One that cannot be read is there.
    async fn is_session_gone(&self) -> bool {
        matches!(self.cx.agent.config().store.meta(&self.cx.session).await, Ok(None))
    }

    async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&NotesFile) -> Result<T, MemoryError> + Send + 'static,
    ) -> Result<T, SourceError> {
        let file = self.file.clone();
        on_disk(NOTES, move || work(&file)).await
    }
}

/// What came of a run, by how it ended and what the notes say before and after it.
fn outcome(ended: Result<ForkedEnd, String>, before: Option<&str>, after: Option<&str>) -> NotesOutcome {
    let end = match ended {
        Ok(end) if end.reason.is_success() => end,
        Ok(ForkedEnd { reason, error, .. }) => {
            let why = error.map(|error| format!(": {error}")).unwrap_or_default();
            return NotesOutcome::Failed(format!("the run ended with {reason}{why}"));
        }
        Err(why) => return NotesOutcome::Failed(why),
    };
    let is_notes = |call: &agent_core::ToolCall, result: &agent_core::ToolResult| {
        call.name == MEMORY_TOOL && !result.output.is_error()
    };
    let has_looked = end.made.iter().any(|step| step.pairs().any(|(call, result)| is_notes(call, result)));
    match after {
        None => NotesOutcome::Failed("the run ended and there are no notes".to_owned()),
        Some(text) if are_notes_empty(text) => {
            NotesOutcome::Failed("the run ended and the notes say nothing".to_owned())
        }
        Some(text) if before != Some(text) => NotesOutcome::Written,
        Some(_) if has_looked => NotesOutcome::Unchanged,
        Some(_) => NotesOutcome::Failed("the run neither changed the notes nor looked at them".to_owned()),
    }
}

fn unread(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> SourceError {
    SourceError::new(NOTES, cause)
}

/// What a failure is one of.
const NOTES: &str = "the notes of the session";

/// Steps of a run: a look, changes, one that mends what failed, and the words at the end, with one to spare.
const MAX_STEPS: u32 = 5;
