//! A thread that owns a connection and does one job after another.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use futures_channel::oneshot;
use rusqlite::Connection;

use super::fault::Fail;
use crate::StoreError;

/// The owner's end of the thread. Dropping it waits until the jobs that were asked for are done.
#[derive(Debug)]
pub(super) struct Worker {
    /// `None` only while it is dropped.
    jobs: Option<Sender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
}

/// Work that can be done again when the transaction it was part of failed, and is answered once.
trait Job: Send {
    fn run(&mut self, db: &Connection) -> Result<(), Fail>;
    fn settle(self: Box<Self>, end: Result<(), Fail>);
}

struct Request<T, W> {
    work: W,
    /// What the last run gave.
    given: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl Worker {
    /// A thread that does each job in a transaction and answers after its commit.
    pub(super) fn writer(db: Connection) -> Result<Self, StoreError> {
        Self::start("agent-store-write", move |jobs| write(&db, &jobs))
    }

    /// A thread that does each job on a snapshot.
    pub(super) fn reader(db: Connection) -> Result<Self, StoreError> {
        Self::start("agent-store-read", move |jobs| read(&db, &jobs))
    }

    /// Does `work` on the thread. Dropping the future does not stop it.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        work: impl FnMut(&Connection) -> Result<T, Fail> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let jobs = self.jobs.as_ref().ok_or(StoreError::Closed)?;
        let request = Request { work, given: None, reply };
        jobs.send(Box::new(request)).map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    fn start(
        name: &str,
        run: impl FnOnce(Receiver<Box<dyn Job>>) + Send + 'static,
    ) -> Result<Self, StoreError> {
        let (jobs, todo) = mpsc::channel();
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || run(todo));
        let thread = thread.map_err(|cause| StoreError::Io { path: name.into(), cause })?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.jobs = None;
        // The last owner may be woken, and dropped, on the thread itself; it ends by itself then.
        let thread = self.thread.take().filter(|thread| thread.thread().id() != thread::current().id());
        if let Some(thread) = thread {
            // It ends with an error only if it panicked, and then its askers were told that it is closed.
            drop(thread.join());
        }
    }
}

impl<T, W> Job for Request<T, W>
where
    T: Send,
    W: FnMut(&Connection) -> Result<T, Fail> + Send,
{
    fn run(&mut self, db: &Connection) -> Result<(), Fail> {
        self.given = Some((self.work)(db)?);
        Ok(())
    }

    fn settle(self: Box<Self>, end: Result<(), Fail>) {
        let Self { given, reply, .. } = *self;
        let answer = end.map_err(StoreError::from).and_then(|()| given.ok_or(StoreError::Closed));
        // Whoever asked may have stopped waiting.
        drop(reply.send(answer));
    }
}

/// Takes what has piled up as one transaction, because the disk is slower than everything else.
fn write(db: &Connection, jobs: &Receiver<Box<dyn Job>>) {
    let mut batch = Vec::with_capacity(1);
    while let Ok(first) = jobs.recv() {
        batch.push(first);
        batch.extend(jobs.try_iter().take(BATCH - 1));
        let ends = if batch.len() > 1 { together(db, &mut batch).ok() } else { None };
        // A batch that failed as a whole has written nothing: each job gets a transaction and an end of its own.
        match ends {
            Some(ends) => batch.drain(..).zip(ends).for_each(|(job, end)| job.settle(end)),
            None => batch.drain(..).for_each(|job| alone(db, WRITE, job)),
        }
    }
}

fn read(db: &Connection, jobs: &Receiver<Box<dyn Job>>) {
    while let Ok(job) = jobs.recv() {
        alone(db, READ, job);
    }
}

fn alone(db: &Connection, begin: &str, mut job: Box<dyn Job>) {
    let end = transact(db, begin, job.as_mut());
    job.settle(end);
}

fn transact(db: &Connection, begin: &str, job: &mut dyn Job) -> Result<(), Fail> {
    let tx = Tx::begin(db, begin)?;
    job.run(db)?;
    debug_assert!(!db.is_autocommit(), "a job leaves its transaction to its worker");
    tx.commit()
}

/// A transaction, rolled back when it is dropped. Unlike rusqlite's own, its statements are prepared once.
struct Tx<'c>(&'c Connection);

impl<'c> Tx<'c> {
    fn begin(db: &'c Connection, begin: &str) -> Result<Self, Fail> {
        db.prepare_cached(begin)?.execute(())?;
        Ok(Self(db))
    }

