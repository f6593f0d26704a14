//! Events on their way out: durable ones are numbered, stored with a write and told after it; deltas go out at once.

use agent_core::{Event, EventBody, SessionId, StepNo, TurnId};
use tokio::sync::mpsc::UnboundedSender;

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
    watcher: UnboundedSender<Event>,
}

impl Outbox {
    pub(crate) fn new(session: SessionId, last_seq: u64, watcher: UnboundedSender<Event>) -> Self {
        Self { session, turn: None, step: None, last_seq, staged: Vec::new(), watcher }
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
    /// It yields, so that who watches reads them before more is done, and can stop or drop the run in between.
    pub(crate) async fn stored(&mut self) {
        self.last_seq += self.staged.len() as u64;
        for event in self.staged.drain(..) {
            // Nobody watching is not an error.
            drop(self.watcher.send(event));
        }
        if !self.watcher.is_closed() {
            tokio::task::yield_now().await;
        }
    }

    /// Tells a delta at once; nothing is built when nobody watches.
    pub(crate) fn live(&self, body: impl FnOnce() -> EventBody) {
        if !self.watcher.is_closed() {
            drop(self.watcher.send(self.event(None, body())));
        }
    }

    pub(crate) fn last_seq(&self) -> u64 {
        self.last_seq
    }

    fn event(&self, seq: Option<u64>, body: EventBody) -> Event {
        Event { seq, session: self.session.clone(), turn: self.turn, step: self.step, body }
    }
}
