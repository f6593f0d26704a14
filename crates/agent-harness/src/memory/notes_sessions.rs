//! The sessions whose notes are kept: for each the one who decides, what is on disk, and what is seen of it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use agent_core::SessionId;
use agent_memory::{NotesDecision, NotesFacts, NotesKeeper, NotesPolicy, NotesState};

use super::notes_view::{NotesStatus, NotesView};
use crate::Observed;

/// The sessions that were looked at last. What is known of one that is let go is on disk.
#[derive(Debug)]
pub(super) struct Sessions {
    policy: NotesPolicy,
    all: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    sessions: BTreeMap<SessionId, One>,
    /// Counts up with each look.
    looks: u64,
}

#[derive(Debug)]
struct One {
    keeper: NotesKeeper,
    /// What the disk held when it was last read or written. Another process changes it.
    disk: NotesState,
    view: Observed<NotesView>,
    looked: u64,
}

/// A run at work. Dropping it lets the next one begin, also where it was stopped in the middle; it counts as failed then.
#[derive(Debug)]
pub(super) struct AtWork<'s> {
    sessions: &'s Sessions,
    /// `None` once its end was told.
    session: Option<&'s SessionId>,
}

impl Sessions {
    pub(super) fn new(policy: NotesPolicy) -> Self {
        Self { policy, all: Mutex::default() }
    }

    /// What is seen of a session.
    pub(super) fn view(&self, session: &SessionId) -> Observed<NotesView> {
        self.with(session, |one| one.view.clone())
    }

    /// The decision at a commit, with what the disk says. Where it is to run, nothing has begun yet.
    pub(super) fn look(&self, session: &SessionId, disk: NotesState, facts: NotesFacts) -> NotesDecision {
        let (decision, view) = self.with(session, |one| {
            one.refresh(self.policy, disk);
            let mut keeper = one.keeper.clone();
            let decision = keeper.committed(facts);
            if !matches!(decision, NotesDecision::Run(_)) {
                one.keeper = keeper;
            }
            (decision, one.view.clone())
        });
        show(&view, decision);
        decision
    }

    /// The same where the notes are claimed: where it is to run, it has begun.
    pub(super) fn begin(&self, session: &SessionId, disk: NotesState, facts: NotesFacts) -> NotesDecision {
        let (decision, view) = self.with(session, |one| {
            one.refresh(self.policy, disk);
            (one.keeper.committed(facts), one.view.clone())
        });
        show(&view, decision);
        decision
    }

    /// What is told of a run that has begun.
    pub(super) fn at_work<'s>(&'s self, session: &'s SessionId, status: NotesStatus) -> AtWork<'s> {
        self.view(session).update(move |view| view.status = status);
        AtWork { sessions: self, session: Some(session) }
    }

    /// The state was written.
    pub(super) fn saved(&self, session: &SessionId, state: NotesState) {
        self.with(session, |one| one.disk = state);
    }

    fn finished(&self, session: &SessionId, succeeded: bool) -> (NotesState, NotesDecision) {
        let (state, decision, view) = self.with(session, |one| {
            let decision = one.keeper.finished(succeeded);
            (*one.keeper.state(), decision, one.view.clone())
        });
        show(&view, decision);
        (state, decision)
    }

    /// The run of a session came to nothing, and no other follows it now.
    pub(super) fn abandoned(&self, session: &SessionId) {
        self.with(session, |one| one.keeper.abandoned());
    }

    fn with<T>(&self, session: &SessionId, look: impl FnOnce(&mut One) -> T) -> T {
        let mut all = self.all();
        all.looks += 1;
        let looks = all.looks;
        if !all.sessions.contains_key(session) {
            all.let_go();
        }
        let one = all.sessions.entry(session.clone()).or_insert_with(|| One {
            keeper: NotesKeeper::new(self.policy, NotesState::default()),
            disk: NotesState::default(),
            view: Observed::default(),
            looked: 0,
        });
        one.looked = looks;
        look(one)
    }

