//! Several sessions that commit at once, so that their commits share transactions and syncs: of each session a beginning of
//! its commits is kept, with every one that was answered, and of all of them a beginning in the order they were given in
//! (requirements D1 and D8).

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use agent_core::{
    Checkpoint, Commit, Entry, Event, EventBody, Heard, Input, RawJson, Revision, SessionId, SessionMeta,
    Usage, UserMessage,
};
use agent_store::{Lease, SqliteStore, Store, StoreError};
use agent_store_faults::{Disk, Fault, Tuning};
use agent_testkit::store_suite::wait_for;

use super::report::Report;
use super::{integrity, power};

type Work<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// One of the sessions, as far as its worker knows.
struct Worker {
    id: SessionId,
    lease: Option<Lease>,
    /// How many commits were answered.
    answered: u64,
    /// How many were given.
    given: u64,
}

/// A run with a fault in it.
struct Run<'a> {
    dir: &'a Path,
    disk: &'a Disk,
    fault: Fault,
    store: Option<Arc<dyn Store>>,
    workers: Vec<Worker>,
    /// The commits of this wave, each its session and its number, in the order they were given in.
    wave: Vec<(usize, u64)>,
}

impl<'a> Run<'a> {
    fn new(dir: &'a Path, disk: &'a Disk, fault: Fault) -> Self {
        let worker =
            |name: &str| Worker { id: SessionId::new(name).unwrap(), lease: None, answered: 0, given: 0 };
        let workers = ["a", "b", "c", "d"].map(worker).into();
        Self { dir, disk, fault, store: None, workers, wave: Vec::new() }
    }

    /// What was violated, if anything was.
    fn whole(mut self) -> Result<(), String> {
        let mut tries = 0;
        while self.workers.iter().any(|worker| worker.answered < COMMITS) {
            tries += 1;
            if tries > 40 {
                return Err("stuck: the sessions do not get on".to_owned());
            }
            let end = self.wave();
            if self.disk.has_stopped() {
                self.next_process()?;
            } else {
                self.judge(end)?;
            }
        }
        self.stop();
        if matches!(self.fault, Fault::SyncError | Fault::PowerLoss(_)) {
            self.disk.cut_power();
        } else {
            self.disk.restart();
        }
        self.wave.clear();
        self.find()
    }

    /// Every session gives its next commits at once, behind a write that holds the writer up; who has no lease takes one.
    fn wave(&mut self) -> Result<(), StoreError> {
        self.wave.clear();
        let store = self.open()?;
        for worker in &mut self.workers {
            worker.begin(&*store)?;
        }
        let commits: Vec<(usize, u64)> = (1..=2)
            .flat_map(|behind| {
                self.workers.iter().enumerate().map(move |(n, worker)| (n, worker.answered + behind))
            })
            .filter(|(_, number)| *number <= COMMITS)
            .collect();
        let large = vec![u8::try_from(commits.len()).unwrap(); 150_000];
        let (first, store) = (&self.workers[0], &*store);
        let mut work: Vec<Work<'_, Result<(), StoreError>>> = Vec::new();
        for (n, number) in &commits {
            work.push(Box::pin(self.workers[*n].commit(store, *number)));
        }
        work.insert(0, Box::pin(async { store.put_blob(&first.id, &large).await.map(|_| ()) }));
        work.extend(self.workers.iter().filter(|worker| worker.answered > 0).map(|worker| worker.say(store)));
        work.push(Box::pin(first.refused(store)));
        let mut ends = wait_for(all(work));
        let refused = ends.pop();
        let commit_ends = ends.get(1..=commits.len()).unwrap_or_default();
        let commit_ends: Vec<bool> = commit_ends.iter().map(Result::is_ok).collect();
        self.note(&commits, &commit_ends);
        if let Some(Ok(())) = refused {
            // The model has no such commit: whatever is found now is a violation.
            return Err(StoreError::Closed);
        }
        ends.into_iter().find(Result::is_err).unwrap_or(Ok(()))
    }

    fn note(&mut self, commits: &[(usize, u64)], ends: &[bool]) {
        for ((n, number), is_answered) in commits.iter().zip(ends) {
            let worker = &mut self.workers[*n];
            worker.given = worker.given.max(*number);
            if *is_answered {
                worker.answered = *number;
            }
            self.wave.push((*n, *number));
        }
    }

