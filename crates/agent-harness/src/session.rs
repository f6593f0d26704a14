//! A session: send it a message, or take up what was left open.

use std::sync::Arc;

use agent_core::{Cancel, Diagnostic, Input, Revision, SessionId, TerminalReason, UserMessage};
use agent_prepare::ContextState;
use agent_store::StoreError;
use agent_turn::{Turn, Want};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tracing::Instrument;

use crate::config::HarnessConfig;
use crate::drive::{Drive, Incoming};
use crate::explain::explain;
use crate::fork::not_forked;
use crate::gauge;
use crate::live::{Live, Loaded};
use crate::outbox::{Outbox, Told};
use crate::run::{Next, Run, StepReport, TurnEnd};
use crate::{Compaction, ExplainedRequest, HarnessError, Observed, Process, SessionView, Watch};

/// A conversation by name. Cloning shares it; one message is at work at a time.
///
/// The first message opens the session and takes its lease, which is kept until the last clone is dropped. Then its tools
/// are told that it is closed, and what they left running for it ends ([`agent_tools::Tool::session_closed`]).
#[derive(Clone, Debug)]
pub struct Session {
    pub(crate) config: Arc<HarnessConfig>,
    pub(crate) id: SessionId,
    /// The loaded session between two messages; `None` before the first and after a failure.
    live: Arc<Mutex<Slot>>,
    /// What is shown of it, while it is loaded.
    view: Observed<SessionView>,
}

/// Where the session waits between two messages. Dropped with the last clone and the last run.
struct Slot {
    /// Before the session: its lease is not given back while something runs on.
    closing: Closing,
    live: Option<Box<Live>>,
}

/// Tells the tools that the session is closed, once it was open.
struct Closing {
    config: Arc<HarnessConfig>,
    id: SessionId,
    was_open: bool,
}

impl Drop for Closing {
    fn drop(&mut self) {
        for tool in self.config.tools.iter().filter(|_| self.was_open) {
            tool.session_closed(&self.id);
        }
    }
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.live.is_some() { "loaded" } else { "not loaded" })
    }
}

impl Session {
    pub(crate) fn new(config: Arc<HarnessConfig>, id: SessionId) -> Self {
        let closing = Closing { config: config.clone(), id: id.clone(), was_open: false };
        Self {
            config,
            id,
            live: Arc::new(Mutex::new(Slot { closing, live: None })),
            view: Observed::default(),
        }
    }

    /// The session's name.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Sends words. When a crash left a turn open, that turn is taken up first and the message joins it at its next
    /// step; while it waits for a reply, the message is heard when [`HarnessConfig::while_waiting`] says. The very message the open turn began with is not said twice, so running the same command again after
    /// a crash simply goes on.
    pub async fn send(&self, text: impl Into<String>) -> Result<Run, HarnessError> {
        self.send_message(UserMessage::text(text)?).await
    }

    /// Sends a message of any parts; see [`Session::send`].
    pub async fn send_message(&self, message: UserMessage) -> Result<Run, HarnessError> {
        self.start(Incoming::Message(message)).await
    }

    /// Takes up the turn that a crash or a park left open.
    pub async fn resume(&self) -> Result<Run, HarnessError> {
        self.start(Incoming::Nothing).await
    }

    /// The same where too many workers were lost over the turn ([`HarnessError::NotTakenUp`]), because a person wants it: the
    /// count begins anew (requirement D5).
    pub async fn resume_again(&self) -> Result<Run, HarnessError> {
        self.config.store.reset_attempts(&self.id).await?;
        self.resume().await
    }

    /// Ends the open turn, however many workers were lost over it: nothing of it runs any more, calls without a result are
    /// answered as not run, and what it reached stays. The run ends as [`TerminalReason::Aborted`].
    pub async fn abandon(&self) -> Result<Run, HarnessError> {
        self.config.store.reset_attempts(&self.id).await?;
        let run = self.resume().await?;
        run.cancel().cancel();
        Ok(run)
    }

