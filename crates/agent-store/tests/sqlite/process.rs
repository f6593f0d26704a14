//! Several processes on one store, and processes that are killed (requirements D1, D3 and D5, case D02).

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

use agent_core::{History, Revision};
use agent_store::{Store, StoreError};
use agent_testkit::store_suite::wait_for;

use super::{Writer, event, id, open, raw};

const ROUNDS: u64 = 24;

#[test]
fn an_answered_commit_outlives_a_killed_process() {
    let dir = tempfile::tempdir().unwrap();
    let mut chance = Chance(0x5eed);
    let mut least = 0;
    for round in 0..ROUNDS {
        let mut writer = Running::start(dir.path(), "write");
        for _ in 0..chance.below(12) {
            least = writer.answer();
        }
        // Lands anywhere between two answers: in the journal, in the commit, in the answer itself.
        std::thread::sleep(std::time::Duration::from_micros(chance.below(4_000)));
        least = writer.kill().unwrap_or(least);
        check_whole(dir.path(), least, round);
    }
    assert!(least > ROUNDS, "the writers got somewhere: {least}");
}

#[test]
fn a_session_belongs_to_one_process_until_it_dies() {
    let dir = tempfile::tempdir().unwrap();
    let mut holder = Running::start(dir.path(), "hold");
    assert_eq!(holder.answer(), 1);
    let store = open(dir.path());
    let busy = wait_for(store.lease(&id("s"))).unwrap_err();
    let pid = holder.child.id();
    assert!(matches!(&busy, StoreError::Busy { pid: Some(found), .. } if *found == pid), "{pid}: {busy:?}");
    assert_eq!(wait_for(store.load(&id("s"))).unwrap().unwrap().revision, Revision(1), "reading is free");
    assert_eq!(holder.kill(), None);
    let mut writer = Writer::open(store, "s").unwrap();
    assert_eq!(writer.step("mine now").unwrap(), Revision(2));
    assert_eq!(writer.lease.epoch(), 2);
}

/// Not a test of its own: the process that the tests above start.
#[test]
#[ignore = "is started by the tests of this file as a process of its own"]
fn child() {
    let Some((dir, job)) = task() else { return };
    let mut writer = Writer::open(open(&dir), "s").unwrap();
    let say = |revision: Revision| {
        let mut out = std::io::stdout().lock();
        writeln!(out, "\n{ANSWER}{}", revision.0).unwrap();
        out.flush().unwrap();
    };
    match job.as_str() {
        "hold" => {
            say(writer.step("held").unwrap());
            std::thread::sleep(std::time::Duration::from_secs(600));
        }
        "write" => loop {
            say(writer.step(&"words ".repeat(400)).unwrap());
        },
        other => panic!("no job {other:?}"),
    }
}

/// A child process and what it says.
struct Running {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Running {
    fn start(dir: &Path, job: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "sqlite::process::child", "--ignored", "--nocapture"])
            .env(DIR, dir)
            .env(JOB, job)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// The next revision that the child was answered.
    fn answer(&mut self) -> u64 {
        self.next().expect("the child goes on until it is killed")
    }

    /// Kills the child as the system would, and answers the last revision it still told.
    fn kill(mut self) -> Option<u64> {
        self.child.kill().unwrap();
        let mut last = None;
        while let Some(revision) = self.next() {
            last = Some(revision);
        }
        let end = self.child.wait().unwrap();
        assert!(!end.success(), "it was killed and did not end: {end}");
        last
    }

    fn next(&mut self) -> Option<u64> {
        self.lines.find_map(|line| line.unwrap().strip_prefix(ANSWER)?.parse().ok())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Only a test that failed leaves it running; it may be gone already.
        drop((self.child.kill(), self.child.wait()));
    }
}

/// All parts of the session agree, and at most the commit in flight came on top of the answered ones.
fn check_whole(dir: &Path, least: u64, round: u64) {
    let store: Arc<dyn Store> = open(dir);
    let db = raw(dir);
    let integrity: String = db.query_row("PRAGMA integrity_check", (), |row| row.get(0)).unwrap();
    assert_eq!(integrity, "ok", "round {round}");
    let Some(found) = wait_for(store.load(&id("s"))).unwrap() else {
        assert_eq!(least, 0, "round {round}: an answered session is gone");
        return;
    };
    let Revision(revision) = found.revision;
    assert!((least..=least + 1).contains(&revision), "round {round}: {least} answered, {revision} found");
    let (history, repairs) = History::load(&found.entries).unwrap();
    assert_eq!((history.len() as u64, repairs.len()), (2 * revision, 0), "round {round}");
    assert_eq!(found.checkpoint.last_turn, revision, "round {round}");
    // One record is journaled before each commit with an event of its own, and the commit takes it away.
    let journaled = found.journal.len() as u64;
    assert!(found.last_seq >= 2 * revision + journaled, "round {round}: {} events", found.last_seq);
    let events = wait_for(store.events(&id("s"), 0)).unwrap();
    let expect: Vec<_> = (1..=found.last_seq).map(|seq| event(&id("s"), seq)).collect();
    assert_eq!(events, expect, "round {round}");
    let usage = wait_for(store.usage(&id("s"))).unwrap();
    let expect: Vec<u64> = (1..=revision).collect();
    assert_eq!(usage.iter().map(|(at, _)| at.0).collect::<Vec<_>>(), expect, "round {round}");
    // The dead process's lock is free at once.
    drop(wait_for(store.lease(&id("s"))).unwrap());
}

/// A small source of numbers, the same in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

#[expect(clippy::disallowed_methods, reason = "how a child process learns what to do")]
fn task() -> Option<(PathBuf, String)> {
    Some((std::env::var_os(DIR)?.into(), std::env::var(JOB).ok()?))
}

const DIR: &str = "AGENT_STORE_TEST_DIR";
const JOB: &str = "AGENT_STORE_TEST_JOB";
const ANSWER: &str = "answered ";
