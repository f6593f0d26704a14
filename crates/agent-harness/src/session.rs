//! A session: send it a message, or take up what was left open.

use std::sync::Arc;

use agent_core::{Cancel, InputRequest, Reply, RequestId, SessionId, UserMessage};
use agent_prepare::ContextState;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tracing::Instrument;

use crate::config::HarnessConfig;
use crate::drive::{Drive, Incoming};
use crate::explain::explain;
use crate::gauge::{self, Gauge};
use crate::live::{Live, Loaded};
use crate::outbox::{Outbox, Told};
use crate::run::{Run, TurnEnd};
use crate::{Compaction, ExplainedRequest, HarnessError, RequestError};

/// A conversation by name. Cloning shares it; one message is at work at a time.
///
/// The first message opens the session and takes its lease, which is kept until the last clone is dropped. Then its tools
/// are told that it is closed, and what they left running for it ends ([`agent_tools::Tool::session_closed`]).
#[derive(Clone, Debug)]
pub struct Session {
    config: Arc<HarnessConfig>,
    id: SessionId,
    /// The loaded session between two messages; `None` before the first and after a failure.
    live: Arc<Mutex<Slot>>,
    /// How full the context is, while the session is loaded.
    gauge: Gauge,
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
        Self { config, id, live: Arc::new(Mutex::new(Slot { closing, live: None })), gauge: Gauge::default() }
    }

    /// The session's name.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Sends words. When a crash left a turn open, that turn is taken up first and the message joins it at its next
    /// step; the very message the open turn began with is not said twice, so running the same command again after
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

    /// Replies to a request of the parked turn, and takes the turn up: calls whose replies are there run, and it parks again
    /// while others are missing (requirement L7). The first reply to a request stands.
    ///
    /// # Errors
    /// When there is no such request, it was answered or has lapsed, or the reply is none to it. Nothing has changed then,
    /// no model was asked, and the request is as open as before.
    pub async fn respond(&self, request: &RequestId, reply: Reply) -> Result<Run, HarnessError> {
        self.start(Incoming::Reply(request.clone(), reply)).await
    }

    /// What the parked turn waits for; nothing when it does not wait.
    pub async fn requests(&self) -> Result<Vec<InputRequest>, HarnessError> {
        let record = self.config.store.load(&self.id).await?;
        let held = record.map(|record| record.checkpoint.requests).unwrap_or_default();
        Ok(held.into_iter().filter(|held| held.reply.is_none()).map(|held| held.request).collect())
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

    /// How full the context is (requirement P6): used tokens, thresholds, level and percent. While a message is at work,
    /// as of its last request.
    pub async fn context(&self) -> Result<ContextState, HarnessError> {
        let is_stored = self.live.try_lock().is_ok_and(|slot| slot.live.is_none());
        match self.gauge.read().filter(|_| !is_stored) {
            Some(state) => Ok(state),
            None => gauge::stored(&self.config, &self.id).await,
        }
    }

    /// The session as it is in memory, or from the store.
    async fn loaded(&self, slot: &mut Slot) -> Result<Loaded, HarnessError> {
        let mut loaded = match slot.live.take() {
            Some(live) => {
                Loaded { live, repairs: Vec::new(), changes: Vec::new(), open: None, created: false }
            }
            // Once in the life of a session: what it takes is not reserved in every send.
            None => Box::pin(Live::open(&self.config, &self.id)).await?,
        };
        slot.closing.was_open = true;
        loaded.live.gauge = self.gauge.clone();
        Ok(loaded)
    }

    async fn start(&self, incoming: Incoming) -> Result<Run, HarnessError> {
        let Ok(mut slot) = self.live.clone().try_lock_owned() else {
            return Err(HarnessError::AtWork(self.id.clone()));
        };
        let loaded = self.loaded(&mut slot).await?;
        if let Some(refused) = self.refuses(&incoming, &loaded) {
            slot.live = loaded.open.is_none().then_some(loaded.live);
            return Err(refused);
        }
        let cancel = Cancel::new();
        let told = Told::new();
        let out = Outbox::new(self.id.clone(), loaded.live.last_seq(), told.clone());
        let drive = Drive::begin(self.config.clone(), loaded, incoming, out, cancel.clone())?;
        Ok(Run::new(work(slot, drive), told, cancel, self.gauge.clone()))
    }

    /// Why the session cannot begin with this.
    fn refuses(&self, incoming: &Incoming, loaded: &Loaded) -> Option<HarnessError> {
        let session = self.id.clone();
        match (incoming, &loaded.open) {
            (Incoming::Nothing, None) => Some(HarnessError::NothingToResume(session)),
            (Incoming::Reply(id, _), None) => {
                Some(HarnessError::Request { session, cause: RequestError::Unknown(id.clone()) })
            }
            (Incoming::Message(_), _) | (Incoming::Reply(..) | Incoming::Nothing, Some(_)) => None,
        }
    }
}

async fn work(mut slot: OwnedMutexGuard<Slot>, mut drive: Drive) -> Result<TurnEnd, HarnessError> {
    let span = tracing::info_span!(
        "turn",
        session = %drive.session(),
        turn = tracing::field::Empty,
        reason = tracing::field::Empty,
        steps = tracing::field::Empty,
    );
    let end = drive.run().instrument(span).await?;
    // Only a session whose last write succeeded is kept; any other one is loaded anew.
    slot.live = drive.into_live();
    Ok(end)
}
