//! Every file operation of a scripted run, with every fault: nothing that was answered is lost, nothing is half written
//! (requirements D1 and D8).
//!
//! The tests here stride over the operations, so that they take seconds. All of them, one by one, take minutes:
//! `cargo test -p agent-store-faults -- --ignored --nocapture`.
#![expect(clippy::unwrap_used, reason = "helpers of tests: what fails here fails the test")]
#![expect(clippy::print_stdout, reason = "the counts, for who runs it by hand")]

mod careless;
mod group;
mod report;
mod script;

use std::path::Path;

use agent_store::StoreError;
use agent_store_faults::{Disk, Fault, Tuning};

use report::Report;
use script::{Runner, SCRIPT, Step};

/// What SQLite itself finds wrong with the database of a directory.
fn integrity(dir: &Path) -> Result<(), String> {
    let found = || -> rusqlite::Result<(String, u64)> {
        let db = rusqlite::Connection::open(dir.join("sessions.db"))?;
        let whole = db.query_row("PRAGMA integrity_check", (), |row| row.get(0))?;
        Ok((whole, db.query_row("SELECT count(*) FROM pragma_foreign_key_check", (), |row| row.get(0))?))
    };
    match found() {
        Ok((whole, 0)) if whole == "ok" => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

/// What is seen of the store after each step of the script, without any fault.
fn states() -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let _disk = Disk::at(dir.path());
    let mut runner = Runner::new(dir.path());
    let mut states = vec![runner.picture().unwrap()];
    for step in SCRIPT {
        runner.take(step).unwrap();
        states.push(runner.picture().unwrap());
    }
    states
}

/// Runs the script once for every `stride`-th operation that the fault can strike at, and judges each run.
fn campaign(fault: impl Fn(u64) -> Fault, tuning: Tuning, stride: u64) -> Report {
    let (states, mut report) = (states(), Report::default());
    for skipped in (0..).step_by(usize::try_from(stride).unwrap()) {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::at(dir.path());
        disk.tune(Tuning { checkpoint_after: Some(12), ..tuning });
        disk.arm(fault(skipped), skipped);
        let run =
            Run { disk: &disk, runner: Runner::new(dir.path()), states: &states, fault: fault(skipped) };
        let end = run.whole();
        if !disk.was_struck() {
            assert!(end.is_ok() || tuning.synchronous.is_some(), "without a fault: {end:?}");
            return report;
        }
        report.add(skipped, end);
    }
    unreachable!("a script has an end")
}

/// One run of the script with a fault in it.
struct Run<'a> {
    disk: &'a Disk,
    runner: Runner<'a>,
    states: &'a [String],
    fault: Fault,
}

impl Run<'_> {
    /// What was violated, if anything was.
    fn whole(mut self) -> Result<(), String> {
        let mut at = 0;
        let mut tries = 0;
        while let Some(step) = SCRIPT.get(at) {
            match self.runner.take(step) {
                Ok(()) => (at, tries) = (at + 1, 0),
                Err(_) if self.disk.has_stopped() => at = self.next_process(at)?,
                Err(error) => {
                    self.judge(at, step, &error)?;
                    tries += 1;
                    if tries > 8 {
                        return Err(format!("stuck: {step:?} still ends with {error}"));
                    }
                }
            }
        }
        // The fault may have struck after the last answer, or while no one waited for one.
        self.runner.stop();
        let keeps_unsynced = !matches!(self.fault, Fault::SyncError | Fault::PowerLoss(_));
        if keeps_unsynced {
            self.disk.restart()
        } else {
            self.disk.cut_power()
        }
        self.find(SCRIPT.len()).map(|_| ())
    }

    /// The same process goes on after an error: it is a clear one, and nothing of the step was written.
    fn judge(&mut self, at: usize, step: &Step, error: &StoreError) -> Result<(), String> {
        let is_clear = if self.fault == Fault::DiskFull {
            matches!(error, StoreError::DiskFull { .. })
        } else {
            matches!(error, StoreError::DiskFailed { .. })
        };
        if !is_clear {
            return Err(format!("unclear error: {step:?} says {error:?}"));
        }
        // Where the store cannot be opened yet, looking takes more tries than one.
        let mut found = self.runner.picture();
        for _ in 0..8 {
            found = found.or_else(|_| self.runner.picture());
        }
        let found = found.map_err(|error| format!("unreadable: {error:?}"))?;
        let expect = self.states.get(at);
        if expect == Some(&found) {
            Ok(())
        } else {
            Err(format!("half written: {step:?} failed and changed something"))
        }
    }

    /// The next process takes over; the step that it has to do next.
    fn next_process(&mut self, at: usize) -> Result<usize, String> {
        self.runner.stop();
        self.disk.restart();
        self.find(at)
    }

    /// How far a new process finds the script to be, when `at` steps were answered.
    fn find(&mut self, at: usize) -> Result<usize, String> {
        self.runner.integrity().map_err(|error| format!("damaged: {error}"))?;
        let found = self.runner.picture().map_err(|error| format!("unreadable: {error:?}"))?;
        let is = |at: usize| self.states.get(at) == Some(&found);
        if is(at) {
            Ok(at)
        } else if is(at + 1) {
            Ok(at + 1)
        } else if (0..at).any(is) {
            Err(format!("lost: {:?} was answered", SCRIPT.get(at - 1)))
        } else {
            Err(format!("half written: a part of {:?}", SCRIPT.get(at)))
        }
    }
}

/// A campaign that must find nothing.
fn clean(name: &str, fault: impl Fn(u64) -> Fault, stride: u64) {
    let report = campaign(fault, Tuning::default(), stride);
    println!("{name}: {report}");
    assert!(report.runs() > 20 / stride.min(10), "{name} ran: {report}");
    assert_eq!(report.violations(), 0, "{name}: {report}");
}

/// Some of what was not synced is lost, or all of it.
fn power(seed: u64) -> Fault {
    Fault::PowerLoss((!seed.is_multiple_of(4)).then_some(seed))
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
    a_killed_process_loses_nothing, every_kill: |_| Fault::Kill, 13;
    a_torn_write_loses_nothing, every_torn_write: |_| Fault::TornWrite, 5;
    a_power_cut_loses_nothing, every_power_cut: power, 13;
    a_full_disk_loses_nothing, every_full_disk: |_| Fault::DiskFull, 5;
    a_failed_write_loses_nothing, every_failed_write: |_| Fault::WriteError, 5;
    a_failed_sync_loses_nothing, every_failed_sync: |_| Fault::SyncError, 1;
}

/// The campaigns can fail: with less than `FULL`, a power cut takes what was answered.
#[test]
fn less_than_full_loses_answered_commits() {
    for level in ["NORMAL", "OFF"] {
        let tuning = Tuning { synchronous: Some(level), ..Tuning::default() };
        let report = campaign(power, tuning, 29);
        println!("synchronous = {level}: {report}");
        assert!(report.of("lost") > 0, "{level}: {report}");
    }
}