    /// The same process goes on: what failed says so clearly and changed nothing.
    fn judge(&mut self, end: Result<(), StoreError>) -> Result<(), String> {
        let is_clear = match &end {
            Ok(()) | Err(StoreError::Stale { .. } | StoreError::Missing(_)) => true,
            Err(StoreError::DiskFull { .. }) => self.fault == Fault::DiskFull,
            Err(StoreError::DiskFailed { .. }) => self.fault != Fault::DiskFull,
            Err(_) => false,
        };
        if !is_clear {
            return Err(format!("unclear error: {end:?}"));
        }
        let mut found = self.revisions();
        for _ in 0..8 {
            found = found.or_else(|_| self.revisions());
        }
        if self.disk.has_stopped() {
            return self.next_process();
        }
        let found = found.map_err(|error| format!("unreadable: {error}"))?;
        for (worker, found) in self.workers.iter_mut().zip(found) {
            if found != worker.answered {
                return Err(format!("half written: {} has {found}, answered {}", worker.id, worker.answered));
            }
            worker.given = worker.answered;
        }
        Ok(())
    }

    fn next_process(&mut self) -> Result<(), String> {
        self.stop();
        self.disk.restart();
        self.find()
    }

    /// What a new process finds.
    fn find(&mut self) -> Result<(), String> {
        integrity(self.dir).map_err(|error| format!("damaged: {error}"))?;
        let found = self.revisions().map_err(|error| format!("unreadable: {error}"))?;
        for (worker, found) in self.workers.iter().zip(&found) {
            if *found < worker.answered {
                return Err(format!("lost: {} has {found}, answered {}", worker.id, worker.answered));
            }
            if *found > worker.given {
                return Err(format!("invented: {} has {found}, given {}", worker.id, worker.given));
            }
        }
        // One writer does them in order, so that none is kept without those before it.
        let is_kept = |(n, number): &(usize, u64)| *number <= found[*n];
        let lost = self.wave.iter().position(|commit| !is_kept(commit)).unwrap_or(self.wave.len());
        if let Some(kept) = self.wave[lost..].iter().find(|commit| is_kept(commit)) {
            return Err(format!("out of order: {kept:?} is kept without {:?}", self.wave[lost]));
        }
        for (worker, found) in self.workers.iter_mut().zip(found) {
            (worker.answered, worker.given) = (found, found);
        }
        Ok(())
    }

    /// How many commits each session has; every part of each is there, and nothing else.
    fn revisions(&mut self) -> Result<Vec<u64>, String> {
        let store = self.open().map_err(|error| error.to_string())?;
        self.workers.iter().map(|worker| wait_for(worker.found(&*store))).collect()
    }

    fn open(&mut self) -> Result<Arc<dyn Store>, StoreError> {
        if self.store.is_none() {
            self.store = Some(Arc::new(SqliteStore::open(self.dir)?));
        }
        self.store.clone().ok_or(StoreError::Closed)
    }

    fn stop(&mut self) {
        self.workers.iter_mut().for_each(|worker| worker.lease = None);
        self.store = None;
    }
}

impl Worker {
    fn begin(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        if self.lease.is_none() {
            self.lease = Some(wait_for(store.lease(&self.id))?);
        }
        if wait_for(store.state(&self.id))?.is_none() {
            let (id, model) = (self.id.clone(), "test/model".to_owned());
            let meta =
                SessionMeta { id, created_ms: 0, model, system: vec![], static_blocks: 0, tools: vec![] };
            wait_for(store.create(self.lease()?, &meta, &Checkpoint::default()))?;
        }
        Ok(())
    }

    fn lease(&self) -> Result<&Lease, StoreError> {
        self.lease.as_ref().ok_or(StoreError::Closed)
    }

    async fn commit(&self, store: &dyn Store, number: u64) -> Result<(), StoreError> {
        self.put(store, number - 1, number).await
    }

    /// Writes that need no lease share a transaction with commits too.
    fn say<'a>(&'a self, store: &'a dyn Store) -> Work<'a, Result<(), StoreError>> {
        let message = UserMessage::text("and this").unwrap();
        let input = Input::Message { message, heard: Heard::After };
        Box::pin(async move { store.put_input(&self.id, &input).await.map(|_| ()) })
    }

    /// A commit on a revision that is not there: it is refused among others that are not.
    async fn refused(&self, store: &dyn Store) -> Result<(), StoreError> {
        self.put(store, 1_000, self.answered + 3).await
    }

    async fn put(&self, store: &dyn Store, on: u64, number: u64) -> Result<(), StoreError> {
        let turn = Some(RawJson::empty_object());
        let checkpoint = Checkpoint { turn, last_turn: number, ..Checkpoint::default() };
        let body = EventBody::SessionStarted { model: format!("{number}") };
        let event = Event { seq: Some(number), session: self.id.clone(), turn: None, step: None, body };
        let usage = Usage { input: number, ..Usage::default() };
        let commit = Commit {
            expect: Revision(on),
            entries: &[self.entry(number)],
            checkpoint: &checkpoint,
            usage: Some(&usage),
            events: &[event],
            consumed: &[],
            terminal: None,
            now_ms: 1,
        };
        store.commit(self.lease()?, commit).await.map(|_| ())
    }

