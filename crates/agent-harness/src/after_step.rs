//! Work behind a step: told of each commit of a step, of a session one at a time, and of what came meanwhile the newest only.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_core::{Cancel, EntryId, SessionId, StepNo, TurnId};
use async_trait::async_trait;

use crate::{Harness, SourceError};

/// What is done behind each step that was committed: notes on a session that goes on.
///
/// It works beside the turn, which never waits for it, and sees the session in the store as any other worker would. One piece
/// of work of one name is at a session at a time: what is committed meanwhile waits, and only the newest does, so every
/// order that it sees is the order of the steps.
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not work behind steps",
    note = "implement `AfterStep`; what is done once behind each turn is an `AfterTurn`"
)]
pub trait AfterStep: Debug + Send + Sync {
    /// Its name, for logs; work of one name is one at a time in a session.
    fn name(&self) -> &'static str;

    /// Does it, or decides that nothing is to be done, which most steps should come to. Contract: returns soon after
    /// `cx.cancel` is cancelled.
    ///
    /// # Errors
    /// In words for whoever runs the program; the session is not touched by it.
    async fn run(&self, cx: &AfterStepCx) -> Result<(), SourceError>;
}

/// A step that was committed, in numbers that cost nothing to know.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AfterStepCx {
    /// The session.
    pub session: SessionId,
    /// The turn.
    pub turn: TurnId,
    /// The step.
    pub step: StepNo,
    /// The first entry behind it: what the store holds by then.
    pub next: EntryId,
    /// Tokens of the context now.
    pub tokens: u64,
    /// Tool calls of the step; none is where a conversation breaks by itself.
    pub calls: u32,
    /// Whether the conversation broke by itself since this work was last told: with this step, or with one before it that waited
    /// and was passed over.
    pub had_break: bool,
    /// Tool calls of the session so far, those of this step included; what steps made that this work never saw is in it.
    pub session_calls: u64,
    /// Whether the turn ended with the step.
    pub ends_turn: bool,
    /// The agent.
    pub agent: Harness,
    /// Stops the work.
    pub cancel: Cancel,
}

impl AfterStepCx {
    /// Whether the step ended without tool calls.
    pub fn is_natural_break(&self) -> bool {
        self.calls == 0
    }
}

/// Which work, of which session.
pub(crate) type Key = (&'static str, SessionId);

/// The sessions that work is at, each with the newest step that waits.
#[derive(Default)]
pub(crate) struct Newest(Mutex<BTreeMap<Key, Option<AfterStepCx>>>);

/// Work that is at a session. Dropping it lets others begin, also where it was stopped in the middle.
pub(crate) struct AtWork {
    newest: Arc<Newest>,
    /// `None` once others may begin.
    key: Option<Key>,
}

impl Newest {
    /// Begins with a step; where work of that name is at the session already, the step waits in place of an older one.
    pub(crate) fn begin(self: &Arc<Self>, key: Key, cx: AfterStepCx) -> Option<(AtWork, AfterStepCx)> {
        let mut sessions = self.sessions();
        if let Some(waiting) = sessions.get_mut(&key) {
            let passed = waiting.take().is_some_and(|older| older.had_break);
            *waiting = Some(AfterStepCx { had_break: cx.had_break || passed, ..cx });
            return None;
        }
        sessions.insert(key.clone(), None);
        Some((AtWork { newest: self.clone(), key: Some(key) }, cx))
    }

    fn sessions(&self) -> MutexGuard<'_, BTreeMap<Key, Option<AfterStepCx>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AtWork {
    /// The step that came meanwhile; when none did, others may begin.
    pub(crate) fn next(&mut self) -> Option<AfterStepCx> {
        let mut sessions = self.newest.sessions();
        let waiting = sessions.get_mut(self.key.as_ref()?).and_then(Option::take);
        if waiting.is_none()
            && let Some(key) = self.key.take()
        {
            sessions.remove(&key);
        }
        waiting
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.newest.sessions().remove(&key);
        }
    }
}

impl Debug for Newest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Newest").field("sessions", &self.sessions().len()).finish()
    }
}