    /// Drives the open turn through one step, for an engine that wakes sessions and keeps nothing of them: where the store
    /// holds a later revision than the one the engine knows, a wake that was delivered twice does nothing.
    ///
    /// It loads the session each time, so that any worker can do the next step. A turn begins with [`Session::send`] or what
    /// waits in the inbox.
    ///
    /// # Errors
    /// As [`Session::resume`]; a session that another worker has is busy.
    pub async fn run_step(&self, expected: Revision) -> Result<StepReport, HarnessError> {
        if let Some(report) = self.is_past(expected).await? {
            return Ok(report);
        }
        let Begun { slot, mut drive, .. } = self.begin(Incoming::Nothing, Told::unwatched()).await?;
        let report = drive.run_one().await?;
        keep(slot, drive).await;
        Ok(report)
    }

    /// What came of the step that a wake was for, when it was done before.
    async fn is_past(&self, expected: Revision) -> Result<Option<StepReport>, HarnessError> {
        let Some(state) = self.config.store.state(&self.id).await? else {
            return Err(StoreError::Missing(self.id.clone()).into());
        };
        if state.revision <= expected {
            return Ok(None);
        }
        let next = match &state.checkpoint.turn {
            // A revision above 0 without an open turn has one that ended.
            None => Next::Ended(state.terminal.unwrap_or(TerminalReason::Done)),
            Some(turn) => {
                let session = self.id.clone();
                let turn = Turn::restore(turn).map_err(|cause| HarnessError::Turn { session, cause })?;
                match turn.poll() {
                    Want::Park(kind) => Next::Parked(kind),
                    Want::Prepare(_) | Want::Model | Want::Tools(_) | Want::End(_) => Next::Step,
                }
            }
        };
        Ok(Some(StepReport { revision: state.revision, next }))
    }

    /// What would be sent next if the user said this now; with `None` when the open turn went on, or for a message of a
    /// stand-in's words (requirement A6).
    ///
    /// No model is asked, no tool runs, the lease is not taken and nothing is written. What the agent's sources say is
    /// asked of them.
    pub async fn explain(&self, message: Option<UserMessage>) -> Result<ExplainedRequest, HarnessError> {
        explain(&self.config, &self.id, message).await
    }

    /// Compacts the session because the user wants it: past the blocking limit and whatever failed before, which is
    /// forgotten when it succeeds (requirements P9 and P11). It is told what was done; nothing may have been possible.
    ///
    /// It belongs to no turn, so the parts of the agent hold: its pipeline, its models, and the system prompt and tools of
    /// the session. [`crate::PrepareCall`] is not asked, and what it gave turns before is not used.
    ///
    /// # Errors
    /// While a message is at work, while a turn is open, for a session that does not exist, and when a tier gives a boundary
    /// that the history refuses.
    pub async fn compact(&self) -> Result<Compaction, HarnessError> {
        not_forked(&self.id)?;
        let Ok(mut slot) = self.live.clone().try_lock_owned() else {
            return Err(HarnessError::AtWork(self.id.clone()));
        };
        if slot.live.is_none() && self.config.store.load(&self.id).await?.is_none() {
            return Err(HarnessError::NothingToCompact(self.id.clone()));
        }
        let loaded = self.loaded(&mut slot).await?;
        if loaded.open.is_some() {
            return Err(HarnessError::TurnOpen(self.id.clone()));
        }
        // Nobody watches: the events are stored, and what was done comes back.
        let out = Outbox::new(self.id.clone(), loaded.live.last_seq(), Told::unwatched());
        let (compaction, live) = Drive::compact_by_hand(self.config.clone(), loaded, out).await?;
        slot.live = Some(live);
        Ok(compaction)
    }

    /// The state of the session in typed groups (requirement K3), to be read and watched; only the driver writes it. It is that
    /// of this handle and its clones: what another process does is in the store.
    pub fn state(&self) -> Watch<SessionView> {
        self.view.watch()
    }

    /// The process that its agent runs in (requirement K2).
    pub fn process(&self) -> &Process {
        &self.config.process
    }

