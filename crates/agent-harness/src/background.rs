//! Work behind turns and steps: tracked, bounded, cancellable and drained, never awaited by the user (requirement L11).

use std::fmt::{self, Debug};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_core::{Cancel, Entry, EntryId, SessionId, TerminalReason, TurnId};
use async_trait::async_trait;
use futures_util::FutureExt;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tracing::Instrument;

use crate::after_step::{AtWork, Newest};
use crate::{AfterStep, AfterStepCx, Harness, SourceError};

/// What is done behind each turn that was brought to its end: memory, summaries.
///
/// It sees the session in the store, as any other worker would, and holds nothing of it: the next message does not wait for
/// it.
#[async_trait]
pub trait AfterTurn: Debug + Send + Sync {
    /// Its name, for logs.
    fn name(&self) -> &'static str;

    /// Does it. Contract: returns soon after `cx.cancel` is cancelled.
    ///
    /// # Errors
    /// In words for whoever runs the program; the session is not touched by it.
    async fn run(&self, cx: &AfterTurnCx) -> Result<(), SourceError>;
}

/// A turn that is over.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AfterTurnCx {
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// Why it ended.
    pub reason: TerminalReason,
    /// The first entry of the turn.
    pub began: EntryId,
    /// What the history has of it, from there to its end.
    pub entries: Arc<[Entry]>,
    /// Tokens of the context when it ended.
    pub tokens: u64,
    /// The agent.
    pub agent: Harness,
    /// Stops the work.
    pub cancel: Cancel,
}

impl AfterTurnCx {
    /// The first entry behind the turn.
    pub fn next(&self) -> EntryId {
        EntryId::at(self.began.position() + self.entries.len())
    }
}

/// The work behind the turns and steps of an agent. Clones share it.
#[derive(Clone)]
pub struct Background(Arc<Inner>);

struct Inner {
    places: Arc<Semaphore>,
    cancel: Cancel,
    tasks: Mutex<JoinSet<()>>,
    /// The sessions that work behind steps is at.
    newest: Arc<Newest>,
}

/// What became of work that was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "two counts")]
pub struct Drained {
    /// Pieces that came to their end.
    pub finished: usize,
    /// Pieces that were stopped.
    pub stopped: usize,
}

impl Background {
    /// At most so many pieces of work at a time; others wait.
    pub fn new(at_once: usize) -> Self {
        let (places, cancel) = (Arc::new(Semaphore::new(at_once.max(1))), Cancel::new());
        Self(Arc::new(Inner { places, cancel, tasks: Mutex::default(), newest: Arc::default() }))
    }

    /// Stops everything that is not done when this is dropped and nobody drained it: what they do is cancelled.
    pub fn cancel(&self) -> Cancel {
        self.0.cancel.clone()
    }

    /// How many pieces are at work or wait.
    pub fn pending(&self) -> usize {
        let mut tasks = self.tasks();
        while tasks.try_join_next().is_some() {}
        tasks.len()
    }

    /// Waits until all work is done, for so long at most; what is not done then is stopped. Nothing is lost silently: what
    /// was stopped is counted.
    pub async fn drain(&self, patience: Duration) -> Drained {
        let mut tasks = std::mem::take(&mut *self.tasks());
        let all = tasks.len();
        let mut left = all;
        let waiting = async {
            while tasks.join_next().await.is_some() {
                left -= 1;
            }
        };
        if tokio::time::timeout(patience, waiting).await.is_ok() {
            return Drained { finished: all, stopped: 0 };
        }
        self.0.cancel.cancel();
        let stopped = left;
        let winding_up = async { while tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(GRACE, winding_up).await.is_err() {
            tasks.shutdown().await;
        }
        Drained { finished: all - stopped, stopped }
    }

    /// Begins work behind a turn.
    pub(crate) fn after_turn(&self, work: Arc<dyn AfterTurn>, cx: AfterTurnCx) {
        let (places, name) = (self.0.places.clone(), work.name());
        let span = tracing::info_span!("after_turn", name, session = %cx.session, turn = %cx.turn);
        self.spawn(
            async move {
                // The semaphore is never closed.
                let Ok(_place) = places.acquire_owned().await else { return };
                worked(work.run(&cx)).await;
            }
            .instrument(span),
        );
    }

    /// Begins work behind a step, or lets the step wait for the work that is at its session.
    pub(crate) fn after_step(&self, work: Arc<dyn AfterStep>, cx: AfterStepCx) {
        let key = (work.name(), cx.session.clone());
        let span = tracing::info_span!("after_step", name = key.0, session = %key.1);
        if let Some((at_work, first)) = self.0.newest.begin(key, cx) {
            self.spawn(steps(self.0.places.clone(), work, at_work, first).instrument(span));
        }
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks();
        // What is done is let go, so that a long life does not collect it.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work);
    }

    fn tasks(&self) -> std::sync::MutexGuard<'_, JoinSet<()>> {
        self.0.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Works on one step after the other, as long as newer ones wait.
async fn steps(places: Arc<Semaphore>, work: Arc<dyn AfterStep>, mut at_work: AtWork, first: AfterStepCx) {
    let mut next = Some(first);
    while let Some(cx) = next {
        if cx.cancel.is_cancelled() {
            tracing::warn!(step = %cx.step, "work behind a step was stopped before it began");
            return;
        }
        // The semaphore is never closed.
        let Ok(place) = places.acquire().await else { return };
        worked(work.run(&cx)).await;
        drop(place);
        next = at_work.next();
    }
}

async fn worked(work: impl Future<Output = Result<(), SourceError>>) {
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "work in the background failed"),
        Err(_) => tracing::warn!("work in the background broke down"),
    }
}

impl Default for Background {
    /// Two at a time.
    fn default() -> Self {
        Self::new(2)
    }
}

impl Debug for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Background").field("pending", &self.pending()).finish_non_exhaustive()
    }
}

/// How long work may take to wind up after it was told to stop.
const GRACE: Duration = Duration::from_secs(5);