    fn entry(&self, number: u64) -> Entry {
        Entry::User(UserMessage::text(format!("{} {number} {}", self.id, "many words ".repeat(90))).unwrap())
    }

    /// How many commits are stored; all of each, or an error.
    async fn found(&self, store: &dyn Store) -> Result<u64, String> {
        let told = |error: StoreError| error.to_string();
        let Some(found) = store.load(&self.id).await.map_err(told)? else { return Ok(0) };
        let number = found.revision.0;
        let entries: Vec<String> =
            (1..=number).map(|number| serde_json::to_string(&self.entry(number)).unwrap()).collect();
        let usage = store.usage(&self.id).await.map_err(told)?;
        let usage: Vec<u64> = usage.iter().map(|(_, usage)| usage.input).collect();
        let events = store.events(&self.id, 0).await.map_err(told)?;
        let are_whole = found.entries == entries
            && usage == (1..=number).collect::<Vec<_>>()
            && events.len() as u64 == number
            && found.checkpoint.last_turn == number;
        if are_whole { Ok(number) } else { Err(format!("a part of a commit in {}", self.id)) }
    }
}

/// Waits for all, having begun each in its turn before the first is waited for.
async fn all<T>(mut work: Vec<Work<'_, T>>) -> Vec<T> {
    let mut ends: Vec<Option<T>> = work.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        for (work, end) in work.iter_mut().zip(&mut ends) {
            if end.is_none()
                && let Poll::Ready(it) = work.as_mut().poll(cx)
            {
                *end = Some(it);
            }
        }
        if ends.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    ends.into_iter().flatten().collect()
}

/// Runs the waves once for every `stride`-th operation that the fault can strike at.
fn campaign(fault: impl Fn(u64) -> Fault, tuning: Tuning, stride: usize) -> Report {
    let mut report = Report::default();
    for skipped in (0..).step_by(stride) {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::at(dir.path());
        disk.tune(Tuning { checkpoint_after: Some(24), ..tuning });
        disk.arm(fault(skipped), skipped);
        let end = Run::new(dir.path(), &disk, fault(skipped)).whole();
        if !disk.was_struck() {
            assert!(end.is_ok() || tuning.synchronous.is_some(), "without a fault: {end:?}");
            return report;
        }
        report.add(skipped, end);
    }
    unreachable!("the sessions have an end")
}

fn clean(name: &str, fault: impl Fn(u64) -> Fault, stride: usize) {
    let report = campaign(fault, Tuning::default(), stride);
    println!("{name}, in groups: {report}");
    assert!(report.runs() > 10, "{name} ran: {report}");
    assert_eq!(report.violations(), 0, "{name}: {report}");
}

macro_rules! clean {
    ($($name:ident, $every:ident: $fault:expr, $stride:expr;)+) => {$(
        #[test]
        fn $name() {
            clean(stringify!($name), $fault, $stride);
        }

        #[test]
        #[ignore = "the same at every operation, which takes minutes"]
        fn $every() {
            clean(stringify!($every), $fault, 1);
        }
    )+};
}

clean! {
    a_killed_process_keeps_a_beginning, every_kill: |_| Fault::Kill, 23;
    a_torn_write_keeps_a_beginning, every_torn_write: |_| Fault::TornWrite, 11;
    a_power_cut_keeps_a_beginning, every_power_cut: power, 23;
    a_full_disk_keeps_a_beginning, every_full_disk: |_| Fault::DiskFull, 11;
    a_failed_write_keeps_a_beginning, every_failed_write: |_| Fault::WriteError, 11;
    a_failed_sync_keeps_a_beginning, every_failed_sync: |_| Fault::SyncError, 1;
}

/// The commits do share syncs, so that the campaigns are about groups.
#[test]
fn commits_at_once_share_a_sync() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Disk::at(dir.path());
    let mut run = Run::new(dir.path(), &disk, Fault::Kill);
    let store = run.open().unwrap();
    run.workers.iter_mut().for_each(|worker| worker.begin(&*store).unwrap());
    let before = disk.syncs();
    run.wave().unwrap();
    let shared = disk.syncs() - before;
    assert!(shared <= 6, "8 commits and 5 other writes took {shared} syncs");
}

/// With less than `FULL`, a power cut takes what was answered: the model sees it.
#[test]
fn less_than_full_loses_answered_groups() {
    let report = campaign(power, Tuning { synchronous: Some("OFF"), ..Tuning::default() }, 29);
    println!("synchronous = OFF, in groups: {report}");
    assert!(report.of("lost") > 0, "{report}");
}

/// How many commits each session makes.
const COMMITS: u64 = 6;