    fn commit(self) -> Result<(), Fail> {
        self.0.prepare_cached("COMMIT")?.execute(())?;
        Ok(())
    }
}

impl Drop for Tx<'_> {
    fn drop(&mut self) {
        // Committed, or rolled back by SQLite after a failure of its own.
        if self.0.is_autocommit() {
            return;
        }
        if let Ok(mut rollback) = self.0.prepare_cached("ROLLBACK") {
            // Where this fails, the next transaction cannot begin and says so.
            drop(rollback.execute(()));
        }
    }
}

/// Does all jobs in one transaction, each behind a savepoint of its own, so that a refused one leaves nothing.
///
/// A failure of SQLite may end the whole transaction, so it fails the batch.
fn together(db: &Connection, batch: &mut [Box<dyn Job>]) -> Result<Vec<Result<(), Fail>>, Fail> {
    let tx = Tx::begin(db, WRITE)?;
    let mut ends = Vec::with_capacity(batch.len());
    for job in batch {
        db.prepare_cached("SAVEPOINT job")?.execute(())?;
        let end = job.run(db);
        match end {
            Ok(()) => debug_assert!(!db.is_autocommit(), "a job leaves its transaction to its worker"),
            Err(Fail::Refused(_)) => {
                db.prepare_cached("ROLLBACK TO job")?.execute(())?;
            }
            Err(Fail::Sql(error)) => return Err(error.into()),
        }
        db.prepare_cached("RELEASE job")?.execute(())?;
        ends.push(end);
    }
    tx.commit()?;
    Ok(ends)
}

const BATCH: usize = 64;
/// Takes the lock for writing at once, so that what is read on the way cannot be stale at the write.
const WRITE: &str = "BEGIN IMMEDIATE";
const READ: &str = "BEGIN DEFERRED";

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks for all inserts at once; a value below zero is refused after it was written.
    fn check(values: &[i64], expect: &[&str], kept: &[i64]) {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch("CREATE TABLE t (x INTEGER UNIQUE) STRICT").unwrap();
        let (asker, jobs) = mpsc::channel::<Box<dyn Job>>();
        let answers: Vec<_> = values.iter().map(|value| ask(&asker, *value)).collect();
        drop(asker);
        write(&db, &jobs);
        let ends: Vec<_> =
            answers.into_iter().map(|mut answer| end(answer.try_recv().unwrap().unwrap())).collect();
        assert_eq!(ends, expect);
        let mut query = db.prepare("SELECT x FROM t ORDER BY x").unwrap();
        let found: Vec<i64> = query.query_map((), |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        assert_eq!(found, kept);
    }

    fn ask(asker: &Sender<Box<dyn Job>>, value: i64) -> oneshot::Receiver<Result<i64, StoreError>> {
        let (reply, answer) = oneshot::channel();
        let work = move |db: &Connection| {
            db.execute("INSERT INTO t VALUES (?1)", [value])?;
            if value < 0 { Err(StoreError::Closed.into()) } else { Ok(value) }
        };
        asker.send(Box::new(Request { work, given: None, reply })).unwrap();
        answer
    }

    fn end(answer: Result<i64, StoreError>) -> String {
        answer.map_or_else(
            |error| if matches!(error, StoreError::Closed) { "refused".into() } else { "failed".into() },
            |value| value.to_string(),
        )
    }

    #[test]
    fn each_job_of_a_batch_has_its_own_end() {
        check(&[1], &["1"], &[1]);
        check(&[-1], &["refused"], &[]);
        check(&[1, 2, 3], &["1", "2", "3"], &[1, 2, 3]);
        check(&[1, -1, 2, -2], &["1", "refused", "2", "refused"], &[1, 2]);
        check(&[1, 2, 1, -1, 3], &["1", "2", "failed", "refused", "3"], &[1, 2, 3]);
        let many: Vec<i64> = (0..200).collect();
        let texts: Vec<String> = many.iter().map(i64::to_string).collect();
        check(&many, &texts.iter().map(String::as_str).collect::<Vec<_>>(), &many);
    }

    #[test]
    fn a_worker_finishes_its_jobs_before_it_ends() {
        let db = Connection::open_in_memory().unwrap();
        db.execute_batch("CREATE TABLE t (x INTEGER UNIQUE) STRICT").unwrap();
        let worker = Worker::writer(db).unwrap();
        let answers: Vec<_> = (0..9).map(|value| ask(worker.jobs.as_ref().unwrap(), value)).collect();
        drop(worker);
        assert!(answers.into_iter().all(|mut answer| answer.try_recv().unwrap().unwrap().is_ok()));
    }
}
