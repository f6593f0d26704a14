//! Events on their way out: durable ones are numbered, stored with a write and told after it; deltas go out at once.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use agent_core::{Event, EventBody, SessionId, StepNo, TurnId};

/// Collects events between two writes.
#[derive(Debug)]
pub(crate) struct Outbox {
    session: SessionId,
    /// Coordinates of what happens now.
    pub(crate) turn: Option<TurnId>,
    pub(crate) step: Option<StepNo>,
    /// Number of the last durable event that is stored.
    last_seq: u64,
    staged: Vec<Event>,
    told: Told,
}

/// What was told and is not read yet; `None` when nobody watches. Clones share it.
///
/// Nobody is woken: who reads is also who drives the work that tells (see [`crate::Run`]).
#[derive(Debug, Clone)]
pub(crate) struct Told(Arc<Mutex<Option<VecDeque<Event>>>>);

impl Outbox {
    pub(crate) fn new(session: SessionId, last_seq: u64, told: Told) -> Self {
        Self { session, turn: None, step: None, last_seq, staged: Vec::new(), told }
    }

    /// Adds a durable event to the next write.
    pub(crate) fn stage(&mut self, body: EventBody) {
        let seq = self.last_seq + self.staged.len() as u64 + 1;
        let event = self.event(Some(seq), body);
        self.staged.push(event);
    }

    /// What the next write stores.
    pub(crate) fn staged(&self) -> &[Event] {
        &self.staged
    }

    /// The write succeeded: the events are facts now, and are told.
    ///
    /// It gives way, so that who watches reads them before more is done, and can stop or drop the run in between.
    pub(crate) async fn stored(&mut self) {
        self.last_seq += self.staged.len() as u64;
        if self.told.tell(self.staged.drain(..)) {
            give_way().await;
        }
    }

    /// Tells a delta at once; nothing is built when nobody watches.
    pub(crate) fn live(&self, body: impl FnOnce() -> EventBody) {
        self.told.tell(std::iter::once_with(|| self.event(None, body())));
    }

    pub(crate) fn last_seq(&self) -> u64 {
        self.last_seq
    }

    fn event(&self, seq: Option<u64>, body: EventBody) -> Event {
        Event { seq, session: self.session.clone(), turn: self.turn, step: self.step, body }
    }
}

impl Told {
    /// Somebody watches, and nothing was told.
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Some(VecDeque::new()))))
    }

    /// Nobody watches.
    pub(crate) fn unwatched() -> Self {
        Self(Arc::new(Mutex::new(None)))
    }

    /// The oldest event that is not read yet.
    pub(crate) fn next(&self) -> Option<Event> {
        let mut told = self.lock();
        let queue = told.as_mut()?;
        let event = queue.pop_front();
        if queue.is_empty() && queue.capacity() > 2 * KEPT_EVENTS {
            // What a long answer took is not kept by a session that waits.
            queue.shrink_to(KEPT_EVENTS);
        }
        event
    }

    /// Nobody watches from here on.
    pub(crate) fn close(&self) {
        *self.lock() = None;
    }

    /// Whether there is something to read now. Without a watcher no event is even built.
    fn tell(&self, events: impl Iterator<Item = Event>) -> bool {
        let mut told = self.lock();
        let Some(queue) = told.as_mut() else { return false };
        queue.extend(events);
        !queue.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Option<VecDeque<Event>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Pending once, and woken by nobody: the run hands out what was told, and then drives on.
async fn give_way() {
    let mut gave = false;
    poll_fn(|_| if std::mem::replace(&mut gave, true) { Poll::Ready(()) } else { Poll::Pending }).await;
}

/// How many events there is always room for.
const KEPT_EVENTS: usize = 16;
