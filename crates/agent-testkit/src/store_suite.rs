//! What every store must do, as cases that run over any of them (requirements D1 to D4 and D6 to D8).
//!
//! ```
//! use std::sync::Arc;
//!
//! use agent_store::MemoryStore;
//! use agent_testkit::store_suite::Subject;
//!
//! agent_testkit::store_suite!(Subject::volatile(Arc::new(MemoryStore::new())));
//! # fn main() {}
//! ```
#![expect(clippy::unwrap_used, reason = "a case that cannot go on has failed, and says where")]

mod commits;
mod forks;
mod imports;
mod inbox;
mod leases;
mod machine;
mod parts;
mod sessions;

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use agent_core::{Checkpoint, Commit, Revision, SessionId, SessionSummary};
use agent_store::{Lease, Store};

pub use commits::{
    a_boundary_waits_for_the_journaled_step, a_commit_is_all_or_nothing, a_stale_revision_is_refused,
    events_are_numbered_without_a_gap, events_replay_from_any_number, loads_the_bytes_that_were_written,
    the_journal_keeps_order_until_the_commit, usage_is_kept_for_each_commit,
};
pub use forks::{
    a_fork_is_a_copy_of_a_beginning, a_fork_is_refused_as_a_whole, a_fork_keeps_what_was_said_of_its_turns,
    a_forked_session_goes_its_own_way, of_many_forks_to_one_name_one_wins,
};
pub use imports::{an_import_is_refused_as_a_whole, an_imported_session_has_all_it_had};
pub use inbox::{
    a_second_reply_is_refused, an_input_is_used_once, an_input_waits_for_the_commit_that_uses_it,
    only_an_open_turn_is_spoken_to, what_was_said_of_turns_is_kept,
};
pub use leases::{
    a_dropped_lease_is_free, a_lost_lease_cannot_write, a_session_has_one_worker,
    attempts_at_an_open_turn_are_counted, of_many_workers_one_gets_the_session,
    sessions_do_not_wait_for_each_other,
};
pub use machine::{any_schedule_ends_as_the_model_says, play};
use parts::{EMPTY, event, id, meta, none, user};
pub use sessions::{
    a_deleted_session_leaves_nothing, a_session_is_created_once, a_session_that_does_not_exist_is_said,
    blobs_live_as_long_as_their_sessions, reopening_keeps_everything, sessions_are_listed_newest_first,
    the_list_shows_how_the_last_turn_ended,
};

/// Makes one `#[test]` of every case; the expression gives a fresh [`Subject`](crate::store_suite::Subject) each time.
#[macro_export]
macro_rules! store_suite {
    ($subject:expr) => {
        $crate::store_suite! { @each $subject =>
            loads_the_bytes_that_were_written,
            a_commit_is_all_or_nothing,
            a_stale_revision_is_refused,
            events_are_numbered_without_a_gap,
            events_replay_from_any_number,
            a_session_has_one_worker,
            of_many_workers_one_gets_the_session,
            a_dropped_lease_is_free,
            a_lost_lease_cannot_write,
            attempts_at_an_open_turn_are_counted,
            the_journal_keeps_order_until_the_commit,
            a_boundary_waits_for_the_journaled_step,
            usage_is_kept_for_each_commit,
            sessions_are_listed_newest_first,
            the_list_shows_how_the_last_turn_ended,
            blobs_live_as_long_as_their_sessions,
            a_deleted_session_leaves_nothing,
            a_session_is_created_once,
            a_session_that_does_not_exist_is_said,
            sessions_do_not_wait_for_each_other,
            reopening_keeps_everything,
            an_input_waits_for_the_commit_that_uses_it,
            an_input_is_used_once,
            a_second_reply_is_refused,
            only_an_open_turn_is_spoken_to,
            a_fork_is_a_copy_of_a_beginning,
            a_forked_session_goes_its_own_way,
            a_fork_is_refused_as_a_whole,
            a_fork_keeps_what_was_said_of_its_turns,
            of_many_forks_to_one_name_one_wins,
            an_imported_session_has_all_it_had,
            an_import_is_refused_as_a_whole,
            what_was_said_of_turns_is_kept,
            any_schedule_ends_as_the_model_says,
        }
    };
    (@each $subject:expr => $($case:ident),+ $(,)?) => {
        $(
            #[test]
            fn $case() {
                $crate::store_suite::wait_for($crate::store_suite::$case($subject));
            }
        )+
    };
}

/// A fresh store to run a case over.
pub struct Subject {
    store: Arc<dyn Store>,
    reopen: Option<Box<dyn Fn() -> Arc<dyn Store>>>,
}

impl Subject {
    /// A store that forgets everything with its process.
    pub fn volatile(store: Arc<dyn Store>) -> Self {
        Self { store, reopen: None }
    }

    /// A store that keeps everything; each call opens the same data. What the closure owns lives as long.
    pub fn durable(open: impl Fn() -> Arc<dyn Store> + 'static) -> Self {
        Self { store: open(), reopen: Some(Box::new(open)) }
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").field("store", &self.store).finish_non_exhaustive()
    }
}

/// Waits for a future on this thread, without any runtime: a store must not need one.
pub fn wait_for<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

/// A session, leased and at its newest revision.
struct Open {
    store: Arc<dyn Store>,
    id: SessionId,
    lease: Lease,
    revision: Revision,
}

async fn listed(store: &Arc<dyn Store>) -> Vec<SessionSummary> {
    store.sessions().await.unwrap().into_iter().collect::<Result<_, _>>().unwrap()
}

impl Open {
    /// Commits a message together with the event of the given number.
    async fn say(&mut self, text: &str, seq: u64) {
        let (entries, events) = ([user(text)], [event(self.id.as_str(), seq)]);
        let commit = Commit { entries: &entries, events: &events, ..plain(self) };
        self.revision = self.store.commit(&self.lease, commit).await.unwrap().revision;
    }
}

/// Everything that can be read of a session, to compare.
async fn picture(store: &Arc<dyn Store>, id: &SessionId) -> String {
    let session = store.load(id).await.unwrap();
    let events = store.events(id, 0).await.unwrap();
    let usage = store.usage(id).await.unwrap();
    format!("{session:#?}\n{events:#?}\n{usage:#?}\n{:#?}", store.sessions().await.unwrap())
}

async fn create(subject: &Subject, name: &str) -> Open {
    begin(Arc::clone(&subject.store), name).await
}

async fn begin(store: Arc<dyn Store>, name: &str) -> Open {
    let lease = store.lease(&id(name)).await.unwrap();
    let revision = store.create(&lease, &meta(name), &none()).await.unwrap();
    assert_eq!(revision, Revision(0));
    Open { store, id: id(name), lease, revision }
}

/// A commit of nothing on the newest revision.
fn plain(open: &Open) -> Commit<'_> {
    Commit { expect: open.revision, ..of(&EMPTY) }
}

fn of(checkpoint: &Checkpoint) -> Commit<'_> {
    let expect = Revision(0);
    Commit {
        expect,
        entries: &[],
        checkpoint,
        usage: None,
        events: &[],
        consumed: &[],
        terminal: None,
        now_ms: 41,
    }
}