    fn all(&self) -> MutexGuard<'_, Kept> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// Makes room for another session: the one goes that was not looked at for longest, of those that nobody watches where
    /// there are any.
    fn let_go(&mut self) {
        while self.sessions.len() >= MOST {
            let idle = self.sessions.iter().filter(|(_, one)| one.keeper.running().is_none());
            let oldest = idle.min_by_key(|(_, one)| (one.view.watchers() > 0, one.looked));
            let Some(oldest) = oldest.map(|(id, _)| id.clone()) else { return };
            self.sessions.remove(&oldest);
        }
    }
}

impl One {
    /// Goes on from what another process left, where one did.
    fn refresh(&mut self, policy: NotesPolicy, disk: NotesState) {
        if disk != self.disk && self.keeper.running().is_none() {
            self.keeper = NotesKeeper::new(policy, disk);
            self.disk = disk;
        }
    }
}

impl AtWork<'_> {
    /// Tells its end; what is to be kept of it, and what is to be done next.
    pub(super) fn finished(mut self, succeeded: bool) -> Option<(NotesState, NotesDecision)> {
        self.session.take().map(|session| self.sessions.finished(session, succeeded))
    }
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            self.sessions.abandoned(session);
        }
    }
}

/// Shows what is lacking; of a run at work more is shown where it is made.
fn show(view: &Observed<NotesView>, decision: NotesDecision) {
    if let NotesDecision::Wait(wait) = decision {
        view.update(move |view| view.status = NotesStatus::Waiting(wait));
    }
}

/// Sessions that are remembered at a time.
const MOST: usize = 256;

#[cfg(test)]
mod tests {
    use agent_core::EntryId;

    use super::*;

    fn named(at: usize) -> SessionId {
        SessionId::new(format!("s{at}")).unwrap()
    }

    fn facts(tokens: u64) -> NotesFacts {
        NotesFacts { tokens, calls: 0, at_break: true, end: EntryId::at(4) }
    }

    #[test]
    fn only_so_many_sessions_are_remembered_and_none_at_work_is_let_go() {
        let sessions = Sessions::new(NotesPolicy::default());
        let disk = NotesState::default();
        assert!(matches!(sessions.begin(&named(0), disk, facts(10_000)), NotesDecision::Run(_)));
        let watched = sessions.view(&named(1)).watch();
        for at in 2..3 * MOST {
            sessions.look(&named(at), disk, facts(1));
        }
        let kept: Vec<_> = sessions.all().sessions.keys().cloned().collect();
        assert_eq!(kept.len(), MOST);
        assert!(kept.contains(&named(0)) && kept.contains(&named(1)) && !kept.contains(&named(2)));
        assert_eq!(watched.get(), NotesView::default());
    }

    #[test]
    fn what_another_process_left_is_gone_on_from() {
        let sessions = Sessions::new(NotesPolicy::default());
        let mine = NotesState::default();
        assert!(matches!(sessions.look(&named(0), mine, facts(10_000)), NotesDecision::Run(_)));
        let theirs = NotesState { covers_to: Some(EntryId::at(3)), tokens: 9_000, calls: 0, runs: 1 };
        let wait = sessions.look(&named(0), theirs, facts(10_000));
        assert_eq!(wait, NotesDecision::Wait(agent_memory::NotesWait::Growth { tokens: 4_000 }));
        let NotesDecision::Run(run) = sessions.begin(&named(0), theirs, facts(14_000)) else { panic!("now") };
        assert_eq!(run.from, Some(EntryId::at(3)));
        // A run that is dropped in the middle lets the next one begin, after the same growth.
        drop(sessions.at_work(&named(0), NotesStatus::Writing { run, since_ms: 0 }));
        assert!(matches!(sessions.look(&named(0), theirs, facts(18_999)), NotesDecision::Wait(_)));
        assert!(matches!(sessions.look(&named(0), theirs, facts(19_000)), NotesDecision::Run(_)));
    }
}