    /// How full the context is (requirement P6): used tokens, thresholds, level and percent. While a message is at work,
    /// as of its last request.
    pub async fn context(&self) -> Result<ContextState, HarnessError> {
        let is_stored = self.live.try_lock().is_ok_and(|slot| slot.live.is_none());
        match self.view.get().context.filter(|_| !is_stored) {
            Some(state) => Ok(state),
            None => gauge::stored(&self.config, &self.id).await,
        }
    }

    /// The session as it is in memory, or from the store.
    async fn loaded(&self, slot: &mut Slot) -> Result<Loaded, HarnessError> {
        let mut loaded = match slot.live.take() {
            Some(live) => Loaded::kept(live),
            // Once in the life of a session: what it takes is not reserved in every send.
            None => Box::pin(Live::open(&self.config, &self.id)).await?,
        };
        slot.closing.was_open = true;
        loaded.live.view = self.view.clone();
        // Another handle on the slots may be shown, of the session as it was loaded before.
        loaded.live.slots_shown = None;
        Ok(loaded)
    }

    /// Begins a run that takes up what is there, and what is given.
    pub(crate) async fn start(&self, incoming: Incoming) -> Result<Run, HarnessError> {
        let told = Told::new();
        let Begun { slot, drive, cancel } = self.begin(incoming, told.clone()).await?;
        Ok(Run::new(work(slot, drive), told, cancel, self.view.clone()))
    }

    async fn begin(&self, incoming: Incoming, told: Told) -> Result<Begun, HarnessError> {
        let Ok(mut slot) = self.live.clone().try_lock_owned() else {
            return Err(HarnessError::AtWork(self.id.clone()));
        };
        let loaded = self.loaded(&mut slot).await?;
        if matches!(incoming, Incoming::Nothing) && loaded.open.is_none() && loaded.inputs.is_empty() {
            slot.live = Some(loaded.live);
            let id = self.id.clone();
            let lost = loaded.changes.into_iter().next_back().filter(|_| loaded.closed);
            return Err(match lost {
                Some(Diagnostic { why, .. }) => HarnessError::Closed { session: id, why },
                None => HarnessError::NothingToResume(id),
            });
        }
        let incoming = self.or_later(&loaded, incoming).await?;
        let cancel = Cancel::new();
        let out = Outbox::new(self.id.clone(), loaded.live.last_seq(), told);
        let drive = Drive::begin(self.config.clone(), loaded, incoming, out, cancel.clone())?;
        Ok(Begun { slot, drive, cancel })
    }

    /// What is said to a turn that waits is kept for when it is to be heard.
    async fn or_later(&self, loaded: &Loaded, incoming: Incoming) -> Result<Incoming, HarnessError> {
        match incoming {
            Incoming::Message(message) if loaded.waits() && !loaded.live.has_heard(&message) => {
                let input = Input::Message { message, heard: self.config.while_waiting };
                self.config.store.put_input(&self.id, &input).await?;
                Ok(Incoming::Nothing)
            }
            incoming @ (Incoming::Message(_) | Incoming::Nothing) => Ok(incoming),
        }
    }
}

/// A session that was taken up.
struct Begun {
    slot: OwnedMutexGuard<Slot>,
    drive: Drive,
    cancel: Cancel,
}

async fn work(slot: OwnedMutexGuard<Slot>, mut drive: Drive) -> Result<TurnEnd, HarnessError> {
    let span = tracing::info_span!(
        "turn",
        session = %drive.session(),
        turn = tracing::field::Empty,
        reason = tracing::field::Empty,
        steps = tracing::field::Empty,
    );
    let end = drive.run().instrument(span).await?;
    keep(slot, drive).await;
    Ok(end)
}

/// Only a session whose turn is over is kept; one whose turn is open is given back, for whoever takes it up.
async fn keep(mut slot: OwnedMutexGuard<Slot>, drive: Drive) {
    match drive.into_live() {
        Ok(live) => slot.live = Some(live),
        Err(open) => {
            // What was driven is stored, whatever becomes of the count.
            if let Err(error) = open.give_back().await {
                tracing::warn!(%error, "an attempt at the open turn is counted that was none");
            }
        }
    }
}
