//! The processes of one command, found and ended even when they left its group.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal};

use super::SandboxError;
use super::guardian::{Guardian, News};
use super::mark::Mark;
use super::processes::{Process, started, table};

/// The shell of a command and whatever it started.
///
/// On Linux a process belongs to it that bears its mark, in the environment or as a resource limit, or is in its
/// session, and so does whatever such a one starts; who belonged to it once is remembered. So a child is found that
/// made a session of its own, cleared its environment and lost its parent, all before anybody looked. Elsewhere only
/// the process group is known. Dropped while armed it kills them all (case T02); killed by its guardian when the agent
/// dies.
#[derive(Debug)]
pub(super) struct Family {
    kin: Kin,
    guardian: Guardian,
    /// Whether the shell was waited for, so that its number may come to mean another group.
    reaped: bool,
    armed: bool,
}

/// What makes a process one of a family.
#[derive(Debug, Clone)]
struct Kin {
    mark: Mark,
    leader: Option<Pid>,
    /// The tick the leader began at: who began before is not asked for marks, which takes longer than all the rest.
    since: u64,
    /// Those that were found and still run: number and beginning, which together mean one process only.
    known: Arc<Mutex<BTreeMap<i32, u64>>>,
}

impl Family {
    pub(super) fn new(mark: Mark, guardian: Guardian, leader: Option<u32>) -> Self {
        let leader = leader.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        if let Some(leader) = leader {
            guardian.tell(News::Leader(leader.as_raw_nonzero().get()));
        }
        let since = leader.and_then(started).unwrap_or(0);
        let kin = Kin { mark, leader, since, known: Arc::default() };
        Self { kin, guardian, reaped: false, armed: true }
    }

    /// The shell was waited for.
    pub(super) fn shell_is_gone(&mut self) {
        self.guardian.tell(News::Gone);
        self.reaped = true;
    }

    /// Looks for new members as long as it is waited for, often at first and ever less: one that took off all its marks,
    /// which takes intent, is known only by its parent, and only while that runs.
    pub(super) async fn watch(&self) -> Infallible {
        let mut pause = SOON;
        loop {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(SELDOM);
            // A look that fails is made up for by the next.
            for (number, start) in self.scan(Kin::look).await.unwrap_or_default() {
                self.guardian.tell(News::Kin(number, start));
            }
        }
    }

    /// Asks all to end.
    pub(super) async fn terminate(&self) -> Result<(), SandboxError> {
        self.signal(Signal::TERM).await.map(drop)
    }

    /// Kills all, again and again until none is left or they breed faster than they die. The command lines of those
    /// that could not be killed.
    pub(super) async fn kill(&self) -> Result<Vec<String>, SandboxError> {
        for _ in 0..ROUNDS {
            if self.signal(Signal::KILL).await? == 0 {
                return Ok(Vec::new());
            }
            tokio::time::sleep(BETWEEN).await;
        }
        self.names().await
    }

    /// Nothing is left to kill.
    pub(super) fn disarm(mut self) {
        self.armed = false;
    }

    /// Command lines of those that still run.
    pub(super) async fn names(&self) -> Result<Vec<String>, SandboxError> {
        self.scan(|kin| kin.members().iter().map(Process::name).collect()).await
    }

    /// How many were found to signal.
    async fn signal(&self, signal: Signal) -> Result<usize, SandboxError> {
        // Before the first falls: whose parent is gone may not be found any more.
        let members = self.scan(Kin::members).await?;
        self.signal_group(signal);
        members.iter().for_each(|member| member.signal(signal));
        Ok(members.len())
    }

    /// Here and not on another thread: the number must still mean this group, which only holds until the shell is
    /// waited for.
    fn signal_group(&self, signal: Signal) {
        if let Some(leader) = self.kin.leader.filter(|_| !self.reaped) {
            // An empty group is what we want, so that error is none.
            let _ = rustix::process::kill_process_group(leader, signal);
        }
    }

    /// Goes through the table of processes, which takes milliseconds, on a thread that may block.
    async fn scan<T, W>(&self, work: W) -> Result<T, SandboxError>
    where
        T: Send + 'static,
        W: FnOnce(&Kin) -> T + Send + 'static,
    {
        let kin = self.kin.clone();
        tokio::task::spawn_blocking(move || work(&kin)).await.map_err(SandboxError::Worker)
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        // Nobody can wait here, so this gives way between rounds instead of sleeping; and no other thread is sure to
        // come to it before the runtime ends.
        for _ in 0..if self.armed { ROUNDS } else { 0 } {
            let members = self.kin.members();
            self.signal_group(Signal::KILL);
            if members.is_empty() {
                return;
            }
            members.iter().for_each(|member| member.signal(Signal::KILL));
            std::thread::yield_now();
        }
    }
}

impl Kin {
    /// All of them, by every sign there is.
    fn members(&self) -> Vec<Process> {
        self.find(|process| process.start >= self.since && self.mark.is_on(process)).0
    }

    /// The new ones that are found without asking processes for their marks.
    fn look(&self) -> Vec<(i32, u64)> {
        self.find(|_| false).1
    }

    /// Those that are known or have a sign, remembered from now on; and the new ones among them.
    fn find(&self, sign: impl Fn(&Process) -> bool) -> (Vec<Process>, Vec<(i32, u64)>) {
        let mut all = table();
        let ours = self.ours(&all, sign);
        all.retain(|process| ours.contains(&process.number));
        let now: BTreeMap<i32, u64> = all.iter().map(|process| (process.number, process.start)).collect();
        let mut known = self.known();
        let new = now.iter().filter(|(number, start)| known.get(number) != Some(start));
        let new = new.map(|(number, start)| (*number, *start)).collect();
        *known = now;
        (all, new)
    }

    /// Numbers of those that are known or have a sign, and of their children and children's children.
    fn ours(&self, all: &[Process], sign: impl Fn(&Process) -> bool) -> BTreeSet<i32> {
        let known = self.known();
        let leader = self.leader.map(|leader| leader.as_raw_nonzero().get());
        let is_ours = |process: &&Process| {
            known.get(&process.number) == Some(&process.start)
                || leader == Some(process.session)
                || sign(process)
        };
        let mut ours: BTreeSet<i32> = all.iter().filter(is_ours).map(|process| process.number).collect();
        let mut before = usize::MAX;
        while before != ours.len() {
            before = ours.len();
            for process in all {
                if ours.contains(&process.parent) {
                    ours.insert(process.number);
                }
            }
        }
        ours
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<i32, u64>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const ROUNDS: usize = 50;
const BETWEEN: Duration = Duration::from_millis(4);
/// The first look comes after this long, each further one after twice the time before.
const SOON: Duration = Duration::from_millis(10);
const SELDOM: Duration = Duration::from_secs(5);
